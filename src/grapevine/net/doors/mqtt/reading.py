"""What sessions read: their subscriptions as feeds of topics, while their clients are connected and while they are not.

A session has a feed for every topic that it reads while its client is connected. Named readers outlive that; `owned`
are topics that the node wants because of this door alone, and that are given back with the last reader. Changes of one
session's feeds take turns (`Session.turn`), since names that become known change them, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.doors.mqtt.directory import Directory, Known
from grapevine.net.doors.mqtt.feed import Feed, Hub
from grapevine.net.doors.mqtt.filters import has_wildcard, is_name, matches
from grapevine.net.doors.mqtt.message import Message
from grapevine.net.doors.mqtt.packets import publication
from grapevine.net.doors.mqtt.session import Session, Subscription
from grapevine.net.node import Node, Since

_LOOK_S = 5.0
_log = logging.getLogger(__name__)


class Reading:
    """What all sessions of one door read. `keep` writes a session down; `soon` does something beside all else."""

    def __init__(
        self,
        node: Node,
        config: DoorConfig,
        sessions: dict[str, Session],
        keep: Callable[[Session], Awaitable[None]],
        soon: Callable[[Coroutine[None, None, None]], None],
    ) -> None:
        self.node, self.config = node, config
        self.owned: set[str] = set()
        self.dropped = 0  # messages of QoS 0 for clients that were too slow
        self.directory = Directory(node, config, self._on_news, self._on_late)
        self._hub = Hub(node, self._give)
        self._sessions, self._keep, self._soon = sessions, keep, soon
        self._topics = 0  # feeds, of all sessions
        self._told = 0, 0  # what was said of losses

    # Subscriptions

    async def subscribe(self, session: Session, subscription: Subscription) -> None:
        """Take a subscription, or replace the one with the same filter (MQTT-3.8.4-3). UsageError if it is too much."""
        filter = subscription.filter
        if filter not in session.subscriptions and len(session.subscriptions) >= self.config.most_filters:
            raise UsageError(f"a session has {self.config.most_filters} subscriptions at most")
        before = session.subscriptions.get(filter)
        session.subscriptions[filter] = subscription
        try:
            await self.directory.open_for(filter)
            for topic in self._topics_of(filter):
                await self._begin(session, topic, "now")
        except GrapevineError:
            session.subscriptions.pop(filter, None)
            if before is not None:
                session.subscriptions[filter] = before
            raise

    def _topics_of(self, filter: str) -> list[str]:
        if not has_wildcard(filter):
            return [filter]
        here = {name for name in self.node.topics if is_name(name) and matches(filter, name)}
        return sorted(here | {name for name, _ in self.directory.found(filter)})

    async def unsubscribe(self, session: Session, filter: str) -> bool:
        """Drop a subscription; False if there was none. What is under way is finished (MQTT-3.10.4-3)."""
        if session.subscriptions.pop(filter, None) is None:
            return False
        async with session.turn:
            for topic in {*session.feeds, *session.named}:
                await self._adapt(session, topic)
        return True

    async def begin_all(self, session: Session) -> None:
        """A client is back: read all that its session reads."""
        for filter in list(session.subscriptions):
            for topic in self._topics_of(filter):
                with suppress(UsageError):  # bounds that have become narrower
                    await self._begin(session, topic, "now")
        for topic in session.named - session.feeds.keys():
            await self._begin(session, topic, "now")

    async def end_all(self, session: Session) -> None:
        """A client has gone: what its session reads by name waits for it."""
        async with session.turn:
            session.conversation = None
            for feed in list(session.feeds.values()):
                await self._drop(feed)
        session.retained.clear()
        session.outgoing.forget_retained()

    async def forget_all(self, session: Session) -> None:
        """A session is over: the node keeps nothing for it any more."""
        async with session.turn:
            for topic in list(session.named):
                await self._forget_reader(session, topic)

    async def _begin(self, session: Session, topic: str, since: Since) -> None:
        """Read a topic for a session whose filters match it, if it is not being read as they want it."""
        async with session.turn:
            if topic in session.feeds:
                await self._adapt(session, topic)
                return
            feed = Feed(topic, session, self.node, self._hub)
            if not feed.matched:
                return
            if self._topics >= self.config.most_feeds:
                raise UsageError(f"sessions read {self.config.most_feeds} topics already; raise most_feeds")
            if topic not in self.owned and not self.node.wants(topic):
                self.owned.add(topic)
            if session.conversation is None:
                await self._keep_for_later(feed, since)
                return
            session.feeds[topic] = feed
            self._topics += 1
            try:
                await feed.open(session.conversation.give, since)
            except BaseException:
                await self._drop(feed)
                raise

    async def _keep_for_later(self, feed: Feed, since: Since) -> None:
        """A topic became known while the client is away: from now on its events wait for it."""
        if feed.is_named and feed.topic not in feed.session.named:
            async with self.node.subscribe(feed.topic, name=feed.session.reader_name, ack="explicit", since=since):
                feed.session.named.add(feed.topic)
            await self._keep(feed.session)

    async def _adapt(self, session: Session, topic: str) -> None:
        """Its subscriptions have changed: go on, in another way, or not at all. Within the session's turn."""
        feed = session.feeds.get(topic)
        if feed is None:
            if topic in session.named and not session.matching(topic):
                await self._forget_reader(session, topic)
            return
        was_named, had_qos = feed.is_named, feed.qos
        feed.matched = session.matching(topic)
        if feed.matched and (feed.qos > 0) == (had_qos > 0):
            return
        await self._drop(feed)
        if was_named:
            await self._forget_reader(session, topic)
        if feed.matched and session.conversation is not None:
            changed = session.feeds[topic] = Feed(topic, session, self.node, self._hub)
            self._topics += 1
            await changed.open(session.conversation.give, "now")

    async def _drop(self, feed: Feed) -> None:
        self._topics -= 1
        del feed.session.feeds[feed.topic]
        await feed.close()
        self._disown_unwanted(feed.topic)

    def _disown_unwanted(self, topic: str) -> None:
        if not self.node.wants(topic):
            self.owned.discard(topic)

    async def _forget_reader(self, session: Session, topic: str) -> None:
        session.named.discard(topic)
        with suppress(UsageError):  # the application has unsubscribed
            await self.node.unsubscribe(topic, name=session.reader_name, last=topic in self.owned)
        self._disown_unwanted(topic)

    def retained(self, filter: str) -> list[Message]:
        """What the topics that match a filter retain."""
        return [known.retained for _, known in self.directory.found(filter) if known.retained is not None]

    # What comes

    def _give(self, message: Message, feeds: list[Feed]) -> None:
        """A message for clients that take its topic at QoS 0; written once for those who get the same bytes."""
        frames: dict[tuple[object, ...], bytes | None] = {}
        for feed in feeds:
            session, conversation = feed.session, feed.session.conversation
            if conversation is None:
                continue
            delivery = session.plan(message, feed.matched)
            if delivery is None or conversation.has_retained(session, message):
                continue
            feed.last[message.source] = message.sequence
            connection = conversation.connection
            if connection.is_slow:
                self.dropped += 1
                continue
            alike = connection.codec.version, delivery
            if alike not in frames:
                packet = publication(message, delivery, None, is_again=False)
                frames[alike] = None if packet is None else connection.codec.write(packet)
            if (frame := frames[alike]) is not None:
                connection.send_bytes(frame)

    def _on_news(self, name: str, known: Known) -> None:
        """A name became known: filters with wildcards may match it."""
        for session in list(self._sessions.values()):
            began = [one.began for one in session.matching(name) if has_wildcard(one.filter)]
            if began and name not in session.feeds:
                self._soon(self._begin(session, name, max(known.since, min(began))))

    def _on_late(self, message: Message) -> None:
        """It became known what a topic retains."""
        for session in list(self._sessions.values()):
            if session.conversation is not None and session.matching(message.topic):
                session.conversation.give_late(session, message)

    # By itself

    async def keep_house(self) -> None:
        """Announce what other programs of this node use, drop directories that nobody needs, and say what clients did
        not get, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.tell_of_losses()
            with suppress(GrapevineError):
                for name in self.node.topics:
                    if is_name(name):
                        await self.directory.announce(name)
                filters = [filter for session in self._sessions.values() for filter in session.subscriptions]
                await self.directory.close_all_but(iter(filters))

    def tell_of_losses(self) -> None:
        """Write to the log how much clients did not get, if that has grown: MQTT cannot tell them."""
        found = self._hub.lost, self.dropped
        if found != self._told:
            self._told = found
            _log.warning(
                "since the MQTT door was opened %d events could not be had any more for its clients, and %d messages of"
                " QoS 0 were dropped because clients were too slow",
                *found,
            )
