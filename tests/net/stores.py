"""What tests of the store share: events, and one life of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from grapevine.model.identity import PeerId
from grapevine.net.event_file import Retention, StoredEvent
from grapevine.net.store import Store

ALICE, BOB = PeerId.of(b"alice"), PeerId.of(b"bob")
HUGE = 2**64 - 1  # a topic is a hash: all 64 bits
Answer = TypeVar("Answer")


def event(sequence: int, *, publisher: PeerId = ALICE, topic: int = 1, time_ms: int = 0, size: int = 4) -> StoredEvent:
    return StoredEvent(publisher, topic, sequence, time_ms, b"x" * size, b"signed")


def in_store(
    folder: Path, scenario: Callable[[Store], Coroutine[Any, Any, Answer]], retention: Retention | None = None
) -> Answer:
    """One life of a store."""

    async def run() -> Answer:
        async with await Store.open(folder, retention) as store:
            return await asyncio.wait_for(scenario(store), 30)

    return asyncio.run(run())
