"""Two hosts on one machine: network namespaces joined by a cable that can be pulled. Linux, and root, only."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

ADDRESSES = ("10.231.1.1", "10.231.2.1")  # of the hosts, on their loopbacks: they stay when the cable goes
NETWORK = "10.231.0.0/16"  # of all addresses here
_ENDS = ("10.231.0.1", "10.231.0.2")  # of the cable


@dataclass(frozen=True)
class Hosts:
    """Both of them."""

    names: tuple[str, str]

    def prefix(self, host: int) -> tuple[str, ...]:
        """What a command is started by, so that it runs on this host, 0 or 1."""
        return "ip", "netns", "exec", self.names[host]

    def cut(self) -> None:
        """Nothing passes between the two any more."""
        _ip(f"-n {self.names[0]} link set cable down")

    def heal(self) -> None:
        """It does again."""
        _ip(f"-n {self.names[0]} link set cable up")
        _ip(f"-n {self.names[0]} route replace {ADDRESSES[1]} via {_ENDS[1]}")


def obstacle() -> str | None:
    """Why they cannot be made here, in words that end a sentence; None if they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root, and the command `ip` of Linux"
    with contextlib.suppress(subprocess.CalledProcessError), hosts("grapevine-try"):
        return None
    return "this machine makes no network namespaces"


@contextlib.contextmanager
def hosts(name: str) -> Iterator[Hosts]:
    """Two hosts that reach each other, and nobody else. They end with the block, and nothing may run on them then."""
    names = f"{name}-a", f"{name}-b"
    try:
        for one in names:
            _ip(f"netns add {one}")
        _ip(f"link add cable netns {names[0]} type veth peer name cable netns {names[1]}")
        for here, there in ((0, 1), (1, 0)):
            _ip(f"-n {names[here]} addr add {ADDRESSES[here]}/32 dev lo")
            _ip(f"-n {names[here]} addr add {_ENDS[here]}/30 dev cable")
            _ip(f"-n {names[here]} link set lo up")
            _ip(f"-n {names[here]} link set cable up")
            _ip(f"-n {names[here]} route add {ADDRESSES[there]} via {_ENDS[there]}")
        yield Hosts(names)
    finally:
        for one in names:
            _run(["ip", "netns", "del", one], check=False)


def _ip(arguments: str) -> None:
    _run(["ip", *arguments.split()], check=True)


def _run(command: list[str], *, check: bool) -> None:
    subprocess.run(command, check=check, capture_output=True)
