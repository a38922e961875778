"""Choices about bytes on wires and disks, measured against what was not chosen (docs/decisions).

.venv/bin/python -m bench.choices [frames disk tables]

Each part prints a ratio against a reference of the same run: msgpack frames against JSON, SQLite against an appended
file, Parquet against CSV.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import csv, parquet

from grapevine.net.wire import Decoder, encode
from grapevine.synthetic import generate
from grapevine.systems.vitis.peer.messages import Descriptor, Exchange, Notify

EVENTS, BATCH, PAYLOAD = 300, 100, 200


def best_of(action: Callable[[], object], times: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the quickest."""
    spent = []
    for _ in range(times):
        began = clock()
        action()
        spent.append(clock() - began)
    return min(spent)


def cpu_us(action: Callable[[], object], repeats: int = 2_000) -> float:
    """CPU microseconds of one, in the quickest of twenty rows of many."""
    return best_of(lambda: [action() for _ in range(repeats)], 20, time.process_time) / repeats * 1e6


# Frames


def samples() -> dict[str, Any]:
    """Two messages as live nodes send them: a view of forty nodes, and an event."""
    known = tuple(Descriptor(2**63 + 977 * i, 2**62 + 1013 * i, i, 50, 1000.5 + i, 0.25 * i) for i in range(40))
    return {"a view of 40 nodes": Exchange(known, False), "an event": Notify(2**63 + 5, 17, 2**63, bytes(PAYLOAD))}


def frames() -> None:
    """Our frames (msgpack, a length and a version), the bare struct as msgpack and as JSON, a dictionary as JSON."""
    kinds: Any = Exchange | Notify
    for name, message in samples().items():
        plain = to_plain(message)
        decoder, bare, typed = Decoder(kinds), msgspec.msgpack.Decoder(kinds), msgspec.json.Decoder(kinds)
        forms: dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]] = {
            "our frame": (partial(encode, message), decoder.feed),
            "msgspec's msgpack": (partial(msgspec.msgpack.encode, message), bare.decode),
            "msgspec's JSON": (partial(msgspec.json.encode, message), typed.decode),
            "json.dumps": (partial(as_json, plain), json.loads),
        }
        first = 0.0
        for form, (write, read) in forms.items():
            frame = write()
            out, back = cpu_us(write), cpu_us(partial(read, frame))
            first = first or out + back
            print(
                f"frames: {name}, {form}: {len(frame):,} bytes, {out:.2f} µs to write, {back:.2f} µs to read"
                f" ({(out + back) / first:.1f} times)"
            )


def as_json(plain: Any) -> bytes:
    return json.dumps(plain).encode()


def to_plain(message: Any) -> Any:
    """A message as dictionaries and lists; bytes in base64, as JSON needs them."""
    return msgspec.to_builtins(message, enc_hook=lambda value: base64.b64encode(value).decode())


# Disk


def disk() -> None:
    """Events that survive a power cut, a commit each and a hundred a commit: in SQLite, and appended to a file."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # not in memory, as temporary folders may be
        for batch in (1, BATCH):
            kept = events_a_second(partial(into_sqlite, Path(name) / f"{batch}.sqlite", batch))
            appended = events_a_second(partial(into_file, Path(name) / f"{batch}.log", batch))
            print(
                f"disk: {batch} a commit: SQLite {kept:,.0f} events/s, an appended file {appended:,.0f}"
                f" ({appended / kept:.1f} times)"
            )


def events_a_second(keep: Callable[[int], None], count: int = EVENTS) -> float:
    return count / best_of(lambda: keep(count), times=3)


def into_sqlite(path: Path, batch: int, count: int) -> None:
    """As the store does: a write-ahead log, a sync for every commit, a unique key, an index by topic and age."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path, isolation_level=None) as file:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=FULL")
        file.execute(
            "CREATE TABLE events (topic, publisher, sequence, time, payload, UNIQUE (topic, publisher, sequence))"
        )
        file.execute("CREATE INDEX by_age ON events (topic, time)")
        for first in range(0, count, batch):
            file.execute("BEGIN")
            rows = [(i % 50, b"publisher", i, i, bytes(PAYLOAD)) for i in range(first, first + batch)]
            file.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
            file.execute("COMMIT")
    file.close()


def into_file(path: Path, batch: int, count: int) -> None:
    """The least that keeps an event: append its bytes, sync. It finds nothing again and removes nothing."""
    with path.open("wb") as file:
        for first in range(0, count, batch):
            file.write(b"".join(i.to_bytes(32) + bytes(PAYLOAD) for i in range(first, first + batch)))
            file.flush()
            os.fsync(file.fileno())


# Tables


def tables() -> None:
    """Half a million subscriptions as Parquet and as CSV."""
    workload = generate("vitis-random", nodes=10_000, seed=1)
    nodes = [node for node, size in enumerate(workload.node_topics.sizes().tolist()) for _ in range(size)]
    table = pa.table({"node": pa.array(nodes, pa.int32()), "topic": pa.array(workload.node_topics.columns)})
    with tempfile.TemporaryDirectory() as name:
        parquet_file, csv_file = f"{name}/t.parquet", f"{name}/t.csv"
        written = (
            best_of(lambda: parquet.write_table(table, parquet_file)),
            best_of(lambda: csv.write_csv(table, csv_file)),
        )
        read = best_of(lambda: parquet.read_table(parquet_file)), best_of(lambda: csv.read_csv(csv_file))
        size = Path(parquet_file).stat().st_size, Path(csv_file).stat().st_size
    for at, kind in enumerate(("Parquet", "CSV")):
        print(
            f"tables: {table.num_rows:,} rows as {kind}: {size[at] / 1e6:.2f} MB,"
            f" {written[at] * 1e3:.0f} ms to write, {read[at] * 1e3:.0f} ms to read"
        )


def main() -> None:
    parts: dict[str, Callable[[], None]] = {part.__name__: part for part in (frames, disk, tables)}
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="*", help=f"any of {', '.join(parts)}")
    for name in parser.parse_args().part or parts:
        parts[name]()


if __name__ == "__main__":
    main()
