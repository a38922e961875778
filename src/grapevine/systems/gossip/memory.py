"""What a node keeps between two sessions."""

from __future__ import annotations

from dataclasses import dataclass, field

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.window import Windows


@dataclass(frozen=True, slots=True)
class Memory:
    """Taken out of a session when it is over, and given to the next one."""

    version: int  # of its topics: the next session's is higher, so that nobody takes the one for the other
    topics: tuple[int, ...]
    contacts: tuple[Address, ...] = ()  # to begin with; those of the setup serve if there are none
    sequences: dict[int, int] = field(default_factory=dict)  # by topic: the number of the last event that it published
    seen: Windows = field(default_factory=Windows)  # events that it has had
