"""An event loop in virtual time, on which processes can be killed.

Time stands still while anything is ready to run, and jumps to the next timer when nothing is. So an hour takes as long
as what is computed in it, and nothing depends on how quick this machine is. What makes runs equal:

1. Nothing happens but callbacks, one after another: what is ready in the order in which it became so, timers in the
   order of their times, and timers of one time in the order in which they were made.
2. There are no threads, sockets or signals: whoever asks for a thread is refused.
3. When nothing is ready and no timer is set, nothing will ever happen again; that is an error (`Idle`), not a wait.

A *process* is what a crash ends. Every callback and task has a context (PEP 567), which it inherits from whoever made
it; the context says to which process it belongs. Killing a process means that none of its callbacks runs any more, and
that its coroutines are thrown away where they stand. Python insists on running their `finally` clauses then; by that
time network and disk of the process must be dead, so that what these do has no effect (`Machine.crash` sees to that).
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, NoReturn

PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
_MOST_CLAUSES = 100  # `finally` clauses with an `await` in them that a coroutine may have around where it stands


class Idle(RuntimeError):  # noqa: N818 - it says what is the case
    """Somebody waits, and nothing will ever happen."""


class Process:
    """What a crash ends: the tasks and timers of one session of a node."""

    def __init__(self, name: str) -> None:
        self.name, self.is_dead = name, False
        self.tasks: dict[asyncio.Task[Any], Context] = {}  # those that are not done

    def context(self) -> Context:
        """A context of this process, for its first task."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        return context


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. To `errors` is added what callbacks and tasks raised and nobody dealt with: mistakes, all of them."""

    _ready: deque[asyncio.Handle]  # of the base class

    def __init__(self, errors: list[str] | None = None) -> None:
        super().__init__()
        self.errors: list[str] = [] if errors is None else errors
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # a heap: when, which of all, and the timer
        self._made = 0  # timers
        self.set_exception_handler(self._on_error)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop. Pairs of numbers are compared in the heap, which is quicker than timers."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._made += 1
        heapq.heappush(self._timers, (when, self._made, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_task(  # type: ignore[override]  # of coroutines only, which are all that there is
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """A task, which belongs to the process of its context."""
        context = contextvars.copy_context() if context is None else context
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        process = context.get(PROCESS)
        if process is not None:
            process.tasks[task] = context
            task.add_done_callback(_Forget(process))
        return task

    def kill(self, process: Process) -> None:
        """End a process without a word. Its network and disk must be dead already; call this from another process."""
        process.is_dead = True
        while process.tasks:  # closing one may make others
            task, context = process.tasks.popitem()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            context.run(_throw_away, task.get_coro())
        for handle in (*self._ready, *(timer for _, _, timer in self._timers)):
            if handle._context.get(PROCESS) is process:  # type: ignore[attr-defined]
                handle.cancel()

    # What the base class calls

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:  # type: ignore[attr-defined]
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise Idle("nothing is ready and no timer is set, but somebody waits")
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            due = ready.popleft()
            if not due._cancelled:  # type: ignore[attr-defined]
                due._run()

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """An asynchronous generator was thrown away: by a dead process, or by one that needs nothing more of it."""

    def _write_to_self(self) -> None:
        raise Idle("another thread called: in virtual time there is only one")

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:
        """Refused: what a thread does, and when, follows from no seed."""
        raise Idle(f"{func} was to run in a thread: in virtual time there is only one")

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.errors.append(f"{context['message']}: {error!r}" if error is not None else context["message"])


class _Forget:
    """Takes a task that is done out of its process."""

    __slots__ = ("_process",)

    def __init__(self, process: Process) -> None:
        self._process = process

    def __call__(self, task: asyncio.Task[Any]) -> None:
        self._process.tasks.pop(task, None)


def _throw_away(coroutine: Any) -> None:
    """End a coroutine where it stands. Every `finally` that awaits something gets that far, and no further."""
    for _ in range(_MOST_CLAUSES):
        try:
            coroutine.close()
            return
        except RuntimeError:  # "coroutine ignored GeneratorExit": it stands at the next `await`
            continue
        except BaseException:  # a clause failed, in a process that is dead anyway
            return
