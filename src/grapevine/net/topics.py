"""A topic's life in a node: why the node has to do with it, and what follows from that.

There are three reasons, which come and go independently of each other:

- *wanted*: an application reads it (inboxes are open), or has subscribed to it for good, without a reader;
- *published in*: for `membership_s` after its last event here. Others ask members for what they missed, so whoever
  publishes has to be one for a while;
- *carried*: the overlay passes its events on for others. That is the peer's decision; the node follows it.

The strongest of them is the topic's state:

| state     | the overlay has this node as | subscription in the store | account in the ledger | events are         |
|-----------|------------------------------|---------------------------|-----------------------|--------------------|
| ABSENT    | nothing                      | no                        | no                    | not kept           |
| CARRIED   | a relay                      | no                        | yes                   | kept, for others   |
| PUBLISHED | a member                     | no                        | yes                   | kept, for others   |
| WANTED    | a member                     | yes                       | yes                   | kept and delivered |

    ABSENT ──want──▶ WANTED ──forget──▶ PUBLISHED, if an event was published lately, otherwise ABSENT
    ABSENT ──publish──▶ PUBLISHED ──after membership_s──▶ ABSENT
    ABSENT ◀──follow──▶ CARRIED, whatever the overlay says; any other state is stronger

Three rules hold whenever no change of the topic is under way; changes of one topic take turns (`_changing`):

1. The ledger has an account of a topic exactly while it is not ABSENT. (Of a topic that is only carried, from the
   first event that comes, or from the next `follow`, until the `follow` after the overlay dropped it.)
2. The store knows a subscription before the overlay hears of it, and the overlay forgets it before the store does. So
   a crash between the two costs a repeat, never an event that the application believes to be subscribed to.
3. The overlay has this node as a member exactly while the topic is WANTED or PUBLISHED. A membership does not end
   while a publication is under way, so whoever publishes finds its account open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from grapevine.model.errors import UsageError
from grapevine.net.chronicle import Chronicle
from grapevine.net.config import NodeConfig
from grapevine.net.envelope import Gap
from grapevine.net.event_file import Possessed
from grapevine.net.inbox import Inbox
from grapevine.net.ledger import Ledger
from grapevine.net.ordered_reader import OrderedReader
from grapevine.net.reader import Reader
from grapevine.net.stamp import epoch_of_source, fingerprint, publisher_of
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent
from grapevine.systems.contracts.peer import Address


class State(Enum):
    """How much a node has to do with a topic; the module says what each entails."""

    ABSENT = "absent"
    CARRIED = "carried"
    PUBLISHED = "published"
    WANTED = "wanted"


class Overlay(Protocol):
    """What topics ask and tell the peer (`Host`)."""

    @property
    def now(self) -> float:
        """Seconds, by a clock that never goes back."""

    def subscribe(self, topic_id: int) -> None:
        """The application wants the topic; it may be a member already."""

    def unsubscribe(self, topic_id: int) -> None:
        """Nobody here wants the topic or publishes in it; the node may still carry it for others."""

    def join(self, topic_id: int) -> None:
        """The node is a member because it publishes."""

    def carried(self) -> Collection[int]:
        """Topics that the peer wants or carries."""

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom it exchanges a topic's events."""


