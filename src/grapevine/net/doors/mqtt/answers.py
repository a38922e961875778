"""Answers that take time, sent in the order in which they were asked for (MQTT-4.6.0-2, MQTT-4.6.0-3)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine

import mqtt5

_log = logging.getLogger(__name__)

Answer = mqtt5.Packet | None
Work = Coroutine[None, None, Answer]


class Answers:
    """Work that is under way for one connection, at most so much of it, and so many bytes unless it is one alone."""

    def __init__(
        self, send: Callable[[mqtt5.Packet], object], fail: Callable[[], None], most: int, most_bytes: int
    ) -> None:
        self._send, self._fail, self._most, self._most_bytes = send, fail, most, most_bytes
        self._waiting: deque[tuple[asyncio.Task[Answer], int]] = deque()
        self._bytes = 0

    async def add(self, work: Work, size: int = 0) -> None:
        """Begin a piece of work, whose packet is sent after those of all that were begun before. It waits for room.

        If it raises an error it cannot be answered, and `fail` is called.
        """
        while self._waiting and (len(self._waiting) >= self._most or self._bytes + size > self._most_bytes):
            await asyncio.wait([self._waiting[0][0]])
            self._flush()
        task = asyncio.create_task(work)
        self._waiting.append((task, size))
        self._bytes += size
        task.add_done_callback(lambda _: self._flush())

    async def finish(self) -> None:
        """Wait until all that was begun is done, whether it can be answered or not."""
        while self._waiting:
            await asyncio.wait([task for task, _ in self._waiting])
            self._flush()

    def _flush(self) -> None:
        while self._waiting and self._waiting[0][0].done():
            task, size = self._waiting.popleft()
            self._bytes -= size
            if task.cancelled() or task.exception() is not None:
                _log.warning(
                    "a packet of a client could not be answered: %s", None if task.cancelled() else task.exception()
                )
                self._fail()
            elif (packet := task.result()) is not None:
                self._send(packet)
