"""Rappel live: a topic is somebody's feed, and those whom a newcomer begins with are its landmarks."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from random import Random
from typing import Any

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address, Effects, messages_in
from grapevine.systems.rappel import messages
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import HereIAm, Submit, Submitted
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.outbox import Outbox
from grapevine.systems.rappel.peer import RappelPeer
from grapevine.systems.rappel.position import Locating


class LiveRappel(LiveSystem):
    """Rappel: a topic is somebody's feed, `<peer id>/<name>`, and only that peer publishes in it.

    So there are no submissions by others (§2): who took one would pass on what it did not seal, and be shut out for it.

    Those whom a newcomer begins with are its landmarks; the first node of a network has the origin as its position.
    """

    config_type = RappelConfig
    messages = messages_in(messages, without=(Submit, Submitted))
    needs_contacts = True

    def __init__(self, name: str, config: Any, me: PeerId) -> None:
        super().__init__(name, config, me)
        self._publishers: dict[int, PeerId] = {}  # of all feeds that this node has heard the names of

    def topic(self, name: str) -> int:
        """The number of the feed `<peer id>/<name>`; UsageError for any other name."""
        owner, slash, feed = name.partition("/")
        if not slash or not feed:
            raise UsageError(f"{name!r} is no feed; with rappel, topics are called PEER_ID/NAME after their publisher")
        topic = super().topic(name)
        self._publishers[topic] = PeerId.parse(owner)
        return topic

    def may_publish(self, topic: int, publisher: PeerId) -> bool:
        """Only the peer after whom the feed is called; nobody in a feed whose name this node does not know."""
        return self._publishers.get(topic) == publisher

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> RappelPeer:
        setup = Setup(
            me=self.me.address,
            subscriptions=topics,
            published=[topic for topic, publisher in self._publishers.items() if publisher == self.me],
            publisher_of=lambda topic: self._publishers[topic].address,
            landmarks=list(contacts),
            random=Random(f"{self.me} {session}"),
            memory=Memory(session=session, position=() if contacts else (0.0,) * self.config.position_size),
        )
        return RappelPeer(setup, self.config)

    def join(self, peer: RappelPeer, now: float, topic: int) -> Effects:
        """The node is the root of the feed's tree from now on."""
        return peer.found(topic)

    @classmethod
    @cache
    def warm_up(cls) -> None:
        """Compile the kernel of coordinates: a newcomer locates itself by one landmark."""
        config = RappelConfig()
        locating = Locating(config, [1], Random(0), Outbox())
        for probe in range(config.landmark_rounds + 1):
            locating.ask(float(probe))
            locating.hear(probe + 0.01, 1, HereIAm(probe, (0.0,) * config.position_size, 1.0))
