"""Reads a topic in order: of every publisher one event after the other, and in the place of what is lost a gap.

Theory. Every stream (a publisher in one of its epochs) of the topic is a line of its own, numbered without gaps, and
the reader has a place in each. It walks along every line: what is there is handed over; for a number that is not, the
ledger knows whether it may still come.

    number is                                              then
    in the store                                           the event is handed over
    removed by retention (the stream's floor)              Gap "retention", or "evicted"
    given up, or over, though it was owed                  Gap "given up"
    refused by a validator                                 it is passed over: the application does not want it
    missing, or on its way to the disk                     this stream waits, `order_s` at most; then Gap "late"
    before the first event that a new stream ever showed:
        nobody has said yet whether it is wanted           this stream waits, `order_s` at most, and passes over it
        it is over because it is older than is wanted      it is passed over: it was never owed

Invariants:
1. Of one publisher and epoch, events and gaps come in the order of its numbers, and cover each number once in a session
   of the reader, from its place on. A later epoch waits while an earlier one, as far as is known, has events to come.
2. At most `size` events wait in memory; the rest waits in the store. With a policy that drops, what comes while so many
   wait is dropped or drops others, and is said (`Lagged`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from grapevine.model import arguments
from grapevine.model.identity import PeerId
from grapevine.net.envelope import Event, Gap, Loss, opened
from grapevine.net.inbox import Lagged, Policy, policy_of
from grapevine.net.ledger import Account
from grapevine.net.positions import Place
from grapevine.net.stamp import epoch_of_source, publisher_of
from grapevine.net.store import Store, Stretch
from grapevine.net.stored_event import StoredEvent

_BATCH = 256  # events read from the store at once
_LOOK_AGAIN_S = 0.25  # at a stream that waits for a number: recovery may have given it up
_LOOK_SOON_S = 0.02  # at a stream of which partners are being asked where it begins
# Numbers of an account that do not come, and why they are lost; what a validator refused is none.
_FATES: tuple[tuple[Literal["given_up", "refused"], Loss | None], ...] = (("given_up", "given up"), ("refused", None))


class Accounts(Protocol):
    """What a reader asks the ledger."""

    def account(self, topic: int, source: bytes) -> Account | None:
        """What is known of a stream, not to be changed; None: nothing."""


@dataclass(slots=True)
class Line:
    """One stream as the reader walks along it."""

    place: Place
    publisher: PeerId
    epoch: int
    next: int = 1  # the first number that was not handed over
    is_owed: bool = False  # from `next` on everything is: the reader has been somewhere in this stream
    newest: int = 0  # the highest number that came while the reader was here
    has_news: bool = False  # something came since the store was asked
    waits_since: float | None = None  # for the number `next`, which is not here


class OrderedReader:
    """Events of one topic for one reader without a name. Made by `Node.subscribe`, used with `async with`.

    `enter` and `leave` are the node's: as long as the reader is there, the topic is wanted (`topics`).
    """

    def __init__(
        self,
        topic: str,
        topic_id: int,
        store: Store,
        ledger: Accounts,
        *,
        size: int,
        since_ms: int | None,
        order_s: float,
        enter: Callable[[OrderedReader], Awaitable[None]],
        leave: Callable[[OrderedReader], Awaitable[None]],
        policy: Policy = "block",
    ) -> None:
        self.topic, self.topic_id, self.since_ms = topic, topic_id, since_ms
        self.dropped = 0  # in all
        self._store, self._ledger, self._order_s = store, ledger, order_s
        self._size, self._policy = arguments.whole("size", size, low=1), policy_of(policy)
        self._enter, self._leave = enter, leave
        self._lines: dict[bytes, Line] = {}  # by source
        self._epochs: dict[PeerId, list[Line]] = {}  # the same, by publisher
        self._behind: dict[bytes, Line] = {}  # those whose next events are to be read from the store
        self._has_strangers = True  # there may be streams that are not among the lines
        self._queue: deque[Event | Gap] = deque()
        self._lagged = self._unread = 0  # to be said before the next event; when the reader was closed too early
        self._news = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await self._enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:  # in a task of its own: web frameworks cancel again and again, and a reader that is gone must have left
            await asyncio.shield(asyncio.ensure_future(self._finish()))
        finally:
            self.close()

    async def _finish(self) -> None:
        await self._leave(self)

    # What the node calls

    async def begin(self) -> None:
        """Begin with what came since `since_ms`, if that was asked for, otherwise with what comes from now on.

        Called once by the node, after the topic is wanted.
        """
        for place in await self._store.beginnings(self.topic_id, self.since_ms):
            line = self._add_line(place)
            if self.since_ms is not None:  # its events are in the store already
                self._behind[place.source] = line

    def put(self, event: StoredEvent) -> None:
        """An event is in the store. Called by the node for every one of the topic; never waits."""
        line = self._lines.get(event.source)
        if line is None:
            self._has_strangers = True
        elif event.sequence != line.next or event.source in self._behind or self._must_wait(line):
            self._behind[event.source] = line
            line.has_news, line.newest = True, max(line.newest, event.sequence)
        else:
            self._hand_over(line, event)
        self._news.set()

    def _must_wait(self, line: Line) -> bool:
        is_full = len(self._queue) >= self._size and self._policy == "block"
        return is_full or self._is_held_up(line)

    def close(self) -> None:
        """Nothing more comes; what is queued can still be taken, and what was not read of the store counts as dropped.
        Called when the reader leaves, or the node closes."""
        if not self._is_closed:
            self._is_closed = True
            self._unread = sum(max(line.newest - line.next + 1, 0) for line in self._behind.values())
        self._news.set()

    # What the application calls

    def __aiter__(self) -> AsyncIterator[Event | Gap]:
        return self

    async def __anext__(self) -> Event | Gap:
        """The next event, or gap; Lagged if some were dropped before it."""
        while not self._queue and not self._lagged and not self._is_closed:
            self._news.clear()
            await self._look()
            if not self._queue and not self._is_closed:
                await self._wait()
        if self._lagged:
            lagged, self._lagged = self._lagged, 0
            raise Lagged(lagged)
        if self._queue:
            return self._queue.popleft()
        if self._unread:
            unread, self._unread = self._unread, 0
            raise Lagged(unread)
        raise StopAsyncIteration

    async def get(self, timeout: float | None = None) -> Event | Gap:
        """One event or gap; TimeoutError if none comes in time."""
        async with asyncio.timeout(timeout):
            return await self.__anext__()

    # Looking for events

    async def _places(self) -> list[Place]:
        """Every stream of the topic; where it begins in those that are new to it."""
        return await self._store.streams(self.topic_id)

    async def _look(self) -> None:
        """Queue what can be handed over, of every stream that is behind, as far as there is room."""
        if self._has_strangers:
            await self._meet_strangers()
        waiting = list(self._behind.values())
        while waiting:
            held_up = []
            for line in waiting:
                if self._is_held_up(line):
                    held_up.append(line)
                elif len(self._queue) < self._size and not self._is_closed:
                    await self._walk(line)
                    if self._behind.pop(line.place.source, None) is not None:
                        self._behind[line.place.source] = line  # others first, the next time
            if len(held_up) == len(waiting):
                break
            waiting = held_up  # perhaps no longer

    def _is_held_up(self, line: Line) -> bool:
        """Whether an earlier epoch of the same publisher comes first."""
        epochs = self._epochs[line.publisher]
        if len(epochs) == 1:
            return False
        return any(other.epoch < line.epoch and other.place.source in self._behind for other in epochs)

    async def _meet_strangers(self) -> None:
        self._has_strangers = False
        try:
            places = await self._places()
        except BaseException:
            self._has_strangers = True
            raise
        for place in places:
            if place.source not in self._lines:
                self._behind[place.source] = self._add_line(place)

    def _add_line(self, place: Place) -> Line:
        publisher, is_owed = publisher_of(place.source), place.next is not None
        line = Line(place, publisher, epoch_of_source(place.source), place.next or 1, is_owed)
        self._lines[place.source] = line
        self._epochs.setdefault(publisher, []).append(line)
        return line

    async def _walk(self, line: Line) -> None:
        """Go along a stream from where the reader is until room, events or patience end."""
        line.has_news = False
        most = min(_BATCH, self._size - len(self._queue))
        stretch = await self._store.stretch(line.place, self.topic_id, line.next, most)
        for event in stretch.events:
            if event.sequence > line.next and not self._pass(line, event.sequence - 1, stretch):
                return
            if event.sequence == line.next:  # otherwise it was handed over while the store was asked
                self._hand_over(line, event)
        is_through = len(stretch.events) < most and (
            stretch.last < line.next or self._pass(line, stretch.last, stretch)
        )
        if is_through and not line.has_news:
            self._behind.pop(line.place.source, None)

    def _hand_over(self, line: Line, event: StoredEvent) -> None:
        line.next, line.is_owed, line.waits_since = event.sequence + 1, True, None
        if len(self._queue) >= self._size and self._policy != "block":
            self.dropped += 1
            self._lagged += 1
            if self._policy == "drop-new":
                return
            self._queue.popleft()
        self._queue.append(opened(self.topic, event))

    def _pass(self, line: Line, last: int, stretch: Stretch) -> bool:
        """Pass over the numbers up to the last, none of which is in the store; False if one of them may still come."""
        account = self._ledger.account(self.topic_id, line.place.source) or Account()
        while line.next <= last:
            until, loss = self._fate(line, account, last, stretch)
            if loss is None and until < line.next:
                return False
            if loss is not None:
                self._queue.append(Gap(self.topic, line.publisher, line.next, until, loss, line.epoch))
                line.is_owed = True
            line.next, line.waits_since = until + 1, None
        return True

    def _fate(self, line: Line, account: Account, last: int, stretch: Stretch) -> tuple[int, Loss | None]:
        """Up to where the numbers from `next` on have the same fate, and why they are lost (None: they never were
        owed); `next - 1` if the first of them may still come."""
        if line.next <= stretch.floor:
            is_aged = line.next <= stretch.aged
            return min(last, stretch.aged if is_aged else stretch.floor), "retention" if is_aged else "evicted"
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
        if line.next <= account.before and not line.is_owed:
            return min(last, account.before), None
        return last, "late"  # all of them have been waited for as long

    async def _wait(self) -> None:
        """Until something comes, or it is time to look again at what a stream waits for."""
        waiting = [line for line in self._behind.values() if line.waits_since is not None]
        patience = None if not waiting else _LOOK_AGAIN_S
        if any(self._is_open(line) for line in waiting):
            patience = _LOOK_SOON_S
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return

    def _is_open(self, line: Line) -> bool:
        account = self._ledger.account(self.topic_id, line.place.source)
        return account is not None and not account.is_settled
