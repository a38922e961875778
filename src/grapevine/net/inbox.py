"""Events for an application in the order in which they come: a bounded queue that never loses one in silence.

What nobody has, so that it is given up, is said by a `Gap` when that happens. (`ordered_reader` reads in the order of
the publishers' numbers.)

What happens when the application is slower than its topic is its choice: the oldest events go (`drop-oldest`), the new
ones do (`drop-new`), or none (`block`): then the queue is filled again from the node's store, at the application's
pace. What went is said: the iteration raises `Lagged`, and can be taken up again. With `block` that happens if events
went from the store before they were read, or when the inbox is closed before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Literal, Self, cast, get_args

from grapevine.model.arguments import whole
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.settings import none_of
from grapevine.net.envelope import Event, Gap, opened
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent

Policy = Literal["block", "drop-oldest", "drop-new"]
_BATCH = 256  # events read from the store at once


class Lagged(GrapevineError):  # noqa: N818 - a signal
    """The application was too slow: so many events did not reach it. They are in the node's store."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} events were dropped because nobody took them; read faster, or use policy='block'")
        self.count = count


class Inbox:
    """Events of one topic for one reader: `async with node.subscribe(topic, ordered=False) as events: …`

    `enter` and `leave` are the node's: as long as the reader is there, the topic is wanted (`topics`).
    """

    def __init__(
        self,
        topic: str,
        topic_id: int,
        store: Store,
        *,
        size: int,
        policy: Policy,
        since_ms: int | None,
        enter: Callable[[Inbox], Awaitable[None]],
        leave: Callable[[Inbox], Awaitable[None]],
    ) -> None:
        self.topic, self.topic_id = topic, topic_id
        self.dropped = 0  # in all
        self._store, self._size, self._policy = store, whole("size", size, low=1), policy_of(policy)
        self.since_ms, self._enter, self._leave = since_ms, enter, leave
        self._queue: deque[StoredEvent | Gap] = deque()
        self._lagged = 0
        self._behind = since_ms is not None  # the next events are in the store, not in the queue
        self._left = self._first_left = 0  # events that came meanwhile and were not read yet; arrival of the first
        self._cursor = self._newest = 0  # the last arrival that was queued, and the last of all
        self._news = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:  # in a task of its own: web frameworks cancel again and again, and a reader that is gone must have left
            await asyncio.shield(asyncio.ensure_future(self._leave(self)))
        finally:
            self.close()

    async def begin(self) -> None:
        """Start with what came since `since_ms`, if that was asked for, otherwise with what comes from now on.

        Called once by the node, after the topic is wanted.
        """
        if self.since_ms is not None:
            self._cursor = await self._store.last_arrival(self.topic_id, self.since_ms)

    def put(self, event: StoredEvent) -> None:
        """Queue an event that the store has. Called by the node, in the order of arrivals; never waits."""
        if self._closed or event.arrival <= self._cursor:
            return
        self._newest = event.arrival
        self._behind = self._behind or (self._policy == "block" and len(self._queue) >= self._size)
        if self._behind:
            if not self._left:
                self._first_left = event.arrival
            self._left += 1
            return
        if len(self._queue) >= self._size:
            self._dropped(1)
            if self._policy == "drop-new":
                return
            self._drop_oldest()
        self._cursor = event.arrival
        self._queue.append(event)
        self._news.set()

    def put_gap(self, gap: Gap) -> None:
        """These were given up. Called by the node when that happens; a gap is never dropped."""
        if not self._closed:
            self._queue.append(gap)
            self._news.set()

    def close(self) -> None:
        """Nothing more comes; what is queued can still be taken. Called when the reader leaves, or the node closes."""
        self._closed = True
        self._news.set()

    def __aiter__(self) -> AsyncIterator[Event | Gap]:
        return self

    async def __anext__(self) -> Event | Gap:
        """The next event, or gap; Lagged if some were dropped before it."""
        while True:
            if self._lagged:
                lagged, self._lagged = self._lagged, 0
                raise Lagged(lagged)
            if self._queue:
                item = self._queue.popleft()
                return item if isinstance(item, Gap) else opened(self.topic, item)
            if self._closed:
                if not self._left:
                    raise StopAsyncIteration
                self._dropped(self._left)
                self._left = 0
                continue
            if self._behind:
                await self._catch_up()
            else:
                self._news.clear()
                await self._news.wait()

    async def get(self, timeout: float | None = None) -> Event | Gap:
        """One event or gap; TimeoutError if none comes in time."""
        async with asyncio.timeout(timeout):
            return await self.__anext__()

    async def _catch_up(self) -> None:
        """Read on in the store; where it ends, the queue goes on. What retention took meanwhile counts as dropped."""
        cursor, newest = self._cursor, self._newest
        found = await self._store.arrivals(self.topic_id, cursor, min(_BATCH, self._size))
        if self._cursor != cursor:
            return  # somebody else reads here, too
        if found:
            self._queue.extend(found)
            self._cursor = found[-1].arrival
            self._left = max(0, self._left - sum(self._first_left <= event.arrival <= self._newest for event in found))
        elif self._newest == newest:  # otherwise one came while the store was asked
            self._behind, self._cursor = False, max(cursor, newest)
            self._dropped(self._left)  # retention was faster than the application
            self._left = 0

    def _drop_oldest(self) -> None:
        for position, item in enumerate(self._queue):
            if isinstance(item, StoredEvent):
                del self._queue[position]
                return

    def _dropped(self, count: int) -> None:
        self.dropped += count
        self._lagged += count


def policy_of(text: str) -> Policy:
    """A policy by its name; UsageError if there is none."""
    if text not in get_args(Policy):
        raise UsageError(none_of(text, get_args(Policy), "policy="))
    return cast(Policy, text)
