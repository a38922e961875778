"""With what a session of a Trellis node begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who a node is and what it knows when a session begins. Ring ids follow from numbers, so nobody says them."""

    me: Address
    topics: Iterable[int]  # that it subscribes to; the memory's count before these
    ring_id_of: Callable[[Address], int]  # also of nodes that strangers make up
    topic_id: Callable[[int], int]  # a topic's ring id, also of topics that strangers make up
    contacts: Iterable[Address]
    random: Random
    memory: Memory | None = None  # of the last session; None: this is the first
