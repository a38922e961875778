"""What tests of the store share: events, and one life of a store."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from grapevine.model.identity import PeerId
from grapevine.net.retention import Retention
from grapevine.net.stamp import source_of
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent

ALICE, BOB = PeerId.of(b"alice"), PeerId.of(b"bob")
ALICES, BOBS = source_of(ALICE), source_of(BOB)  # as sources, in their first epoch
HUGE = 2**64 - 1  # a topic is a hash: all 64 bits
Make = Callable[[int, bytes], tuple[bytes, bytes]]
Answer = TypeVar("Answer")


def event(sequence: int, *, publisher: PeerId = ALICE, topic: int = 1, time_ms: int = 0, size: int = 4) -> StoredEvent:
    return StoredEvent(publisher, topic, sequence, time_ms, b"x" * size, b"signed")


def making(payload: bytes, signature: bytes = b"signed") -> Make:
    """What a publisher does with a number: any, and nothing is checked."""
    return lambda number, before: (payload, signature)


def make_old(file: sqlite3.Connection) -> None:
    """The layout of version 2, which knew no epochs: a stream had a publisher, and no fingerprint of its last event."""
    file.executescript(
        "DROP TABLE epochs; DROP TABLE equivocations; DROP TABLE clock;"
        "ALTER TABLE streams DROP COLUMN aged; ALTER TABLE streams DROP COLUMN head;"
        "UPDATE streams SET source = substr(source, 1, 32); ALTER TABLE streams RENAME COLUMN source TO publisher;"
        "CREATE TABLE old (topic INTEGER NOT NULL, sequence INTEGER NOT NULL, acks INTEGER NOT NULL,"
        " PRIMARY KEY (topic, sequence)) WITHOUT ROWID;"
        "INSERT INTO old SELECT topic, sequence, acks FROM offers; DROP TABLE offers; ALTER TABLE old RENAME TO offers;"
        "PRAGMA user_version = 2;"
    )


def in_store(
    folder: Path, scenario: Callable[[Store], Coroutine[Any, Any, Answer]], retention: Retention | None = None
) -> Answer:
    """One life of a store."""

    async def run() -> Answer:
        async with await Store.open(folder, retention) as store:
            return await asyncio.wait_for(scenario(store), 30)

    return asyncio.run(run())
