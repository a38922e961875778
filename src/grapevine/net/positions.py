"""Named readers on disk: who reads a topic under which name, and how far each of them has come.

Theory. The events of a stream (one publisher in one topic and epoch) are numbered without gaps and are given to a
reader in this order. So one number a stream says all that there is to say of a reader: `next`, the first event that it
has not acknowledged. It is a cursor that outlives the events, the reader, the node's process and a kill.

Invariants:
1. A position never falls as long as the reader exists.
2. A reader that is made without a time is owed what comes from then on: every stream that the file knows at that moment
   has a position behind its last event. A stream without a position became known later, and is owed from its first
   event on, as far as that was published after the topic was wanted.

`EventFile` has one of these; what is changed between its `begin` and `commit` is on the disk after the latter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from grapevine.net.sqlite_numbers import signed, unsigned

SCHEMA = """
CREATE TABLE readers (
    reader INTEGER PRIMARY KEY AUTOINCREMENT, topic INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (topic, name)
);
CREATE TABLE positions (
    reader INTEGER NOT NULL, stream INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (reader, stream)
) WITHOUT ROWID;
"""


_FROM_NOW = "SELECT stream, source, last + 1 FROM streams WHERE topic = :topic ORDER BY stream"
# Behind the last event that came before the time, and has a lower number than all that came later.
_FROM_A_TIME = """
SELECT stream, source, nullif(max(floor, coalesce((
    SELECT max(sequence) FROM events WHERE events.stream = streams.stream AND time_ms < :since AND sequence < coalesce((
        SELECT min(sequence) FROM events WHERE events.stream = streams.stream AND time_ms >= :since
    ), 9223372036854775807)
), 0)) + 1, 1) FROM streams WHERE topic = :topic ORDER BY stream
"""


class Place(NamedTuple):
    """How far a reader has come in a stream."""

    stream: int  # its number in the file
    source: bytes  # who numbers it (`stamp`)
    next: int | None  # the first event that is not acknowledged; None: nothing was ever acknowledged or passed over


class Positions:
    """The readers of a file. A change counts when the file commits."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def open(self, topic: int, name: str, since_ms: int | None) -> int:
        """The number of a topic's reader of this name, which goes on where it was.

        If there is none yet it is made: it begins with what comes from now on, or with what came from this time on and
        is kept.
        """
        topic = signed(topic)
        found = self._sql.execute("SELECT reader FROM readers WHERE topic = ? AND name = ?", (topic, name)).fetchone()
        if found is not None:
            return int(found[0])
        made = self._sql.execute("INSERT INTO readers (topic, name) VALUES (?, ?)", (topic, name))
        assert made.lastrowid is not None
        self._sql.executemany(
            "INSERT INTO positions VALUES (?, ?, ?)",
            [
                (made.lastrowid, place.stream, place.next)
                for place in self.beginnings(unsigned(topic), since_ms)
                if place.next
            ],
        )
        return made.lastrowid

    def beginnings(self, topic: int, since_ms: int | None) -> list[Place]:
        """Where a new reader begins in every stream that is known: with what comes from now on, or with the first event
        that came at this time or later."""
        query = _FROM_NOW if since_ms is None else _FROM_A_TIME
        rows = self._sql.execute(query, {"topic": signed(topic), "since": since_ms})
        return [Place(*row) for row in rows]

    def forget(self, topic: int, name: str | None) -> int:
        """Remove the topic's reader of this name, or all of them; how many there were."""
        readers = self._sql.execute(
            "SELECT reader FROM readers WHERE topic = ? AND (? IS NULL OR name = ?)", (signed(topic), name, name)
        ).fetchall()
        self._sql.executemany("DELETE FROM positions WHERE reader = ?", readers)
        self._sql.executemany("DELETE FROM readers WHERE reader = ?", readers)
        return len(readers)

    def move(self, reader: int, positions: Mapping[int, int]) -> None:
        """Note by stream what is the first event that the reader has not acknowledged. A reader that was removed in the
        meantime stays so."""
        self._sql.executemany(
            "INSERT INTO positions SELECT reader, ?, ? FROM readers WHERE reader = ?"
            " ON CONFLICT (reader, stream) DO UPDATE SET next = max(next, excluded.next)",
            [(stream, at, reader) for stream, at in positions.items()],
        )

    def places(self, reader: int) -> list[Place]:
        """Every stream of the reader's topic, and how far it has come there."""
        rows = self._sql.execute(
            "SELECT stream, source, next FROM readers JOIN streams USING (topic)"
            " LEFT JOIN positions USING (reader, stream) WHERE reader = ? ORDER BY stream",
            (reader,),
        )
        return [Place(*row) for row in rows]

    def streams(self, topic: int) -> list[Place]:
        """Every stream of a topic, for a reader that has been nowhere."""
        rows = self._sql.execute(
            "SELECT stream, source, NULL FROM streams WHERE topic = ? ORDER BY stream", (signed(topic),)
        )
        return [Place(*row) for row in rows]

    def names(self, topic: int) -> list[str]:
        """The names of a topic's readers, in alphabetical order."""
        rows = self._sql.execute("SELECT name FROM readers WHERE topic = ? ORDER BY name", (signed(topic),))
        return [name for (name,) in rows]
