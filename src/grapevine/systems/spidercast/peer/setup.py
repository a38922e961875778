"""With what a session of a SpiderCast node begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who a node is and what it knows when a session begins."""

    me: Address
    topics: Iterable[int]  # that it subscribes to; the memory's count before these
    published: Iterable[int] = ()  # topics in which it is going to publish: they are of its interest, too (§2.1)
    contacts: Iterable[Address]
    random: Random
    memory: Memory | None = None  # of the last session; None: this is the first
