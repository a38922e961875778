"""Answers partners who ask for events that they miss: the other side of `recovery`.

What a partner may cost is bounded: gaps that are read of a question, questions that wait, events and bytes of an
answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from grapevine.model.errors import GrapevineError, PeerError
from grapevine.net.conduct import GARBAGE
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.messages import Kept, Want
from grapevine.net.stamp import SOURCE_BYTES
from grapevine.net.store import Store
from grapevine.net.stored_event import LAST_SEQUENCE, StoredEvent

_EVENTS = 500  # in one answer
_ANSWER_BYTES = 256 << 10
_EVENT_BYTES = 16  # at most, beside the envelope
_GAPS = 500  # that are read of one question
_WAITING = 64  # questions of one partner


class Serving:
    """What one node gives to others of what it keeps. `clock_ms` is its clock of arrivals."""

    def __init__(self, config: NodeConfig, store: Store, connections: Connections, clock_ms: Callable[[], int]) -> None:
        self._config, self._store, self._connections, self._clock_ms = config, store, connections, clock_ms
        self._wanted: WeakKeyDictionary[Connection, deque[Want]] = WeakKeyDictionary()  # of whom is being served
        self._tasks: set[asyncio.Task[None]] = set()

    def on_want(self, connection: Connection, message: Want) -> None:
        """A partner asks for events: send them, one answer at a time to each. Who asks for nobody's is blamed."""
        if len(message.source) != SOURCE_BYTES or not 0 <= message.after < 2**63:
            self._connections.blame(connection, "garbage", GARBAGE, PeerError("it wants events of nobody"))
        elif connection in self._wanted:
            if len(self._wanted[connection]) < _WAITING:
                self._wanted[connection].append(message)
        else:
            self._wanted[connection] = deque([message])
            task = self._connections.loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        wanted = self._wanted[connection]
        try:
            while wanted and not connection.is_closing:
                await self._serve_one(connection, wanted.popleft())
        except GrapevineError:
            return  # the node is closing, or its disk is full: others will be asked
        finally:
            del self._wanted[connection]

    async def _serve_one(self, connection: Connection, wanted: Want) -> None:
        store, stream, since_ms = self._store, (wanted.source, wanted.topic), min(wanted.since_ms, LAST_SEQUENCE)
        if not wanted.after:  # the stream is not known there at all
            found = await store.since_time(*stream, since_ms, _EVENTS) if since_ms >= 0 else []
            older = [] if found or since_ms < 0 else await store.newest_first(*stream, 0, LAST_SEQUENCE, 1)
            over = older[0].sequence if older else 0
            self._send_kept(connection, wanted, older + found, over, len(older))
            return
        before, found, over = min(wanted.before, LAST_SEQUENCE), [], 0
        if before > 0 and since_ms >= 0:
            found = await store.newest_first(*stream, since_ms, before, _EVENTS)
            over = await store.over(*stream, since_ms)
        missing = [n for first, last in wanted.missing[:_GAPS] for n in _numbers(first, last)]
        found += await store.find(*stream, missing[: _EVENTS - len(found)])
        found += await store.since(*stream, wanted.after, _EVENTS - len(found))
        self._send_kept(connection, wanted, found, over, 0)

    def _send_kept(
        self, connection: Connection, wanted: Want, events: list[StoredEvent], over: int, older: int
    ) -> None:
        answer: list[tuple[int, bytes]] = []
        room = min(_ANSWER_BYTES, self._config.frame_bytes // 2)
        for event in events:
            room -= len(event.envelope) + _EVENT_BYTES
            if answer and room < 0:
                break  # the rest is asked for again
            answer.append((event.sequence, event.envelope))
        answered = Kept(wanted.topic, wanted.source, tuple(answer), over, older, self._clock_ms())
        self._connections.answer(connection, answered)

    async def close(self) -> None:
        """Stop answering. Called when the node closes."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _numbers(first: int, last: int) -> Iterable[int]:
    return range(max(first, 1), min(last, first + _EVENTS) + 1)
