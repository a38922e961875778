"""Topics by name, and what they retain: what wildcards and new subscriptions need, and an overlay of topics has not.

Theory. Nodes know topics by number; nobody has a list of names. So doors publish one: in the topic
`$directory/<first level>` every door announces, before the first event, the names in which its clients publish (and
those that other programs of its node use), and copies of messages that are to be retained. The topic `$directory` names
the first levels. These are topics like others: gossiped, signed, kept as long as events are, and recovered by whoever
comes later. A door reads the directories that its clients' filters need.

What a wildcard sees, then: names that this node uses, and those that a door announced within the retention of events.
What a topic retains: the newest message, by the clocks of its publishers, that was published to be retained. Anybody
who may publish may announce and retain.

Bounds: `directory_names` and `retained_bytes` of each directory, and `DIRECTORIES` of them; the oldest names go first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from time import time
from typing import Annotated

import msgspec

from grapevine.model.errors import GrapevineError
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.doors.mqtt.filters import first_level, is_name, matches
from grapevine.net.doors.mqtt.message import Message
from grapevine.net.envelope import Event, Gap
from grapevine.net.inbox import Inbox, Lagged
from grapevine.net.node import Node, NoPath
from grapevine.net.stamp import source_of

ROOT = "$directory"
DIRECTORIES = 1_000  # read at a time
_AGAIN_S = 12 * 3_600.0  # after which a name is announced anew: earlier than retention takes the announcement
_BURST_S = 0.2  # for announcements that come together
_log = logging.getLogger(__name__)


_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Entry(msgspec.Struct, omit_defaults=True):
    """What is published in a directory: a name that is in use, and perhaps what it retains from now on."""

    name: str
    retained: bytes | None = None  # the payload of an event (`message.packed`); b"": nothing any more
    sequence: _Number = 0  # of that event, by the same publisher
    epoch: _Number = 0


@dataclass(slots=True)
class Known:
    """What is known of a name."""

    since: float  # the time of its first announcement, by its publisher's clock, and never in the future
    stamp: tuple[float, bytes, int] = (0.0, b"", 0)  # of what is retained: the newest wins
    retained: Message | None = None
    bytes: int = 0


@dataclass(slots=True)
class _Shelf:
    """One directory that is being read."""

    opened: float
    names: OrderedDict[str, Known] = field(default_factory=OrderedDict)
    bytes: int = 0
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    task: asyncio.Task[None] | None = None


_decoder = msgspec.msgpack.Decoder(Entry)


class Directory:
    """All directories that one door reads and writes.

    `on_news` is told of every name that becomes known, `on_late` of a retained message that becomes known within
    `settle_s` after its directory was opened: it came too late for those who had subscribed before.
    """

    def __init__(
        self,
        node: Node,
        config: DoorConfig,
        on_news: Callable[[str, Known], None],
        on_late: Callable[[Message], None],
    ) -> None:
        self._node, self._config, self._on_news, self._on_late = node, config, on_news, on_late
        self._shelves: dict[str, _Shelf] = {}
        self._reads_all = False
        self._announced: OrderedDict[str, float] = OrderedDict()
        self._opening: set[asyncio.Task[None]] = set()
        self._late: dict[str, asyncio.TimerHandle] = {}

    # Reading

    async def open_for(self, filter: str) -> None:
        """Read the directories in which a filter may find names."""
        first = first_level(filter)
        if first is not None:
            await self._open(f"{ROOT}/{first}")
            return
        self._reads_all = True
        await self._open(ROOT)
        for name in list(self._shelves[ROOT].names) if ROOT in self._shelves else ():
            await self._open(f"{ROOT}/{name}")

    async def close_all_but(self, filters: Iterator[str]) -> None:
        """Read no longer what none of these filters needs."""
        firsts = {first_level(filter) for filter in filters}
        self._reads_all = None in firsts
        if self._reads_all:
            return
        needed = {f"{ROOT}/{first}" for first in firsts}
        for topic in [topic for topic in self._shelves if topic not in needed]:
            await self._close(self._shelves.pop(topic))

    async def close(self) -> None:
        """Read nothing more."""
        for pending in (*self._opening, *self._late.values()):
            pending.cancel()
        while self._shelves:
            await self._close(self._shelves.popitem()[1])

    def found(self, filter: str) -> Iterator[tuple[str, Known]]:
        """Names that match a filter, and what is known of them."""
        first = first_level(filter)
        topics = [f"{ROOT}/{first}"] if first is not None else [topic for topic in self._shelves if topic != ROOT]
        for topic in topics:
            shelf = self._shelves.get(topic)
            for name, known in list(shelf.names.items()) if shelf is not None else ():
                if matches(filter, name):
                    yield name, known

    async def _open(self, topic: str) -> None:
        if topic in self._shelves:
            return
        if len(self._shelves) >= DIRECTORIES:
            _log.warning("%d directories are read already: wildcards and retained messages miss others", DIRECTORIES)
            return
        shelf = self._shelves[topic] = _Shelf(asyncio.get_running_loop().time())
        reading = self._node.subscribe(topic, since="beginning", ordered=False)  # what is newest is said by times
        inbox = await shelf.stack.enter_async_context(reading)
        shelf.task = asyncio.create_task(self._read(topic, inbox, shelf))

    async def _close(self, shelf: _Shelf) -> None:
        if shelf.task is not None:
            shelf.task.cancel()
        await shelf.stack.aclose()

    async def _read(self, topic: str, inbox: Inbox, shelf: _Shelf) -> None:
        while True:
            try:
                item = await inbox.get()
                if isinstance(item, Gap):
                    _log.info("announcements %d to %d in %s are lost", item.first, item.last, topic)
                else:
                    self._take(topic, shelf, item)
            except Lagged as lag:
                _log.warning("%d announcements in %s were missed", lag.count, topic)
            except StopAsyncIteration:
                return

    def _take(self, topic: str, shelf: _Shelf, event: Event) -> None:
        try:
            entry = _decoder.decode(event.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # somebody wrote something else there
        if topic == ROOT:
            if f"{ROOT}/{entry.name}" not in self._shelves and entry.name not in shelf.names:
                shelf.names[entry.name] = Known(min(event.time, time()))
                self._forget_oldest(shelf)
                if self._reads_all:
                    self._soon(self._open(f"{ROOT}/{entry.name}"))
            return
        if not is_name(entry.name) or topic != f"{ROOT}/{first_level(entry.name)}":
            return
        is_new = entry.name not in shelf.names
        known = shelf.names.setdefault(entry.name, Known(min(event.time, time())))
        is_retained = entry.retained is not None and self._retain(shelf, known, event, entry)
        is_late = is_retained and asyncio.get_running_loop().time() < shelf.opened + self._config.settle_s
        self._forget_oldest(shelf)
        if is_new:
            self._on_news(entry.name, known)
        if is_late and entry.name not in self._late:
            self._late[entry.name] = asyncio.get_running_loop().call_later(_BURST_S, self._tell_late, entry.name, known)

    def _tell_late(self, name: str, known: Known) -> None:
        """Of several that came together, the newest is what is retained."""
        del self._late[name]
        if known.retained is not None:
            self._on_late(known.retained)

    def _retain(self, shelf: _Shelf, known: Known, event: Event, entry: Entry) -> bool:
        """Take what is retained, if it is newer; whether it is, and is a message."""
        stamp = min(event.time, time()), source_of(event.publisher, event.epoch), event.sequence
        if stamp <= known.stamp or entry.retained is None:
            return False
        known.stamp, known.retained = stamp, None
        shelf.bytes += len(entry.retained) - known.bytes
        known.bytes = len(entry.retained)
        if not entry.retained:
            return False
        retained = Event(entry.name, event.publisher, max(1, entry.sequence), event.time, entry.retained, entry.epoch)
        known.retained = Message.of(retained)
        return True

    def _forget_oldest(self, shelf: _Shelf) -> None:
        while len(shelf.names) > self._config.directory_names or shelf.bytes > self._config.retained_bytes:
            _, known = shelf.names.popitem(last=False)
            shelf.bytes -= known.bytes

    def _soon(self, work: Awaitable[None]) -> None:
        async def done() -> None:
            with suppress(
                GrapevineError
            ):  # the node closes, or its disk refuses: it is tried again with the next filter
                await work

        task = asyncio.create_task(done())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    # Writing

    def is_announced(self, name: str) -> bool:
        """Whether others were told of a name lately."""
        at = self._announced.get(name)
        return at is not None and asyncio.get_running_loop().time() < at + _AGAIN_S

    async def announce(self, name: str) -> None:
        """Tell others that a name is in use. Called before its first event, so that who reads all of a directory can
        ask for that event."""
        if self.is_announced(name) or not is_name(name):
            return
        self._announced[name] = asyncio.get_running_loop().time()
        self._announced.move_to_end(name)
        while len(self._announced) > self._config.directory_names:
            self._announced.popitem(last=False)
        first = first_level(name) or ""
        if not self.is_announced(f"{ROOT}/{first}"):
            self._announced[f"{ROOT}/{first}"] = asyncio.get_running_loop().time()
            await self._publish(ROOT, Entry(first))
        await self._publish(f"{ROOT}/{first}", Entry(name))

    async def retain(self, event: Event, content: bytes) -> None:
        """From now on the topic of an event of this node retains it; b"": nothing."""
        await self._publish(
            f"{ROOT}/{first_level(event.topic)}", Entry(event.topic, content, event.sequence, event.epoch)
        )

    async def _publish(self, topic: str, entry: Entry) -> None:
        try:
            await self._node.publish(topic, msgspec.msgpack.encode(entry), timeout=0.0)
        except NoPath:
            return  # it is kept, and spreads when there is somebody
        except GrapevineError as error:
            self._announced.pop(entry.name, None)
            _log.warning("%s: nothing could be announced: %s", topic, error)
