"""Vitis live: anybody publishes in any topic, and nobody can claim a ring id, only search for a key that has it."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from random import Random
from typing import Any, ClassVar

from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address, Send, messages_in
from grapevine.systems.gossip import messages as gossip
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.vitis.peer import messages
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peer.setup import Setup


class LiveVitis(LiveSystem):
    """Vitis: anybody publishes in any topic. A node's ring id is its address, a hash of its key."""

    config_type = VitisPeerConfig
    live_values: ClassVar[dict[str, Any]] = {
        "sample_rounds": 5,  # ours: a sample needs a connection to a stranger
        "rendezvous": 2,  # ours: others may be enemies
        "believes": "answers",
    }
    messages = messages_in(messages, gossip)

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> VitisPeer:
        setup = Setup(
            me=self.me.address,
            ring_id=self.me.address,
            topics=topics,
            topic_id=_itself,
            contacts=contacts,
            random=Random(f"{self.me} {session}"),
            memory=Memory(session, tuple(topics)),  # versions of the profile go on where the last session ended
            ring_id_of=_itself,
        )
        return VitisPeer(setup, self.config)

    @classmethod
    @cache
    def warm_up(cls) -> None:
        """Compile the kernels of overlay and elections: two nodes meet, and have some rounds."""
        config = VitisPeerConfig()
        setups = [
            Setup(me=me, ring_id=me, topics=[2**63], topic_id=_itself, contacts=[1 - me], random=Random(me))
            for me in (0, 1)
        ]
        peers = [VitisPeer(setup, config) for setup in setups]
        sent = [(me, effect) for me, peer in enumerate(peers) for effect in peer.start(0.0)]
        for now in (1.0, 2.0, 3.0, 4.0):
            answers = [
                (effect.to, answer)
                for me, effect in sent
                if isinstance(effect, Send)
                for answer in peers[effect.to].on_message(now, me, effect.message)
            ]
            sent = answers + [(me, made) for me, peer in enumerate(peers) for made in peer.on_timer(now, "round")]


def _itself(number: int) -> int:
    """The ring id of a topic, or of a node: live, both are hashes already."""
    return number
