"""Trellis live: anybody publishes in any topic, and nobody can choose its ring id."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any, ClassVar

from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address, messages_in
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.trellis.peer import messages, plain
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.peer import TrellisPeer
from grapevine.systems.trellis.peer.setup import Setup


class LiveTrellis(LiveSystem):
    """Trellis: anybody publishes in any topic. A node's ring id is its address, a hash of its key."""

    config_type = TrellisPeerConfig
    live_values: ClassVar[dict[str, Any]] = {"sample_turns": 5}  # ours: a sample needs a connection to a stranger
    messages = messages_in(messages)

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> TrellisPeer:
        setup = Setup(
            me=self.me.address,
            topics=topics,
            ring_id_of=_itself,
            topic_id=_itself,
            contacts=contacts,
            random=Random(f"{self.me} {session}"),
            memory=Memory(session // 1_000_000, tuple(topics)),  # fewer versions a second than that are made
        )
        return TrellisPeer(setup, self.config)

    @classmethod
    def warm_up(cls) -> None:
        plain.warm_up()


def _itself(number: int) -> int:
    """The ring id of a topic, or of a node: live, both are hashes already."""
    return number
