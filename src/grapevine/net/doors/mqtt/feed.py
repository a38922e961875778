"""A topic's events on their way from the node to one session.

| the session takes it at        | the node's side                          | when the client is slow            |
|--------------------------------|------------------------------------------|------------------------------------|
| QoS 0                          | one inbox of the topic for all (`Hub`)   | messages are dropped, and counted  |
| QoS 1 or 2, for this connection| an ordered reader of its own             | they wait in the node's store      |
| QoS 1 or 2, durably            | a named reader, acknowledged explicitly  | the same, also while it is away    |

At QoS 0 an event is given as it arrives: it is worth most while it is fresh, and a missing one would hold up all that a
node publishes behind it. Readers give each source's events in the order of its numbers, and a `Gap` for what cannot be
had. MQTT has no words for that: a gap is counted (`Hub.lost`), counts as acknowledged, and the session goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from grapevine.model.errors import GrapevineError
from grapevine.net.doors.mqtt.message import Message
from grapevine.net.doors.mqtt.outgoing import Progress
from grapevine.net.doors.mqtt.session import Session
from grapevine.net.envelope import Event, Gap
from grapevine.net.inbox import Inbox, Lagged
from grapevine.net.node import Node, Since
from grapevine.net.ordered_reader import OrderedReader
from grapevine.net.reader import Reader
from grapevine.net.stamp import epoch_of_source, publisher_of, source_of

_SIZE = 64  # events that a feed holds in memory; the rest waits in the store

_log = logging.getLogger(__name__)

Give = Callable[["Feed", Message], Awaitable[None]]


@dataclass(slots=True)
class _Post:
    """A topic that is read once for several sessions."""

    ready: asyncio.Future[None]
    feeds: dict[Feed, None] = field(default_factory=dict)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    task: asyncio.Task[None] | None = None


class Hub:
    """Topics that sessions take at QoS 0. `give` gets each message with the feeds that want it, and never waits."""

    def __init__(self, node: Node, give: Callable[[Message, list[Feed]], None]) -> None:
        self.lost = 0  # events that readers, also those of feeds, did not get because the node has them no more
        self._node, self._give = node, give
        self._posts: dict[str, _Post] = {}

    async def add(self, feed: Feed, since: Since) -> None:
        """From now on, or from this time on if nobody reads the topic yet, the feed gets what comes."""
        post = self._posts.get(feed.topic)
        if post is not None:
            post.feeds[feed] = None
            await asyncio.shield(post.ready)
            return
        post = self._posts[feed.topic] = _Post(asyncio.get_running_loop().create_future(), {feed: None})
        try:
            reading = self._node.subscribe(feed.topic, since=since, ordered=False)
            inbox = await post.stack.enter_async_context(reading)
        except BaseException as error:
            self._posts.pop(feed.topic, None)
            post.ready.set_exception(error if isinstance(error, GrapevineError) else asyncio.CancelledError())
            post.ready.exception()
            raise
        post.task = asyncio.create_task(self._read(post, inbox))
        post.ready.set_result(None)

    async def remove(self, feed: Feed) -> None:
        """The feed gets nothing more."""
        post = self._posts.get(feed.topic)
        if post is None or feed not in post.feeds:
            return
        del post.feeds[feed]
        if not post.feeds:
            del self._posts[feed.topic]
            if post.task is not None:
                post.task.cancel()
            await post.stack.aclose()

    async def _read(self, post: _Post, inbox: Inbox) -> None:
        while True:
            item = await self.next_of(inbox)
            if item is None:
                return
            if isinstance(item, Event):
                self._give(Message.of(item), list(post.feeds))

    async def next_of(self, source: Inbox | OrderedReader) -> Event | Gap | None:
        """The next event or gap, with losses counted; None: nothing more comes."""
        while True:
            try:
                item = await source.get()
            except Lagged as lag:  # retention took them before they were read
                self.lost += lag.count
                continue
            except StopAsyncIteration:
                return None
            if isinstance(item, Gap):
                self.lost += item.last - item.first + 1
            return item


class Feed:
    """One topic for one session, while its client is connected."""

    def __init__(self, topic: str, session: Session, node: Node, hub: Hub) -> None:
        self.topic, self.session = topic, session
        self.matched = session.matching(topic)
        self.last: dict[bytes, int] = {}  # of each source: the last sequence that was given
        self._node, self._hub = node, hub
        self._progress = Progress()
        self._reader: Reader | None = None
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._noting: asyncio.Task[None] | None = None

    @property
    def qos(self) -> int:
        """The highest QoS at which the session takes the topic."""
        return max((one.qos for one in self.matched), default=0)

    @property
    def is_named(self) -> bool:
        """Whether it outlives the connection."""
        return self.qos > 0 and self.session.is_durable

    async def open(self, give: Give, since: Since) -> None:
        """Begin: what is published from now on, or from this time on, is given, one message after the other."""
        if isinstance(since, float) and not self.is_named:
            since = max(since, self.session.began)  # what came while the client was away waits for named readers alone
        if self.qos == 0:
            await self._hub.add(self, since)
            return
        if self.is_named:
            reader = self._node.subscribe(
                self.topic, name=self.session.reader_name, ack="explicit", size=_SIZE, since=since
            )
            self._reader = await self._stack.enter_async_context(reader)
            self.session.named.add(self.topic)
            self._tasks.append(asyncio.create_task(self._read(reader, give)))
        else:
            unnamed = self._node.subscribe(self.topic, size=_SIZE, since=since)
            await self._stack.enter_async_context(unnamed)
            self._tasks.append(asyncio.create_task(self._read(unnamed, give)))

    async def close(self) -> None:
        """Give nothing more. What a named reader was not acknowledged comes again."""
        await self._hub.remove(self)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._noting is not None:
            await self._noting
        with suppress(GrapevineError):
            await self._stack.aclose()
        self._reader = None

    def hand_over(self, message: Message) -> None:
        """Called before a message with acknowledgement is sent."""
        self._progress.hand_over(message.source, message.sequence)

    def acknowledge(self, source: bytes, sequence: int) -> None:
        """The client has this message, or does not want it: it need not come again."""
        self._progress.acknowledge(source, sequence)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note())

    async def _note(self) -> None:
        try:
            await self._note_all()
        except GrapevineError as failure:  # messages come again, as they would after a crash
            _log.warning("how far %r came in %r was not noted: %s", self.session.client, self.topic, failure)

    async def _note_all(self) -> None:
        outgoing = self.session.outgoing
        while due := self._progress.due():
            for source, sequences in due.items():
                if self._reader is not None:
                    publisher, epoch = publisher_of(source), epoch_of_source(source)
                    await self._reader.ack_up_to(publisher, sequences[-1], epoch)
                for sequence in sequences:
                    found = outgoing.find_key((self.topic, source, sequence))
                    if found is not None and not found.number:
                        outgoing.forget(found.key)

    async def _read(self, reader: OrderedReader, give: Give) -> None:
        while (item := await self._hub.next_of(reader)) is not None:
            if isinstance(item, Gap):
                source = source_of(item.publisher, item.epoch)
                self._progress.hand_over(source, item.last)
                self.acknowledge(source, item.last)
            else:
                await self._give(item, give)

    async def _give(self, event: Event, give: Give) -> None:
        message = Message.of(event)
        self.hand_over(message)
        await give(self, message)
