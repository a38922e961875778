"""Events on disk: one SQLite file, used by one thread at a time. `store` puts it behind asyncio.

A stream is what one publisher publishes in one topic; its events are numbered from 1. Of every stream the file
remembers the last number that it has seen, and the highest that retention has removed (the floor). What lies at or
below the floor is over: it is neither missing, nor stored again. Both outlive the events, so that no number is used
twice.

Sequence numbers, which are compared, end at 2^63 - 1; topics are stored as `sqlite_numbers` says.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net.offers import SCHEMA as _OFFERS
from grapevine.net.offers import Offers
from grapevine.net.positions import SCHEMA as _READERS
from grapevine.net.positions import Positions
from grapevine.net.sqlite_numbers import signed, unsigned

LAST_SEQUENCE = 2**63 - 1
EVENT_OVERHEAD = 128  # bytes on disk beside payload and signature: some 90 for small events, 300 for those of 1 kB

_APPLICATION = 0x47525056  # "GRPV", in the file's header
_SCHEMA_VERSION = 2  # 1 had no named readers and no offers
_SCHEMA = """
CREATE TABLE streams (
    stream INTEGER PRIMARY KEY, publisher BLOB NOT NULL, topic INTEGER NOT NULL,
    last INTEGER NOT NULL DEFAULT 0, floor INTEGER NOT NULL DEFAULT 0, UNIQUE (publisher, topic)
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, topic INTEGER NOT NULL,
    sequence INTEGER NOT NULL, time_ms INTEGER NOT NULL, bytes INTEGER NOT NULL,
    payload BLOB NOT NULL, signature BLOB NOT NULL,
    UNIQUE (stream, sequence)
);
CREATE INDEX events_by_age ON events (time_ms);
CREATE INDEX streams_of_topics ON streams (topic);
CREATE INDEX events_of_topics_by_age ON events (topic, time_ms);
CREATE INDEX events_of_topics_by_arrival ON events (topic, number);
CREATE TABLE topics (topic INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE subscriptions (topic INTEGER PRIMARY KEY, name TEXT NOT NULL, since_ms INTEGER NOT NULL);
"""
_TABLES = ("streams", "events", "topics", "subscriptions", "readers", "positions", "offers")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is kept. The time is that of our own clock when it came: retention goes by it."""

    publisher: PeerId
    topic: int  # its id
    sequence: int  # of this publisher in this topic, from 1
    time_ms: int  # when it came, by our clock
    payload: bytes  # time of publication and the application's payload (`envelope.stamped`)
    signature: bytes  # the publisher's key and signature
    arrival: int = field(default=0, compare=False)  # its number in the order of arrival here; 0 until it is kept

    def __post_init__(self) -> None:
        if not (0 <= self.topic < 2**64 and 1 <= self.sequence <= LAST_SEQUENCE and abs(self.time_ms) < 2**63):
            raise UsageError(
                f"event {self.sequence} of topic {self.topic} at {self.time_ms} ms cannot be stored;"
                " topics have 64 bits, sequences and times 63, and sequences start at 1"
            )

    @property
    def size(self) -> int:
        """Bytes that it counts against `topic_bytes` and `total_bytes`."""
        return len(self.payload) + len(self.signature) + EVENT_OVERHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(Config):
    """How long events are kept, and how many bytes of them; the oldest go first."""

    age_s: float = parameter(7 * 86_400.0, "seconds that an event is kept", source="ours: a week", low=0)
    topic_bytes: int = parameter(64 << 20, "bytes of events of one topic", source="ours", low=0)
    total_bytes: int = parameter(1 << 30, "bytes of events of all topics", source="ours", low=0)


class _Row(NamedTuple):
    number: int
    stream: int
    topic: int
    sequence: int
    bytes: int


class EventFile:
    """A connection to the file. Changes happen between `begin` and `commit`, and are on the disk after the latter."""

    def __init__(self, path: Path, *, read_only: bool = False, synced: bool = True) -> None:
        self.path, self._synced = path, synced
        self._added: Counter[int] = Counter()  # bytes by topic, of the open transaction
        try:
            self._sql = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise UsageError(f"{path}: cannot be opened ({error}); choose another folder") from None
        self.positions, self.offers = Positions(self._sql), Offers(self._sql)
        try:
            self._prepare(read_only=read_only)
        except sqlite3.OperationalError as error:
            self.close()
            raise UsageError(f"{path}: cannot be used ({error}); choose another folder") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise UsageError(f"{path}: is damaged ({error}); restore it, or move it away to start empty") from None
        except UsageError:
            self.close()
            raise

    def _prepare(self, *, read_only: bool) -> None:
        if self._sql.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise UsageError(f"{self.path}: lies where SQLite cannot keep a write-ahead log; choose a local folder")
        # FULL: a commit that returned has reached the disk. NORMAL: it outlives the process, not a loss of power.
        self._sql.execute(f"PRAGMA synchronous = {'FULL' if self._synced else 'NORMAL'}")
        self.begin()
        (application,) = self._sql.execute("PRAGMA application_id").fetchone()
        (version,) = self._sql.execute("PRAGMA user_version").fetchone()
        if (application, version) == (0, 0) and not self._sql.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._lay_out(_SCHEMA + _READERS + _OFFERS)
            self._sql.execute(f"PRAGMA application_id = {_APPLICATION}")
        elif application != _APPLICATION:
            raise UsageError(f"{self.path}: is a database of another program; choose another folder")
        elif version == 1:
            self._lay_out(_READERS + _OFFERS)
        elif version != _SCHEMA_VERSION:
            raise UsageError(
                f"{self.path}: has version {version} of the layout, this program version {_SCHEMA_VERSION};"
                " move it away to start empty"
            )
        self._sql.execute("COMMIT")
        for table in _TABLES:
            self._sql.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()  # noqa: S608
        if read_only:
            self._sql.execute("PRAGMA query_only = ON")

    def _lay_out(self, schema: str) -> None:
        for statement in schema.split(";"):
            self._sql.execute(statement)
        self._sql.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def close(self) -> None:
        """The last one to close the file tidies it up."""
        self._sql.close()

    # Changes

    def begin(self) -> None:
        """Nobody else may write until `commit` or `rollback`."""
        self._sql.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Everything since `begin` is on the disk, and visible to readers."""
        self._count()
        self._sql.execute("COMMIT")

    def _count(self) -> None:
        """Write down what was added to topics: once for many events."""
        self._sql.executemany(
            "INSERT INTO topics VALUES (?, ?) ON CONFLICT (topic) DO UPDATE SET bytes = bytes + excluded.bytes",
            self._added.items(),
        )
        self._added.clear()

    def rollback(self) -> None:
        """Nothing since `begin` has happened."""
        self._added.clear()
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def append(self, event: StoredEvent) -> int:
        """Keep an event; its place in the order of arrivals, or 0 if it is known, or over.

        Another one with the same sequence does not replace the first.
        """
        stream, last, floor = self._stream(event.publisher, event.topic)
        return self._insert(stream, last, event) if event.sequence > floor else 0

    def publish(
        self,
        publisher: PeerId,
        topic: int,
        time_ms: int,
        payload: bytes,
        sign: Callable[[int], bytes],
        acks: int = 0,
    ) -> StoredEvent:
        """Keep a new event under the stream's next number, which is signed with it; on offer until so many confirm."""
        sequence = self.next_sequence(publisher, topic)
        event = StoredEvent(publisher, topic, sequence, time_ms, payload, sign(sequence))
        stream, last, _ = self._stream(publisher, topic)
        if acks:
            self.offers.add(topic, sequence, acks)
        return replace(event, arrival=self._insert(stream, last, event))

    def _insert(self, stream: int, last: int, event: StoredEvent) -> int:
        topic = signed(event.topic)
        values = (stream, topic, event.sequence, event.time_ms, event.size, event.payload, event.signature)
        inserted = self._sql.execute(
            "INSERT INTO events (stream, topic, sequence, time_ms, bytes, payload, signature)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream, sequence) DO NOTHING",
            values,
        )
        if not inserted.rowcount:
            return 0
        if event.sequence > last:
            self._sql.execute("UPDATE streams SET last = ? WHERE stream = ?", (event.sequence, stream))
        self._added[topic] += event.size
        return inserted.lastrowid or 0

    def _stream(self, publisher: PeerId, topic: int) -> tuple[int, int, int]:
        """The stream's number, its last sequence and its floor; it is made if it is new."""
        found = self._known_stream(publisher, topic)
        if found is None:
            values = (publisher.full, signed(topic))
            made = self._sql.execute("INSERT INTO streams (publisher, topic) VALUES (?, ?)", values)
            assert made.lastrowid is not None
            found = made.lastrowid, 0, 0
        return found

    def subscribe(self, topic: int, name: str, since_ms: int) -> None:
        """Remember that the application wants a topic, from this time on; an earlier time that it said before stays."""
        self._sql.execute(
            "INSERT INTO subscriptions VALUES (?, ?, ?)"
            " ON CONFLICT (topic) DO UPDATE SET since_ms = min(since_ms, excluded.since_ms)",
            (signed(topic), name, since_ms),
        )

    def unsubscribe(self, topic: int) -> None:
        """Forget that the application wants a topic, and who read it. Its events stay until retention takes them."""
        self._sql.execute("DELETE FROM subscriptions WHERE topic = ?", (signed(topic),))
        self.positions.forget(topic, None)

    # Retention

    def trim(self, now_ms: int, retention: Retention, most: int) -> int:
        """Remove events beyond the retention, `most` of them; how many were removed. 0 says that all is within it."""
        self._count()
        doomed = (
            self._too_old(now_ms - round(1_000 * retention.age_s), most)
            or self._too_many_of_a_topic(retention.topic_bytes, most)
            or self._too_many(retention.total_bytes, most)
        )
        self._remove(doomed)
        return len(doomed)

    def _too_old(self, before_ms: int, most: int) -> list[_Row]:
        return list(self._oldest("WHERE time_ms < ?", (before_ms, most)))

    def _too_many_of_a_topic(self, allowed: int, most: int) -> list[_Row]:
        found = self._sql.execute("SELECT topic, bytes FROM topics WHERE bytes > ? LIMIT 1", (allowed,)).fetchone()
        return _enough(self._oldest("WHERE topic = ?", (found[0], most)), found[1] - allowed) if found else []

    def _too_many(self, allowed: int, most: int) -> list[_Row]:
        (total,) = self._sql.execute("SELECT coalesce(sum(bytes), 0) FROM topics").fetchone()
        return _enough(self._oldest("", (most,)), total - allowed) if total > allowed else []

    def _oldest(self, condition: str, values: tuple[int, ...]) -> Iterator[_Row]:
        rows = self._sql.execute(
            f"SELECT number, stream, topic, sequence, bytes FROM events {condition}"  # noqa: S608
            " ORDER BY time_ms, number LIMIT ?",
            values,
        )
        return map(_Row._make, rows)

    def _remove(self, doomed: Collection[_Row]) -> None:
        floors: dict[int, int] = {}
        freed: Counter[int] = Counter()
        for row in doomed:
            floors[row.stream] = max(row.sequence, floors.get(row.stream, 0))
            freed[row.topic] += row.bytes
        run = self._sql.executemany
        run("DELETE FROM events WHERE number = ?", [(row.number,) for row in doomed])
        run(
            "UPDATE streams SET floor = max(floor, ?) WHERE stream = ?",
            [(top, stream) for stream, top in floors.items()],
        )
        run("UPDATE topics SET bytes = bytes - ? WHERE topic = ?", [(size, topic) for topic, size in freed.items()])
        run("DELETE FROM topics WHERE topic = ? AND bytes = 0", [(topic,) for topic in freed])

    # Questions

    def since(self, publisher: PeerId, topic: int, sequence: int, limit: int) -> list[StoredEvent]:
        """Events after this one, in order, at most so many."""
        return self._events(publisher, topic, "sequence > ? ORDER BY sequence LIMIT ?", (sequence, limit))

    def find(self, publisher: PeerId, topic: int, sequences: Iterable[int]) -> list[StoredEvent]:
        """Those of these events that are here, in the order asked for."""
        wanted = (number for number in sequences if 1 <= number <= LAST_SEQUENCE)
        return [event for one in wanted for event in self._events(publisher, topic, "sequence = ?", (one,))]

    def _events(self, publisher: PeerId, topic: int, condition: str, values: tuple[int, ...]) -> list[StoredEvent]:
        stream = self._known_stream(publisher, topic)
        if stream is None:
            return []
        rows = self._sql.execute(
            f"SELECT sequence, time_ms, payload, signature FROM events WHERE stream = ? AND {condition}",  # noqa: S608
            (stream[0], *values),
        )
        return [StoredEvent(publisher, topic, *row) for row in rows]

    def missing(self, publisher: PeerId, topic: int, window: int) -> list[int]:
        """Numbers among the stream's last `window` whose events have not come."""
        known = self._known_stream(publisher, topic)
        if known is None:
            return []
        stream, last, floor = known
        first = max(floor + 1, last - window + 1)
        rows = self._sql.execute("SELECT sequence FROM events WHERE stream = ? AND sequence >= ?", (stream, first))
        here = {sequence for (sequence,) in rows}
        return [number for number in range(first, last + 1) if number not in here]

    def next_sequence(self, publisher: PeerId, topic: int) -> int:
        """The number that comes after the last one of the stream."""
        known = self._known_stream(publisher, topic)
        return known[1] + 1 if known else 1

    def last_sequences(self) -> dict[tuple[PeerId, int], int]:
        """The last number of every stream, by publisher and topic."""
        rows = self._sql.execute("SELECT publisher, topic, last FROM streams")
        return {(PeerId(publisher), unsigned(topic)): last for publisher, topic, last in rows}

    def subscriptions(self) -> dict[str, int]:
        """Topics that the application wants, by name, and since when (ms)."""
        return dict(self._sql.execute("SELECT name, since_ms FROM subscriptions ORDER BY name"))

    def arrivals(self, topic: int, after: int, limit: int) -> list[StoredEvent]:
        """Events of a topic in the order in which they came, after this arrival."""
        rows = self._sql.execute(
            "SELECT publisher, events.topic, sequence, time_ms, payload, signature, number FROM events"
            " JOIN streams USING (stream) WHERE events.topic = ? AND number > ? ORDER BY number LIMIT ?",
            (signed(topic), after, limit),
        )
        return [StoredEvent(PeerId(publisher), unsigned(key), *rest) for publisher, key, *rest in rows]

    def extent(self, stream: int) -> tuple[int, int]:
        """The last number of a stream, and its floor."""
        (last, floor) = self._sql.execute("SELECT last, floor FROM streams WHERE stream = ?", (stream,)).fetchone()
        return last, floor

    def last_arrival(self, topic: int, before_ms: int | None = None) -> int:
        """The number of the last event of a topic that had come by this time, or by now; 0 if none had."""
        condition, values = ("", ()) if before_ms is None else (" AND time_ms < ?", (before_ms,))
        query = f"SELECT coalesce(max(number), 0) FROM events WHERE topic = ?{condition}"  # noqa: S608
        (number,) = self._sql.execute(query, (signed(topic), *values)).fetchone()
        return int(number)

    def possessed(self, topic: int, window: int) -> list[tuple[PeerId, int, int, list[int]]]:
        """Streams of a topic: publisher, last, floor, and what is missing among the last `window`."""
        rows = self._sql.execute("SELECT publisher, last, floor FROM streams WHERE topic = ?", (signed(topic),))
        streams = [(PeerId(publisher), last, floor) for publisher, last, floor in rows.fetchall()]
        return [(publisher, last, floor, self.missing(publisher, topic, window)) for publisher, last, floor in streams]

    def bytes_by_topic(self) -> dict[int, int]:
        """Bytes of events kept, as retention counts them."""
        return {unsigned(topic): size for topic, size in self._sql.execute("SELECT topic, bytes FROM topics")}

    def _known_stream(self, publisher: PeerId, topic: int) -> tuple[int, int, int] | None:
        values = (publisher.full, signed(topic))
        found = self._sql.execute("SELECT stream, last, floor FROM streams WHERE publisher = ? AND topic = ?", values)
        row: tuple[int, int, int] | None = found.fetchone()
        return row


def _enough(rows: Iterable[_Row], excess: int) -> list[_Row]:
    """The first rows that together free so many bytes, or all."""
    taken: list[_Row] = []
    for row in rows:
        if excess <= 0:
            break
        taken.append(row)
        excess -= row.bytes
    return taken
