"""What durability costs: events a second from one publisher to one subscriber, beside two brokers that keep events.

    .venv/bin/python -m bench.durability

Grapevine with `acks` of 0, 1 and 2 (two needs a third node, which subscribes as well) and both durabilities, mosquitto
with QoS 1, NATS JetStream with a stream on disk; in turn, `--rounds` times, everything on the loopback. A subscriber
has a name everywhere, and acknowledges what it reads. `one` publishes an event when the one before was acknowledged,
`many` keeps 50 on the way. What an acknowledgement says is not the same:

    grapevine, power      the publisher's disk has it (fsync), and the disks of `acks` others
    grapevine, process    files of the operating system have it: a crash of the process loses nothing, one of the
                          machine may
    mosquitto             it is in the broker's memory; the disk gets it every now and then (autosave)
    nats                  a file of the operating system has it; synced every two minutes by default

A broker that is not installed (`apt-get install mosquitto nats-server`) is left out, and so is one without its client
(`pip install paho-mqtt nats-py`, both in the extra `dev`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

BYTES = 200
WINDOWS = {"one": 1, "many": 50}
CONTESTANTS: dict[str, dict[str, Any]] = {
    **{
        f"grapevine, {durability}, acks={acks}": {"system": "grapevine", "durability": durability, "acks": acks}
        for durability in ("power", "process")
        for acks in (0, 1, 2)
    },
    "mosquitto, QoS 1": {"system": "mosquitto", "client": "paho"},
    "nats, JetStream": {"system": "nats", "client": "nats"},
}
COMMANDS = {"mosquitto": "mosquitto", "nats": "nats-server"}


def absent(plan: dict[str, Any]) -> str | None:
    """Why a contestant cannot take part."""
    if (command := COMMANDS.get(plan["system"])) is None:
        return None
    if shutil.which(command, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/bin") is None:
        return f"{command} is not installed"
    return None if importlib.util.find_spec(plan["client"]) else f"its client for Python, {plan['client']}, is missing"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextlib.contextmanager
def broker(system: str, folder: Path) -> Iterator[int]:
    """A broker on a free port, with its files in the folder; 0 if the system has none."""
    if system not in COMMANDS:
        yield 0
        return
    port = free_port()
    if system == "mosquitto":
        lines = (
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {folder}/",
        )
        (folder / "conf").write_text("\n".join((*lines, "max_queued_messages 0", "user root", "")))
        command = ["/usr/sbin/mosquitto", "-c", str(folder / "conf")]
    else:
        command = ["/usr/sbin/nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > end or running.poll() is not None:
                    raise SystemExit(f"{system} did not start: {' '.join(command)}") from None
                time.sleep(0.05)
        yield port
    finally:
        running.terminate()
        running.wait()


class Role:
    """A process of `durability_roles`."""

    def __init__(self, role: str, plan: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "bench.durability_roles", role, json.dumps(plan)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self, word: str) -> list[str]:
        """What it says after this word."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline().split()
        if not found or found[0] != word:
            raise SystemExit(f"a process ended instead of saying {word!r}")
        return found[1:]

    def go_on(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def end(self) -> None:
        self.go_on()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.communicate()


def measure(contestant: dict[str, Any], events: dict[str, int]) -> dict[str, dict[str, float]]:
    """One run, way by way: events a second until all are acknowledged, and until the subscriber has them; CPU."""
    with tempfile.TemporaryDirectory() as name, broker(contestant["system"], Path(name)) as port:
        ways = [(WINDOWS[way], count) for way, count in events.items()]
        shared = contestant | {
            "ways": ways,
            "bytes": BYTES,
            "folder": name,
            "port": port,
            "window": max(WINDOWS.values()),
        }
        roles: list[Role] = []
        found = {}
        try:
            join: list[str] = []
            for number in range(1 + (contestant.get("acks") == 2)):
                roles.append(Role("subscribe", shared | {"name": f"subscriber-{number}", "join": join}))
                heard = roles[number].hear("ready")
                join = join or heard
            publisher = Role("publish", shared | {"name": "publisher", "join": join})
            roles.append(publisher)
            publisher.hear("ready")
            for way, count in events.items():
                publisher.go_on()
                begun, acknowledged, cpu_s = map(float, publisher.hear("over"))
                (delivered,) = map(float, roles[0].hear("over"))
                found[way] = {
                    "acknowledged": count / (acknowledged - begun),
                    "delivered": count / (delivered - begun),
                    "cpu_us": 1e6 * cpu_s / count,
                }
        finally:
            for role in reversed(roles):
                role.end()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", type=int, default=300, help="events, one at a time")
    parser.add_argument("--many", type=int, default=3_000, help="events, 50 at a time")
    options = parser.parse_args()
    present = {}
    for name, plan in CONTESTANTS.items():
        if (why := absent(plan)) is not None:
            print(f"{name} is left out: {why}")
        else:
            present[name] = plan
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for name, plan in present.items():
            for way, result in measure(plan, {way: getattr(options, way) for way in WINDOWS}).items():
                found.setdefault((name, way), []).append(result)
            print(".", end="", flush=True, file=sys.stderr)
    print(f"\nevents of {BYTES} bytes a second, median of {options.rounds} rounds (all of them)")
    best = {way: max(median(r["acknowledged"] for r in found[name, way]) for name in present) for way in WINDOWS}
    for (name, way), runs in found.items():
        middle = {key: median(run[key] for run in runs) for key in runs[0]}
        every = ", ".join(f"{run['acknowledged']:,.0f}" for run in runs)
        print(
            f"{name:30} {way:5} acknowledged {middle['acknowledged']:8,.0f}  delivered {middle['delivered']:8,.0f}"
            f"  1/{best[way] / middle['acknowledged']:.1f} of the fastest"
            f"  publisher {middle['cpu_us']:6,.0f} µs CPU an event  ({every})"
        )


if __name__ == "__main__":
    main()
