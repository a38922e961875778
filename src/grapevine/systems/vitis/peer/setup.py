"""With what a session of a Vitis node begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who a node is and what it knows when a session begins."""

    me: Address
    ring_id: int
    topics: Iterable[int]  # that it subscribes to; the memory's count before these
    topic_id: Callable[[int], int]  # a topic's ring id, also of topics that strangers make up
    contacts: Iterable[Address]
    random: Random
    memory: Memory | None = None  # of the last session; None: this is the first
    ring_id_of: Callable[[Address], int] | None = None  # where it follows from the address, nobody can claim it
    rate_of: Callable[[int], float] | None = None  # the declared rates of topics; None: nobody has declared any
    tie_seed: int = 0  # of ties between equally good friends; a simulation's own, so that they fall as by rounds
