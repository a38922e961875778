"""SpiderCast live: anybody publishes in any topic that it takes an interest in."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from random import Random
from typing import Any, ClassVar

from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address, messages_in
from grapevine.systems.gossip import messages as gossip
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.spidercast.peer import messages
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.maintenance import compile_rules
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup


class LiveSpiderCast(LiveSystem):
    """SpiderCast: who publishes in a topic takes part in it, as its subscribers do (§2.1).

    Live, every topic also has a random neighbour: whoever claims all topics is everybody's best choice, and must not be
    the only one.
    """

    config_type = SpiderCastPeerConfig
    live_values: ClassVar[dict[str, Any]] = {"random_coverage": 1, "sample_rounds": 5}  # ours: see above; as Vitis
    messages = messages_in(messages, gossip)

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> SpiderCastPeer:
        setup = Setup(
            me=self.me.address,
            topics=topics,
            contacts=contacts,
            random=Random(f"{self.me} {session}"),
            memory=Memory(session, tuple(topics)),  # versions of the profile go on where the last session ended
        )
        return SpiderCastPeer(setup, self.config)

    @classmethod
    @cache
    def warm_up(cls) -> None:
        """Compile the rules of coverage and consent."""
        compile_rules()