@dataclass(slots=True)
class Topic:
    """One topic that the node wants or publishes in. Only `Topics` changes it."""

    id: int
    name: str = ""  # as the application calls it; "" unless it is wanted
    is_wanted: bool = False
    is_for_good: bool = False  # wanted without a reader, too
    since_ms: int = 0  # events that came from this time on are wanted
    readers: list[Inbox | OrderedReader] = field(default_factory=list)
    member_until: float | None = None  # it published here, and is a member until then
    publications: int = 0  # under way
    changes: int = 0  # under way, or waiting for their turn
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left that has to be remembered of it."""
        return not any((self.is_wanted, self.member_until is not None, self.readers, self.publications, self.changes))


class Publication:
    """An event on its way to the disk. `async with topics.publishing(topic_id): …`"""

    __slots__ = ("_topic", "_topic_id", "_topics")

    def __init__(self, topics: Topics, topic_id: int) -> None:
        self._topics, self._topic_id = topics, topic_id

    async def __aenter__(self) -> None:
        self._topic = await self._topics.begin_publication(self._topic_id)

    async def __aexit__(self, *_: object) -> None:
        self._topics.end_publication(self._topic)


class Topics:
    """All topics of a node."""

    def __init__(
        self,
        config: NodeConfig,
        store: Store,
        ledger: Ledger,
        overlay: Overlay,
        chronicle: Chronicle,
        clock_ms: Callable[[], int],
    ) -> None:
        self._config, self._store, self._ledger = config, store, ledger
        self._overlay, self._chronicle, self._clock_ms = overlay, chronicle, clock_ms
        self._topics: dict[int, Topic] = {}
        self._is_closed = False

    # What others ask

    def state(self, topic_id: int) -> State:
        """Why the node has to do with the topic: the strongest reason."""
        topic = self._topics.get(topic_id)
        if topic is not None and topic.is_wanted:
            return State.WANTED
        if topic is not None and topic.member_until is not None:
            return State.PUBLISHED
        return State.CARRIED if topic_id in self._ledger else State.ABSENT

    def is_wanted(self, topic_id: int) -> bool:
        """Whether an application wants its events."""
        topic = self._topics.get(topic_id)
        return topic is not None and topic.is_wanted

    def name_of(self, topic_id: int) -> str:
        """What the application calls it; "" if it does not want it."""
        topic = self._topics.get(topic_id)
        return topic.name if topic is not None else ""

    def wanted(self) -> Iterator[Topic]:
        """Topics that applications want, in no order. What they hold must not be changed."""
        return (topic for topic in self._topics.values() if topic.is_wanted)

    def since_ms(self, topic_id: int) -> int:
        """From when on events are wanted, by the clock of arrivals (ms); who only carries looks back `recover_s`."""
        topic = self._topics.get(topic_id)
        if topic is not None and topic.is_wanted:
            return topic.since_ms
        return self._clock_ms() - int(1e3 * self._config.recover_s)

    def carried(self) -> Collection[int]:
        """Topics that the overlay wants or carries here."""
        return self._overlay.carried()

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom this node exchanges a topic's events."""
        return self._overlay.partners(topic_id)

    @property
    def dropped(self) -> int:
        """Events that readers who are here now were too slow for."""
        return sum(reader.dropped for topic in self._topics.values() for reader in topic.readers)

    # Wanted

    async def want(self, topic_id: int, name: str, since_ms: int | None) -> None:
        """The application wants a topic for good, read or not; None: from now on. It is on the disk on return."""
        async with self._changing(topic_id) as topic:
            topic.is_for_good = True
            await self._want(topic, name, since_ms)

    async def forget(self, topic_id: int) -> None:
        """The application no longer wants it; readers that are left get nothing more."""
        async with self._changing(topic_id) as topic:
            await self._forget(topic)

    async def enter(self, inbox: Inbox | OrderedReader) -> None:
        """A reader comes: the topic is wanted as long as there is one."""
        if self._is_closed:
            raise UsageError("the node is closed; open another")
        async with self._changing(inbox.topic_id) as topic:
            await self._want(topic, inbox.topic, inbox.since_ms)
            topic.readers.append(inbox)
        try:
            await inbox.begin()
        except BaseException:
            await self.leave(inbox)
            raise

    async def enter_named(self, reader: Reader) -> int:
        """A named reader comes: the topic is wanted for good from the first time on. Its number in the store.

        UsageError if somebody reads under its name already.
        """
        if self._is_closed:
            raise UsageError("the node is closed; open another")
        async with self._changing(reader.topic_id) as topic:
            if any(isinstance(other, Reader) and other.name == reader.name for other in topic.readers):
                raise UsageError(f"{reader.name!r} reads {reader.topic!r} already; close that reader, or choose a name")
            topic.is_for_good = True
            await self._want(topic, reader.topic, reader.since_ms)
            number = await self._store.open_reader(topic.id, reader.name, reader.since_ms)
            topic.readers.append(reader)
        return number

    async def forget_reader(self, topic_id: int, name: str, *, last: bool = False) -> bool:
        """How far a named reader came is forgotten, and whoever reads under the name gets nothing more; the topic stays
        wanted, unless this is the `last` reason for it. False if there is no such reader."""
        async with self._changing(topic_id) as topic:
            for reader in topic.readers:
                if isinstance(reader, Reader) and reader.name == name:
                    reader.close()
            was_there = await self._store.forget_reader(topic_id, name)
            if last and topic.is_wanted and not await self._store.readers(topic_id):
                topic.is_for_good = False
                if not topic.readers:
                    await self._forget(topic)
            return was_there

    async def leave(self, inbox: Inbox | OrderedReader) -> None:
        """A reader goes. After the last one the topic is forgotten, unless it is wanted for good."""
        self._topics[inbox.topic_id].readers.remove(inbox)
        async with self._changing(inbox.topic_id) as topic:
            if not topic.readers and not topic.is_for_good and not self._is_closed:
                await self._forget(topic)

    def close(self) -> None:
        """The node closes: readers are told, and what is wanted now is wanted by the next session."""
        self._is_closed = True
        for topic in self._topics.values():
            for reader in topic.readers:
                reader.close()

    async def _want(self, topic: Topic, name: str, since_ms: int | None) -> None:
        if topic.is_wanted:  # from now on, too, even if it was wanted before a crash by a clock that has gone back
            if since_ms is not None and since_ms < topic.since_ms:
                await self._look_back(topic, name, since_ms)
            return
        since_ms = self._clock_ms() if since_ms is None else since_ms
        await self._store.subscribe(topic.id, name, since_ms)
        await self._open_account(topic.id)
        topic.is_wanted, topic.name, topic.since_ms = True, name, since_ms
        self._chronicle.on_subscribed(topic.id, name)
        self._overlay.subscribe(topic.id)

    async def _look_back(self, topic: Topic, name: str, since_ms: int) -> None:
        """What was too old until now is wanted: its account begins anew, so that partners are asked for it."""
        await self._store.subscribe(topic.id, name, since_ms)
        possessed = await self._possessed(topic.id)
        topic.since_ms = since_ms
        self._ledger.close(topic.id)  # and open at once, since others note what comes without asking
        self._ledger.open(topic.id, possessed, self._overlay.now)

    async def _forget(self, topic: Topic) -> None:
        if not topic.is_wanted:
            return
        topic.is_for_good = False
        is_member = topic.member_until is not None  # `follow` leaves it alone while this change is under way
        if not is_member:
            self._overlay.unsubscribe(topic.id)
        try:
            await self._store.unsubscribe(topic.id)
        except BaseException:
            self._overlay.subscribe(topic.id)  # it is still wanted, then
            raise
        for reader in topic.readers:
            if isinstance(reader, Reader):
                reader.close()  # what it had read is forgotten, too
        name, topic.is_wanted, topic.name = topic.name, False, ""
        if not is_member:
            self._ledger.close(topic.id)
        self._chronicle.on_unsubscribed(topic.id, name)

    # Published in

    def publishing(self, topic_id: int) -> Publication:
        """`async with` this, an event is published: the topic has an account, and the node is a member."""
        return Publication(self, topic_id)

    async def begin_publication(self, topic_id: int) -> Topic:
        """Become or stay a member. Called by `Publication`, which ends it."""
        topic = self._topics.get(topic_id)
        if topic is None or topic.member_until is None or topic.changes:
            async with self._changing(topic_id) as topic:
                if self.state(topic_id) in (State.ABSENT, State.CARRIED):
                    await self._open_account(topic_id)
                if topic.member_until is None:
                    topic.member_until = self._overlay.now
                    self._overlay.join(topic_id)
                topic.publications += 1
        else:
            topic.publications += 1
        topic.member_until = self._overlay.now + self._config.membership_s
        return topic

    def end_publication(self, topic: Topic) -> None:
        """From now on its membership may end when its time is over."""
        topic.publications -= 1
        self._drop_if_over(topic)

    def on_published(self, event: StoredEvent, asked_us: int) -> None:
        """An event of this node's, asked for at this time, is on the disk: note it, and give it to our own readers.

        Called within `publishing`.
        """
        head = fingerprint(event.sequence, event.payload)
        self._ledger.note(event.topic, event.source, event.sequence, self._overlay.now, head)
        self._chronicle.on_published(event, asked_us)
        self.deliver(event, event.publisher.address, pulled=False)

    # Carried

    def is_carried(self, topic_id: int) -> bool:
        """Whether events of the topic are kept here. An account is opened if the overlay has just begun to carry it."""
        if topic_id in self._ledger:
            return True
        if not self._overlay.partners(topic_id):
            return False
        self._ledger.open(topic_id, (), self._overlay.now)
        return True

    def follow(self) -> None:
        """End memberships that are over, and keep accounts of exactly what is wanted, published in or carried."""
        now = self._overlay.now
        for topic in list(self._topics.values()):
            is_free = not topic.publications and not topic.changes
            if is_free and topic.member_until is not None and topic.member_until < now:
                topic.member_until = None
                if not topic.is_wanted:
                    self._overlay.unsubscribe(topic.id)
                self._drop_if_over(topic)
        carried = set(self._overlay.carried())
        for topic_id in carried:
            if topic_id not in self._ledger:
                self._ledger.open(topic_id, (), now)
        for topic_id in self._ledger.topics():
            if topic_id not in carried and self.state(topic_id) is State.CARRIED:
                self._ledger.close(topic_id)

    # What came

    def deliver(self, event: StoredEvent, sender: Address, *, pulled: bool) -> None:
        """Give an event that the disk has to all readers of its topic, if the topic is wanted."""
        topic = self._topics.get(event.topic)
        if topic is not None and topic.is_wanted:
            self._chronicle.on_delivered(event, sender, pulled=pulled)
            for reader in topic.readers:
                reader.put(event)

    def on_lost(self, topic_id: int, source: bytes, first: int, last: int) -> None:
        """Events were given up: readers in the order of arrival are told now, others when they come to the place."""
        topic = self._topics.get(topic_id)
        for reader in topic.readers if topic is not None else ():
            if isinstance(reader, Inbox):
                publisher, epoch = publisher_of(source), epoch_of_source(source)
                reader.put_gap(Gap(reader.topic, publisher, first, last, "given up", epoch))

    @asynccontextmanager
    async def _changing(self, topic_id: int) -> AsyncIterator[Topic]:
        """The topic, for one change of it at a time."""
        topic = self._topics.setdefault(topic_id, Topic(topic_id))
        topic.changes += 1
        try:
            async with topic.turn:
                yield topic
        finally:
            topic.changes -= 1
            self._drop_if_over(topic)

    def _drop_if_over(self, topic: Topic) -> None:
        if topic.is_over:
            self._topics.pop(topic.id, None)

    async def _open_account(self, topic_id: int) -> None:
        self._ledger.open(topic_id, await self._possessed(topic_id), self._overlay.now)

    async def _possessed(self, topic_id: int) -> list[Possessed]:
        return await self._store.possessed(topic_id, self._config.gap_limit)
