"""A group's process, seen from the cluster: started, told what to do, killed, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from grapevine.model.errors import GrapevineError
from grapevine.net.group import LINE_BYTES
from grapevine.net.orders import Answer, AnyAnswer, Failed, Leave, Order, Published, Report

_LEAVE_S = 10.0
_A = TypeVar("_A", bound=Answer)
_decode = msgspec.json.Decoder(AnyAnswer).decode


class Worker:
    """One process. `report` and `published` are told what it says; `ended` that it is no more."""

    def __init__(
        self,
        number: int,
        log: Path,
        *,
        report: Callable[[Worker, Report], None],
        published: Callable[[Published], None],
        ended: Callable[[Worker], None],
        prefix: Sequence[str] = (),
    ) -> None:
        self.number, self.log, self.session = number, log, 0
        self.last: Report | None = None
        self.expected_to_end = False
        self._report, self._published, self._ended, self._prefix = report, published, ended, prefix
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[type[Answer], asyncio.Future[Any]] = {}

    @property
    def is_up(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """A new process; it has a session of its own, so that Ctrl-C reaches the cluster alone."""
        self.session += 1
        self.expected_to_end = False
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._prefix,
                sys.executable,
                "-m",
                "grapevine.net.group",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        self._listening = asyncio.create_task(self._listen(self._process))

    def tell(self, order: Order) -> None:
        """Give an order without waiting for an answer; nothing happens if the process does not run."""
        if self._process is not None and self._process.stdin is not None and self.is_up:
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def ask(self, order: Order, kind: type[_A], timeout: float) -> _A:
        """Give an order, and wait for the answer; GrapevineError if there is none."""
        waiting = self._waiting[kind] = asyncio.get_running_loop().create_future()
        self.tell(order)
        if not self.is_up:
            self._fail("it is not running")
        try:
            answer: _A = await asyncio.wait_for(waiting, timeout)
        except TimeoutError:
            raise GrapevineError(
                f"group {self.number} did not answer {type(order).__name__} within {timeout:g} s; see {self.log}"
            ) from None
        finally:
            self._waiting.pop(kind, None)
        return answer

    async def kill(self) -> None:
        """As a crash, or a loss of power to the process: nothing is written, nobody is told."""
        self.expected_to_end = True
        if self._process is not None and self.is_up:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._gone()

    async def stop(self) -> None:
        """In good order, if it can; otherwise killed."""
        self.expected_to_end = True
        self.tell(Leave())
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._gone()), _LEAVE_S)
        except TimeoutError:
            await self.kill()

    def kill_now(self) -> None:
        """Without waiting: the last resort when the cluster itself is being ended."""
        if self._process is not None and self.is_up:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, 9)

    async def _gone(self) -> None:
        if self._process is not None:
            await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            try:
                answer = _decode(line)
            except msgspec.MsgspecError:
                continue  # cut off by a kill
            if isinstance(answer, Report):
                self.last = answer
                self._report(self, answer)
            elif isinstance(answer, Published):
                self._published(answer)
            elif isinstance(answer, Failed):
                self._fail(answer.sentence)
            elif (waiting := self._waiting.get(type(answer))) is not None and not waiting.done():
                waiting.set_result(answer)
        await process.wait()
        self._fail(f"it ended; see {self.log}")
        self._ended(self)

    def _fail(self, sentence: str) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(GrapevineError(f"group {self.number}: {sentence}"))
