"""A named reader: a subscription that outlives its program. It goes on where it was, and is told what it cannot get.

    async with node.subscribe("orders", name="billing") as events:
        async for event in events:
            if isinstance(event, Gap):
                ...  # events first … last of this publisher are gone, for this reason
            else:
                ...  # handled; asking for the next event acknowledges this one

Theory. The topic stays wanted when the reader leaves, so the node keeps what comes. Every stream (publisher) of the
topic is a line of its own, numbered without gaps, and the reader has a position in each (`positions`). It walks along
every line: what is there is handed over; for a number that is not, the ledger knows whether it may still come.

    number is                                              then
    in the store                                           the event is handed over
    removed by retention (the stream's floor)              Gap "retention"
    given up, or over, though it was owed                  Gap "given up"
    refused by a validator                                 it is passed over: the application does not want it
    missing, or on its way to the disk                     this stream waits, `order_s` at most; then Gap "late"
    before the first event that a new stream ever showed,
    and over because it is older than is wanted            it is passed over: it was never owed

Invariants:
1. Of one publisher, events and gaps come in the order of its numbers, and cover each number once in a session of the
   reader, from its position on.
2. A position on the disk is never beyond what was acknowledged. So whatever is killed when, an event that was handed
   over and not acknowledged comes again: at least once. `Event.id` tells those that were handled apart.
3. At most `size` events wait in memory; the rest waits in the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self, cast, get_args

from grapevine.model import arguments
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.model.settings import none_of
from grapevine.net.envelope import Event, Gap, Loss, opened
from grapevine.net.event_file import StoredEvent
from grapevine.net.ledger import Account
from grapevine.net.store import Store

Acknowledging = Literal["auto", "explicit"]
NAME_CHARACTERS = 256
_BATCH = 256  # events read from the store at once
_LOOK_AGAIN_S = 0.25  # at a stream that waits for a number: recovery may have given it up
_log = logging.getLogger(__name__)
# Numbers of an account that do not come, and why they are lost; what a validator refused is none.
_FATES: tuple[tuple[Literal["given_up", "refused"], Loss | None], ...] = (("given_up", "given up"), ("refused", None))


class Accounts(Protocol):
    """What a reader asks the ledger."""

    def account(self, topic: int, publisher: bytes) -> Account | None:
        """What is known of a stream, not to be changed; None: nothing."""


@dataclass(slots=True)
class _Line:
    """One stream as the reader walks along it."""

    stream: int  # its number in the store
    publisher: PeerId
    next: int = 1  # the first number that was not handed over
    is_owed: bool = False  # from `next` on everything is: the reader has been somewhere in this stream
    has_news: bool = False  # something came since the store was asked
    waits_since: float | None = None  # for the number `next`, which is not here


class Reader:
    """Events of one topic for one named reader; the module says how it is used. Made by `Node.subscribe`.

    `enter` and `leave` are the node's. One program at a time may read under a name.
    """

    dropped = 0  # it drops nothing: what is not read waits in the store

    def __init__(
        self,
        topic: str,
        topic_id: int,
        name: str,
        store: Store,
        ledger: Accounts,
        *,
        size: int,
        acknowledging: Acknowledging,
        since_ms: int | None,
        order_s: float,
        enter: Callable[[Reader], Awaitable[int]],
        leave: Callable[[Reader], Awaitable[None]],
    ) -> None:
        self.topic, self.topic_id, self.name, self.since_ms = topic, topic_id, name, since_ms
        self._store, self._ledger, self._size, self._order_s = store, ledger, size, order_s
        self._is_auto, self._enter, self._leave = acknowledging == "auto", enter, leave
        self._reader = 0  # its number in the store
        self._lines: dict[PeerId, _Line] = {}
        self._behind: dict[PeerId, _Line] = {}  # those whose next events are to be read from the store
        self._has_strangers = True  # there may be streams that are not among the lines
        self._queue: deque[Event | Gap] = deque()
        self._taken: Event | Gap | None = None  # what the application has in hand
        self._unwritten: dict[int, int] = {}  # positions that are not on the disk, by stream
        self._turn = asyncio.Lock()  # of whoever writes positions
        self._writing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        self._reader = await self._enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaving without an error acknowledges what was in hand; with one it comes again."""
        if kind is None and self._is_auto:
            self._note_taken()
        try:  # in a task of its own, as an inbox does
            await asyncio.shield(asyncio.ensure_future(self._finish()))
        finally:
            self.close()

    async def _finish(self) -> None:
        try:
            await self._write_positions()
        except GrapevineError as failure:  # events come again, as they would after a crash
            _log.warning("the reader %r of %r left without noting how far it came: %s", self.name, self.topic, failure)
        await self._leave(self)

    # What the node calls

    def put(self, event: StoredEvent) -> None:
        """An event is in the store. Called by the node for every one of the topic; never waits."""
        line = self._lines.get(event.publisher)
        if line is None:
            self._has_strangers = True
        elif line.publisher in self._behind or event.sequence != line.next or len(self._queue) >= self._size:
            self._behind[line.publisher] = line
            line.has_news = True
        else:
            self._hand_over(line, event)
        self._news.set()

    def close(self) -> None:
        """Nothing more is handed over; what was not is owed to the next who reads under this name."""
        self._is_closed = True
        self._queue.clear()
        self._news.set()

    # What the application calls

    def __aiter__(self) -> AsyncIterator[Event | Gap]:
        return self

    async def __anext__(self) -> Event | Gap:
        """The next event, or gap. With automatic acknowledgement, asking for it acknowledges the one before."""
        if self._is_auto and self._taken is not None:
            self._note_taken()
            self._write_soon()
        while not self._queue:
            if self._is_closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._look()
            if not self._queue and not self._is_closed:
                await self._wait()
        if self._is_closed:
            raise StopAsyncIteration
        self._taken = self._queue.popleft()
        return self._taken

    async def get(self, timeout: float | None = None) -> Event | Gap:
        """One event or gap; TimeoutError if none comes in time."""
        async with asyncio.timeout(timeout):
            return await self.__anext__()

    async def ack(self, item: Event | Gap) -> None:
        """This event or gap was handled, and so was everything of its publisher before it: none of it comes again.

        It is on the disk when this returns; StoreError if the disk refuses. UsageError for what this reader never got.
        """
        if not isinstance(item, Event | Gap) or item.topic != self.topic:
            raise UsageError(f"{item!r}: was not given to the reader {self.name!r} of {self.topic!r}; ack what it gave")
        await self.ack_up_to(item.publisher, _last_of(item))

    async def ack_up_to(self, publisher: PeerId, sequence: int) -> None:
        """As `ack`, of the event or gap that ends with this sequence."""
        line = self._lines.get(publisher)
        if line is None or not 0 < sequence < line.next:
            raise UsageError(
                f"event {sequence} of {publisher} was not given to the reader {self.name!r} of {self.topic!r};"
                " ack what it gave"
            )
        self._note(publisher, sequence)
        await self._write_positions()

    # Looking for events

    async def _look(self) -> None:
        """Queue what can be handed over, of every stream that is behind, as far as there is room."""
        if self._has_strangers:
            await self._meet_strangers()
        for line in list(self._behind.values()):
            if len(self._queue) < self._size and not self._is_closed:
                await self._walk(line)
                if self._behind.pop(line.publisher, None) is not None:
                    self._behind[line.publisher] = line  # others first, the next time

    async def _meet_strangers(self) -> None:
        self._has_strangers = False
        try:
            places = await self._store.places(self._reader)
        except BaseException:
            self._has_strangers = True
            raise
        for place in places:
            publisher = PeerId(place.publisher)
            if publisher not in self._lines:
                line = _Line(place.stream, publisher, place.next or 1, place.next is not None)
                self._lines[publisher] = self._behind[publisher] = line

    async def _walk(self, line: _Line) -> None:
        """Go along a stream from where the reader is until room, events or patience end."""
        line.has_news = False
        most = min(_BATCH, self._size - len(self._queue))
        found, last, floor = await self._store.stretch(line.stream, line.publisher, self.topic_id, line.next, most)
        for event in found:
            if event.sequence > line.next and not self._pass(line, event.sequence - 1, floor):
                return
            self._hand_over(line, event)
        is_through = len(found) < most and (last < line.next or self._pass(line, last, floor))
        if is_through and not line.has_news:
            self._behind.pop(line.publisher, None)

    def _hand_over(self, line: _Line, event: StoredEvent) -> None:
        self._queue.append(opened(self.topic, event))
        line.next, line.is_owed, line.waits_since = event.sequence + 1, True, None

    def _pass(self, line: _Line, last: int, floor: int) -> bool:
        """Pass over the numbers up to the last, none of which is in the store; False if one of them may still come."""
        account = self._ledger.account(self.topic_id, line.publisher.full) or Account()
        while line.next <= last:
            until, loss = self._fate(line, account, last, floor)
            if loss is None and until < line.next:
                return False
            if loss is not None:
                self._queue.append(Gap(self.topic, line.publisher, line.next, until, loss))
                line.is_owed = True
            line.next, line.waits_since = until + 1, None
        return True

    def _fate(self, line: _Line, account: Account, last: int, floor: int) -> tuple[int, Loss | None]:
        """Up to where the numbers from `next` on have the same fate, and why they are lost (None: they never were
        owed); `next - 1` if the first of them may still come."""
        if line.next <= floor:
            return min(last, floor), "retention"
        if line.next <= account.floor:
            return min(last, account.floor), "given up" if line.is_owed else None
        for numbers, loss in _FATES:
            alike = getattr(account, numbers)
            if line.next in alike:
                until = line.next
                while until < last and until + 1 in alike:
                    until += 1
                return until, loss
        now = asyncio.get_running_loop().time()
        line.waits_since = now if line.waits_since is None else line.waits_since
        if now - line.waits_since < self._order_s:
            return line.next - 1, None
        return last, "late"  # all of them have been waited for as long

    async def _wait(self) -> None:
        """Until something comes, or it is time to look again at what a stream waits for."""
        waits = any(line.waits_since is not None for line in self._behind.values())
        try:
            async with asyncio.timeout(_LOOK_AGAIN_S if waits else None):
                await self._news.wait()
        except TimeoutError:
            return

    # Acknowledging

    def _note_taken(self) -> None:
        if self._taken is not None:
            self._note(self._taken.publisher, _last_of(self._taken))
            self._taken = None

    def _note(self, publisher: PeerId, sequence: int) -> None:
        stream = self._lines[publisher].stream
        self._unwritten[stream] = max(self._unwritten.get(stream, 0), sequence + 1)

    def _write_soon(self) -> None:
        """Write positions beside what the application does; while one is written, others come together."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_or_warn())

    async def _write_or_warn(self) -> None:
        try:
            await self._write_positions()
        except GrapevineError as failure:  # it is tried again with the next event; what is not noted comes again
            _log.warning("the reader %r of %r did not note how far it came: %s", self.name, self.topic, failure)

    async def _write_positions(self) -> None:
        async with self._turn:
            while self._unwritten:
                batch, self._unwritten = self._unwritten, {}
                try:
                    await self._store.move_reader(self._reader, batch)
                except BaseException:
                    self._unwritten = batch | self._unwritten  # newer ones win
                    raise


def _last_of(item: Event | Gap) -> int:
    return item.sequence if isinstance(item, Event) else item.last


def reader_name(text: object) -> str:
    """A reader's name; UsageError for anything but a text of a sensible length."""
    name = arguments.text("name", text)
    if len(name) > NAME_CHARACTERS:
        raise UsageError(f"name of {len(name)} characters: needs {NAME_CHARACTERS} at most")
    return name


def acknowledging(text: str) -> Acknowledging:
    """A way of acknowledging by its name; UsageError if there is none."""
    if text not in get_args(Acknowledging):
        raise UsageError(none_of(text, get_args(Acknowledging), "ack="))
    return cast(Acknowledging, text)
