"""The disk of one machine, in virtual time: it takes its while, may be slow or full, and dies with the machine.

The file on it is a real one of SQLite. A change waits until the disk is free, is committed, and is acknowledged a
moment later. A crash in between loses what was not committed, and leaves what was committed though nobody was told.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from grapevine.net.store_work import StoreWork, Writing

Answer = TypeVar("Answer")
_COMMIT_S = 0.004  # on average
_SLOW_COMMIT_S = 1.5
_READ_S = 0.0005


class DiskHealth:
    """How a machine's disk does, from one session of its node to the next."""

    def __init__(self, random: Random) -> None:
        self.is_full = self.is_slow = False
        self._random = random

    def commit_s(self) -> float:
        """How long the next commit takes."""
        return self._random.expovariate(1 / (_SLOW_COMMIT_S if self.is_slow else _COMMIT_S))

    def refuse_if_full(self) -> None:
        """What SQLite raises when there is no room."""
        if self.is_full:
            raise sqlite3.OperationalError("database or disk is full")


class SimulatedDisk(StoreWork):
    """The work of one store, in one session. `kill` ends it without a word."""

    def __init__(self, health: DiskHealth) -> None:
        self._loop = asyncio.get_running_loop()
        self._health = health
        self._files: tuple[Any, ...] = ()
        self._write: Writing | None = None
        self._queued = 0  # changes that no turn has taken
        self._is_busy = self._is_dead = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def prepare(self, open_files: Callable[[], Answer]) -> Answer:
        await asyncio.sleep(self._health.commit_s())
        opened: Any = open_files()
        self._files = tuple(opened)
        writer, commit = self._files[0], self._files[0].commit

        def commit_if_room() -> None:
            self._health.refuse_if_full()
            commit()

        writer.commit = commit_if_room
        return opened  # type: ignore[no-any-return]

    def start(self, write: Writing) -> None:
        self._write = write

    def on_queued(self) -> None:
        self._queued += 1
        if not self._is_busy and not self._is_dead:
            self._is_busy = True
            self._idle.clear()
            self._loop.call_later(self._health.commit_s(), self._commit)

    def _commit(self) -> None:
        assert self._write is not None
        acknowledge, taken, _ = self._write(wait=False)
        self._queued -= taken
        self._loop.call_later(self._health.commit_s() / 4, self._acknowledge, acknowledge)

    def _acknowledge(self, acknowledge: Callable[[], None]) -> None:
        acknowledge()
        if self._queued:
            self._loop.call_later(self._health.commit_s(), self._commit)
        else:
            self._is_busy = False
            self._idle.set()

    async def ask(self, question: Callable[[Any], Answer], file: Any) -> Answer:
        await asyncio.sleep(_READ_S)
        return question(file)

    async def finish(self, close_files: Callable[[], None]) -> None:
        await self._idle.wait()
        if not self._is_dead:
            self._is_dead = True
            close_files()

    def kill(self) -> None:
        """The machine, or the process, is gone: what was not committed is lost."""
        if not self._is_dead:
            self._is_dead = True
            for file in self._files:
                file.close()
