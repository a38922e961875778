"""What a node does by itself, every now and then. A chore that fails is counted and logged, and comes again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

TICK_S = 0.1  # between two looks at what is due
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Chore:
    """Something that is done every so many seconds, or at every tick if that is less."""

    every_s: float
    do: Callable[[], Awaitable[None] | None]
    done_at: float = 0.0


async def keep_house(chores: Iterable[Chore], failures: Counter[str]) -> None:
    """For ever. The first time is one period from now. `failures` counts errors by their type."""
    loop = asyncio.get_running_loop()
    chores = list(chores)
    for chore in chores:
        chore.done_at = loop.time()
    while True:
        await asyncio.sleep(TICK_S)
        now = loop.time()
        for chore in chores:
            if now - chore.done_at >= chore.every_s:
                chore.done_at = now
                try:
                    waiting = chore.do()
                    if waiting is not None:
                        await waiting
                except Exception as error:  # a mistake of ours, or of a peer's class, must not end all of this
                    failures[type(error).__name__] += 1
                    _log.exception("a periodic task failed")
