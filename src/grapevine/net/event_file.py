"""Events on disk: one SQLite file, used by one thread at a time. `store` puts it behind asyncio.

A stream is what one source, a publisher in one of its epochs (`stamp`), publishes in one topic; its events are numbered
from 1. Of every stream the file remembers the last number that it has seen, the fingerprint of that event, and the
highest number that retention has removed (the floor). What lies at or below the floor is over: it is neither missing,
nor stored again. All outlive the events, so that no number is used twice.

Sequence numbers, which are compared, end at 2^63 - 1; topics are stored as `sqlite_numbers` says.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net import event_schema
from grapevine.net.equivocation import Equivocation, first_contradiction
from grapevine.net.offers import Offers
from grapevine.net.positions import Positions
from grapevine.net.retention import Retention, Trimming
from grapevine.net.sqlite_numbers import signed, unsigned
from grapevine.net.stamp import FIRST, fingerprint, publisher_of
from grapevine.net.stored_event import LAST_SEQUENCE, StoredEvent


class Possessed(NamedTuple):
    """What a file has of a stream."""

    source: bytes
    last: int
    floor: int  # up to here retention has removed everything
    lowest: int  # the first event that is here; one more than the last if none is
    head: bytes  # the fingerprint of the last event; empty: unknown
    is_forked: bool  # there is evidence that its publisher signed what contradicts itself
    missing: list[int]  # among the last ones


class _Stream(NamedTuple):
    number: int
    last: int
    floor: int
    head: bytes


class EventFile:
    """A connection to the file. Changes happen between `begin` and `commit`, and are on the disk after the latter."""

    def __init__(self, path: Path, *, read_only: bool = False, synced: bool = True) -> None:
        self.path, self._synced = path, synced
        self._added: Counter[int] = Counter()  # bytes by topic, of the open transaction
        try:
            self._sql = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise UsageError(f"{path}: cannot be opened ({error}); choose another folder") from None
        self.positions, self.offers, self._trimming = Positions(self._sql), Offers(self._sql), Trimming(self._sql)
        self._found: list[Equivocation] = []
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
        event_schema.prepare(self._sql, str(self.path))
        self._sql.execute("COMMIT")
        event_schema.look_at_tables(self._sql)
        if read_only:
            self._sql.execute("PRAGMA query_only = ON")

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
        self._found.clear()
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def append(self, event: StoredEvent) -> int:
        """Keep an event; its place in the order of arrivals, or 0 if it is known, or over.

        Another one with the same sequence does not replace the first.
        """
        stream = self._stream(event.source, event.topic)
        return self._insert(stream, event) if event.sequence > stream.floor else 0

    def publish(
        self, source: bytes, topic: int, time_ms: int, make: Callable[[int, bytes], tuple[bytes, bytes]], acks: int = 0
    ) -> StoredEvent:
        """Keep a new event under the stream's next number; on offer until so many confirm it.

        `make` is given the number and the fingerprint of the event before, and gives content and signature.
        """
        stream = self._stream(source, topic)
        sequence = stream.last + 1
        event = StoredEvent(publisher_of(source), topic, sequence, time_ms, *make(sequence, stream.head or FIRST))
        if acks:
            self.offers.add(topic, event.epoch, sequence, acks)
        return replace(event, arrival=self._insert(stream, event))

    def _insert(self, stream: _Stream, event: StoredEvent) -> int:
        topic = signed(event.topic)
        values = (stream.number, topic, event.sequence, event.time_ms, event.size, event.payload, event.signature)
        inserted = self._sql.execute(
            "INSERT INTO events (stream, topic, sequence, time_ms, bytes, payload, signature)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream, sequence) DO NOTHING",
            values,
        )
        if not inserted.rowcount:
            return 0
        self._check_chain(stream, event)
        if event.sequence > stream.last:
            head = fingerprint(event.sequence, event.payload)
            self._sql.execute(
                "UPDATE streams SET last = ?, head = ? WHERE stream = ?", (event.sequence, head, stream.number)
            )
        self._added[topic] += event.size
        return inserted.lastrowid or 0

    def _stream(self, source: bytes, topic: int) -> _Stream:
        """A stream; it is made if it is new."""
        found = self._known_stream(source, topic)
        if found is None:
            made = self._sql.execute("INSERT INTO streams (source, topic) VALUES (?, ?)", (source, signed(topic)))
            assert made.lastrowid is not None
            found = _Stream(made.lastrowid, 0, 0, b"")
        return found

    # Equivocation

    def _check_chain(self, stream: _Stream, event: StoredEvent) -> None:
        """Whether an event that was just kept names the one before, and is named by the one behind."""
        if event.sequence == stream.last + 1 and stream.head:
            before = event.before
            if before is None or before == stream.head:
                return  # as nearly always, without a question
        neighbours = self._sql.execute(
            "SELECT sequence, time_ms, payload, signature FROM events WHERE stream = ? AND sequence IN (?, ?)",
            (stream.number, event.sequence - 1, min(event.sequence + 1, LAST_SEQUENCE)),
        )
        self._note_contradiction(event, [StoredEvent(event.publisher, event.topic, *row) for row in neighbours])

    def compare(self, event: StoredEvent) -> bool:
        """Whether an event that came, and whose number is taken, contradicts what is here. Then that is noted."""
        around = [event.sequence - 1, event.sequence, event.sequence + 1]
        return self._note_contradiction(event, self.find(event.source, event.topic, around))

    def _note_contradiction(self, event: StoredEvent, others: Iterable[StoredEvent]) -> bool:
        found = first_contradiction(event, others)
        return found is not None and self.note_equivocation(found)

    def note_equivocation(self, found: Equivocation) -> bool:
        """Keep the evidence; True, and told to who takes it, unless there is some of this stream already."""
        inserted = self._sql.execute(
            "INSERT INTO equivocations VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (found.source, signed(found.topic), found.first, found.first_envelope, found.second, found.second_envelope),
        )
        if inserted.rowcount:
            self._found.append(found)
        return bool(inserted.rowcount)

    def take_found(self) -> list[Equivocation]:
        """Those that were noted since this was asked for. Called after a commit."""
        found, self._found = self._found, []
        return found

    def equivocations(self) -> list[Equivocation]:
        """All that are kept, one of a stream at most."""
        rows = self._sql.execute("SELECT * FROM equivocations")
        return [Equivocation(source, unsigned(topic), *rest) for source, topic, *rest in rows]

    # Epochs and clock

    def epoch(self, publisher: PeerId) -> int | None:
        """The last epoch that this node began, if it is that publisher; None: none."""
        row = self._sql.execute("SELECT epoch FROM epochs WHERE publisher = ?", (publisher.full,)).fetchone()
        return None if row is None else int(row[0])

    def begin_epoch(self, publisher: PeerId, epoch: int) -> None:
        """This node, which is that publisher, begins an epoch."""
        self._sql.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", (publisher.full, epoch))

    def clock(self) -> tuple[int, int] | None:
        """What the clock of arrivals and the time of day were when they were last noted (ms); None: never."""
        row: tuple[int, int] | None = self._sql.execute("SELECT arrivals_ms, day_ms FROM clock").fetchone()
        return row

    def note_clock(self, arrivals_ms: int, day_ms: int) -> None:
        """What they are now."""
        self._sql.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?)", (arrivals_ms, day_ms))

    # Subscriptions

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
        return self._trimming.trim(now_ms, retention, most)

    # Questions

    def since(self, source: bytes, topic: int, sequence: int, limit: int) -> list[StoredEvent]:
        """Events after this one, in order, at most so many."""
        return self._events(source, topic, "sequence > ? ORDER BY sequence LIMIT ?", (sequence, limit))

    def find(self, source: bytes, topic: int, sequences: Iterable[int]) -> list[StoredEvent]:
        """Those of these events that are here, in the order asked for."""
        wanted = (number for number in sequences if 1 <= number <= LAST_SEQUENCE)
        return [event for one in wanted for event in self._events(source, topic, "sequence = ?", (one,))]

    def since_time(self, source: bytes, topic: int, first_ms: int, limit: int) -> list[StoredEvent]:
        """Events in order, at most so many, from the first one on that came at this time or later."""
        condition = (
            "sequence >= (SELECT min(sequence) FROM events AS late WHERE late.stream = events.stream AND time_ms >= ?)"
            " ORDER BY sequence LIMIT ?"
        )
        return self._events(source, topic, condition, (first_ms, limit))

    def over(self, source: bytes, topic: int, first_ms: int) -> int:
        """The last event of a stream that came before this time, or that retention removed; 0: none."""
        stream = self._known_stream(source, topic)
        if stream is None:
            return 0
        query = "SELECT coalesce(max(sequence), 0) FROM events WHERE stream = ? AND time_ms < ?"
        (older,) = self._sql.execute(query, (stream.number, first_ms)).fetchone()
        return max(stream.floor, older)

    def newest_first(self, source: bytes, topic: int, first_ms: int, up_to: int, limit: int) -> list[StoredEvent]:
        """Events that came at this time or later, up to this number, from it down, at most so many."""
        condition = "sequence <= ? AND time_ms >= ? ORDER BY sequence DESC LIMIT ?"
        return self._events(source, topic, condition, (up_to, first_ms, limit))

    def _events(self, source: bytes, topic: int, condition: str, values: tuple[int, ...]) -> list[StoredEvent]:
        stream = self._known_stream(source, topic)
        if stream is None:
            return []
        rows = self._sql.execute(
            f"SELECT sequence, time_ms, payload, signature FROM events WHERE stream = ? AND {condition}",  # noqa: S608
            (stream.number, *values),
        )
        publisher = publisher_of(source)
        return [StoredEvent(publisher, topic, *row) for row in rows]

    def missing(self, source: bytes, topic: int, window: int) -> list[int]:
        """Numbers among the stream's last `window` whose events have not come."""
        known = self._known_stream(source, topic)
        if known is None:
            return []
        first = max(known.floor + 1, known.last - window + 1)
        rows = self._sql.execute(
            "SELECT sequence FROM events WHERE stream = ? AND sequence >= ?", (known.number, first)
        )
        here = {sequence for (sequence,) in rows}
        return [number for number in range(first, known.last + 1) if number not in here]

    def next_sequence(self, source: bytes, topic: int) -> int:
        """The number that comes after the last one of the stream."""
        known = self._known_stream(source, topic)
        return known.last + 1 if known else 1

    def last_sequences(self) -> dict[tuple[bytes, int], int]:
        """The last number of every stream, by source and topic."""
        rows = self._sql.execute("SELECT source, topic, last FROM streams")
        return {(source, unsigned(topic)): last for source, topic, last in rows}

    def subscriptions(self) -> dict[str, int]:
        """Topics that the application wants, by name, and since when (ms)."""
        return dict(self._sql.execute("SELECT name, since_ms FROM subscriptions ORDER BY name"))

    def arrivals(self, topic: int, after: int, limit: int) -> list[StoredEvent]:
        """Events of a topic in the order in which they came, after this arrival."""
        rows = self._sql.execute(
            "SELECT source, events.topic, sequence, time_ms, payload, signature, number FROM events"
            " JOIN streams USING (stream) WHERE events.topic = ? AND number > ? ORDER BY number LIMIT ?",
            (signed(topic), after, limit),
        )
        return [StoredEvent(publisher_of(source), unsigned(key), *rest) for source, key, *rest in rows]

    def extent(self, stream: int) -> tuple[int, int, int]:
        """The last number of a stream, its floor, and up to where that is due to age."""
        row = self._sql.execute("SELECT last, floor, aged FROM streams WHERE stream = ?", (stream,)).fetchone()
        last, floor, aged = row
        return last, floor, aged

    def last_arrival(self, topic: int, before_ms: int | None = None) -> int:
        """The number of the last event of a topic that had come by this time, or by now; 0 if none had."""
        condition, values = ("", ()) if before_ms is None else (" AND time_ms < ?", (before_ms,))
        query = f"SELECT coalesce(max(number), 0) FROM events WHERE topic = ?{condition}"  # noqa: S608
        (number,) = self._sql.execute(query, (signed(topic), *values)).fetchone()
        return int(number)

    def possessed(self, topic: int, window: int) -> list[Possessed]:
        """The streams of a topic, for a ledger, with what is missing among the last `window` of each."""
        rows = self._sql.execute(
            "SELECT source, last, floor, head,"
            " (SELECT min(sequence) FROM events WHERE events.stream = streams.stream),"
            " EXISTS (SELECT 1 FROM equivocations AS e WHERE e.source = streams.source AND e.topic = streams.topic)"
            " FROM streams WHERE topic = ?",
            (signed(topic),),
        ).fetchall()
        return [
            Possessed(source, last, floor, lowest or last + 1, head, bool(forked), self.missing(source, topic, window))
            for source, last, floor, head, lowest, forked in rows
        ]

    def bytes_by_topic(self) -> dict[int, int]:
        """Bytes of events kept, as retention counts them."""
        return {unsigned(topic): size for topic, size in self._sql.execute("SELECT topic, bytes FROM topics")}

    def _known_stream(self, source: bytes, topic: int) -> _Stream | None:
        found = self._sql.execute(
            "SELECT stream, last, floor, head FROM streams WHERE source = ? AND topic = ?", (source, signed(topic))
        ).fetchone()
        return None if found is None else _Stream._make(found)
