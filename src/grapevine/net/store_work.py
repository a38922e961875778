"""How the work of a store gets done: in threads of its own, or wherever a test wants it.

`Store` has the rules: what comes together is committed together, and acknowledged once the disk has it. It does not
say when and where that happens; a `StoreWork` does. `ThreadedWork` is the real one. A simulated one does the same in
the loop, after as long as its disk takes, and can die between a change and its commit, or between a commit and its
acknowledgement.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeVar

Answer = TypeVar("Answer")


class Written(NamedTuple):
    """What one turn of writing did."""

    acknowledge: Callable[[], None]  # tells those who wait that the disk has it; to be called in the loop
    taken: int  # how many of what was queued this took, the mark included
    more: bool  # whether more can come


class Writing(Protocol):
    """The part of a store that is run by a `StoreWork`, one call at a time."""

    def __call__(self, *, wait: bool) -> Written:
        """Commit what was queued; `wait` until there is something. Called until nothing more can come."""


class StoreWork(ABC):
    """Does the work of one store: `prepare` its files, `start`, `on_queued` for every change, `ask`, and `finish`."""

    @abstractmethod
    async def prepare(self, open_files: Callable[[], Answer]) -> Answer:
        """Open the files; what `open_files` raises is raised. Called once, first."""

    @abstractmethod
    def start(self, write: Writing) -> None:
        """From now on changes may be queued, and are to be written."""

    @abstractmethod
    def on_queued(self) -> None:
        """A change was queued, or the mark after which no more come."""

    @abstractmethod
    async def ask(self, question: Callable[[Any], Answer], file: Any) -> Answer:
        """The answer to a question. It does not wait for the writer; questions are answered one after another."""

    @abstractmethod
    async def finish(self, close_files: Callable[[], None]) -> None:
        """The mark was queued: when everything before it is written and answered, close the files. Called last."""


class ThreadedWork(StoreWork):
    """One thread writes, another answers questions; the loop is never held up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading = ThreadPoolExecutor(1, "store reader")
        self._writing: Thread | None = None

    async def prepare(self, open_files: Callable[[], Answer]) -> Answer:
        return await asyncio.to_thread(open_files)

    def start(self, write: Writing) -> None:
        self._writing = Thread(target=self._write, args=(write,), name="store writer", daemon=True)
        self._writing.start()

    def on_queued(self) -> None:
        return  # the thread waits at the queue itself

    async def ask(self, question: Callable[[Any], Answer], file: Any) -> Answer:
        return await self._loop.run_in_executor(self._reading, question, file)

    async def finish(self, close_files: Callable[[], None]) -> None:
        def finish() -> None:
            if self._writing is not None:
                self._writing.join()
            self._reading.shutdown()
            close_files()

        await asyncio.to_thread(finish)

    def _write(self, write: Writing) -> None:
        more = True
        while more:
            acknowledge, _, more = write(wait=True)
            try:
                self._loop.call_soon_threadsafe(acknowledge)
            except RuntimeError:
                continue  # the loop is closed, and nobody waits any more
