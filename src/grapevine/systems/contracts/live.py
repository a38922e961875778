"""What a system needs beyond its sans-IO peer to run live: how a peer is made, and what its topics are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from grapevine.model.config import Config
from grapevine.model.identity import PeerId
from grapevine.model.ids import ring_id
from grapevine.systems.contracts.peer import Address, Effects, Peer


class LiveSystem(ABC):
    """Makes the peer of a live node. One object lives as long as the node; the node calls it, nobody else.

    Connections, signatures, the store and the recovery of what was missed are the node's.
    """

    config_type: ClassVar[type[Config]]
    messages: ClassVar[Any]  # the union of all messages of its peers that may come over a connection
    needs_contacts: ClassVar[bool] = False  # whether somebody has to be found before a peer can be made
    live_values: ClassVar[dict[str, Any]] = {}  # defaults of parameters that differ from those of simulations

    def __init__(self, name: str, config: Any, me: PeerId) -> None:
        self.name, self.config, self.me = name, config, me

    def topic(self, name: str) -> int:
        """The number by which peers know a topic; UsageError if the system has no topics of such names."""
        return ring_id(f"topic:{name}")

    def may_publish(self, topic: int, publisher: PeerId) -> bool:
        """Whether events of this topic may come from this publisher; others are refused at every hop."""
        return True

    @abstractmethod
    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> Peer:
        """The peer of a new session. `topics` are wanted from the start, `contacts` are connected already, and
        `session` is larger than that of any session before."""

    def join(self, peer: Any, now: float, topic: int) -> Effects:
        """The node publishes in this topic from now on, so others have to exchange its events with it."""
        effects: Effects = peer.subscribe(now, topic)
        return effects

    @classmethod
    def warm_up(cls) -> None:
        """Compile what peers call, before anybody waits for it. Called off the event loop when a node opens; does its
        work once in a process."""
        return
