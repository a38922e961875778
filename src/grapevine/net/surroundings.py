"""What a node takes from the world around it, beside its network: the time of day, its first key, and other hands.

A node decides nothing by chance or by the clock but through this one value. By default it is the real world. A test
gives another (`torture`), in which time is virtual, keys follow from a seed and nothing happens outside the loop: then
what a node does is a function of the seed. All chance in a node follows from its key and from the time at which it was
opened (`Assembly`), so there is no source of randomness here beside the two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grapevine.model.identity import new_key
from grapevine.net.store_work import StoreWork, ThreadedWork

Answer = TypeVar("Answer")


class Aside(Protocol):
    """Runs work that would hold up the loop."""

    def __call__(self, work: Callable[[], Answer], /) -> Awaitable[Answer]:
        """What the work returns, or raises."""


def wall_clock_us() -> int:
    """Microseconds since the epoch, by this machine's clock."""
    return time.time_ns() // 1_000


def wall_clock_ms() -> int:
    """Milliseconds since the epoch, by this machine's clock."""
    return time.time_ns() // 1_000_000


def this_boot() -> str:
    """A name of the time since this machine was started, which no other has; "" where the system tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The world of one node, from its opening to its end. `Node.open` takes it."""

    clock_us: Callable[[], int] = wall_clock_us  # the time of day; it may jump, and go back
    new_key: Callable[[], Ed25519PrivateKey] = new_key  # called once, for a folder that has none
    store_work: Callable[[], StoreWork] = ThreadedWork  # called once, when the store is opened
    aside: Aside = asyncio.to_thread
    boot: Callable[[], str] = this_boot  # another whenever the machine was started

    def clock_ms(self) -> int:
        """Milliseconds since the epoch: what events and contacts are stamped with."""
        return self.clock_us() // 1_000


REAL_WORLD = Surroundings()
