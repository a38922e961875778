"""How fast the parts of a live node are: frames, signatures, and the store.

    .venv/bin/python -m bench.live

References, in the same run: msgspec without frames around it, and one SQLite transaction for all events, without
numbers, retention or anybody who waits for them.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import msgspec

from grapevine.model.identity import PeerId, SignedEvent, key_from
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent
from grapevine.net.wire import Decoder, encode
from grapevine.systems.contracts.peer import messages_in
from grapevine.systems.rappel import messages
from grapevine.systems.rappel.messages import Ping, Update

CHUNK = 1 << 16  # what asyncio reads at once
RAPPEL = messages_in(messages)


def rate(count: int, work: Callable[[], object], repeats: int = 5) -> float:
    """How many a second, the best of a few times."""
    seconds = []
    for _ in range(repeats):
        began = perf_counter()
        work()
        seconds.append(perf_counter() - began)
    return count / min(seconds)


def frames(count: int = 50_000) -> None:
    plain_encoder, plain_decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(RAPPEL)
    update = Update(3, 17, bytes(200), bytes(96))
    for message in (Ping((1, 2), True, (1, 2, 3), tuple(range(2**60, 2**60 + 6))), update):
        stream, plain = encode(message) * count, plain_encoder.encode(message)

        def decode(stream: bytes = stream) -> None:
            decoder = Decoder(RAPPEL)
            for start in range(0, len(stream), CHUNK):
                decoder.feed(stream[start : start + CHUNK])

        encoding = rate(count, lambda message=message: [encode(message) for _ in range(count)])  # type: ignore[misc]
        plainly = rate(count, lambda message=message: [plain_encoder.encode(message) for _ in range(count)])  # type: ignore[misc]
        decoding = rate(count, decode)
        bare = rate(count, lambda plain=plain: [plain_decoder.decode(plain) for _ in range(count)])  # type: ignore[misc]
        print(
            f"{type(message).__name__} of {len(stream) // count} bytes: {encoding:,.0f} encoded/s,"
            f" {decoding:,.0f} decoded/s ({plainly / encoding:.1f} and {bare / decoding:.1f} times msgspec alone)"
        )


def signatures(count: int = 500) -> None:
    key = key_from("bench")
    event = SignedEvent.sign(key, 1, 1, bytes(200))
    signing = rate(count, lambda: [SignedEvent.sign(key, 1, n, bytes(200)) for n in range(count)])
    print(
        f"{signing:,.0f} events signed/s, {rate(count, lambda: [event.check() for _ in range(count)]):,.0f} checked/s"
    )


def an_event(number: int) -> StoredEvent:
    """One of 50 streams in turn."""
    publisher = PeerId.of(b"%d" % (number % 50))
    return StoredEvent(publisher, number % 50, number // 50 + 1, 1_700_000_000_000 + number, bytes(200), bytes(96))


async def store(folder: Path, single: int = 300, batched: int = 20_000, tasks: int = 50) -> None:
    events = [an_event(n) for n in range(single + 2 * batched)]
    alone, in_tasks, at_once = events[:single], events[single : single + batched], events[single + batched :]

    async def one_by_one(part: list[StoredEvent]) -> None:
        for event in part:
            await opened.append(event)

    async with await Store.open(folder) as opened:
        began = perf_counter()
        await one_by_one(alone)
        single_rate = single / (perf_counter() - began)
        began = perf_counter()
        await asyncio.gather(*(one_by_one(in_tasks[n::tasks]) for n in range(tasks)))
        task_rate = batched / (perf_counter() - began)
        began = perf_counter()
        for start in range(0, batched, 1_000):
            await opened.append_all(at_once[start : start + 1_000])
        batch_rate = batched / (perf_counter() - began)
    reference = await asyncio.to_thread(plain_sqlite, folder / "plain.sqlite", at_once)
    print(
        f"appends acknowledged/s: {single_rate:,.0f} by one task, {task_rate:,.0f} by {tasks} tasks, {batch_rate:,.0f}"
        f" in batches of 1,000; plain SQLite in one transaction: {reference:,.0f} ({reference / batch_rate:.1f} times)"
    )


def plain_sqlite(path: Path, events: list[StoredEvent]) -> float:
    rows = [(e.publisher.full, e.topic, e.sequence, e.time_ms, e.payload, e.signature) for e in events]
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE events (p, t, s, time, payload, signature, PRIMARY KEY (p, t, s))")
    began = perf_counter()
    with connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
    seconds = perf_counter() - began
    connection.close()
    return len(events) / seconds


if __name__ == "__main__":
    frames()
    signatures()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(store(Path(folder)))
