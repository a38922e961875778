"""How long events are kept, and which of them go first.

By age: whatever came longer ago than `age_s`, by the clock of arrivals (`steady_clock`), which does not jump. For room:
of a topic that has too many bytes, and of all topics together, the oldest arrivals; of all topics together first those
of topics that the node only carries for others, then those that its applications want or that it published itself.

What is removed raises the floor of its stream: it is over. Of every floor the file knows how much is due to age
(`aged`); what lies between the two was evicted for room, and readers are told which it was.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from grapevine.model.config import Config, parameter

_OURS = (
    "topic IN (SELECT topic FROM subscriptions)"
    " OR topic IN (SELECT topic FROM streams JOIN epochs ON substr(source, 1, 32) = publisher)"
)


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


class Trimming:
    """Removes events of a file. A change counts when the file commits."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def trim(self, now_ms: int, retention: Retention, most: int) -> int:
        """Remove events beyond the retention, `most` of them; how many were removed. 0 says that all is within it."""
        doomed = list(self._oldest("time_ms < ?", (now_ms - round(1_000 * retention.age_s),), most))
        aged = bool(doomed)
        doomed = (
            doomed
            or self._too_many_of_a_topic(retention.topic_bytes, most)
            or self._too_many(retention.total_bytes, most)
        )
        self._remove(doomed, aged=aged)
        return len(doomed)

    def _too_many_of_a_topic(self, allowed: int, most: int) -> list[_Row]:
        found = self._sql.execute("SELECT topic, bytes FROM topics WHERE bytes > ? LIMIT 1", (allowed,)).fetchone()
        return _enough(self._oldest("topic = ?", (found[0],), most), found[1] - allowed) if found else []

    def _too_many(self, allowed: int, most: int) -> list[_Row]:
        (total,) = self._sql.execute("SELECT coalesce(sum(bytes), 0) FROM topics").fetchone()
        if total <= allowed:
            return []
        carried = _enough(self._oldest(f"NOT ({_OURS})", (), most), total - allowed)
        return carried or _enough(self._oldest("1", (), most), total - allowed)

    def _oldest(self, condition: str, values: tuple[int, ...], most: int) -> Iterator[_Row]:
        rows = self._sql.execute(
            f"SELECT number, stream, topic, sequence, bytes FROM events WHERE {condition}"  # noqa: S608
            " ORDER BY time_ms, number LIMIT ?",
            (*values, most),
        )
        return map(_Row._make, rows)

    def _remove(self, doomed: Collection[_Row], *, aged: bool) -> None:
        floors: dict[int, int] = {}
        freed: Counter[int] = Counter()
        for row in doomed:
            floors[row.stream] = max(row.sequence, floors.get(row.stream, 0))
            freed[row.topic] += row.bytes
        run = self._sql.executemany
        run("DELETE FROM events WHERE number = ?", [(row.number,) for row in doomed])
        run(
            "UPDATE streams SET floor = max(floor, ?), aged = max(aged, ?) WHERE stream = ?",
            [(top, top if aged else 0, stream) for stream, top in floors.items()],
        )
        run("UPDATE topics SET bytes = bytes - ? WHERE topic = ?", [(size, topic) for topic, size in freed.items()])
        run("DELETE FROM topics WHERE topic = ? AND bytes = 0", [(topic,) for topic in freed])


def _enough(rows: Iterable[_Row], excess: int) -> list[_Row]:
    """The first rows that together free so many bytes, or all."""
    taken: list[_Row] = []
    for row in rows:
        if excess <= 0:
            break
        taken.append(row)
        excess -= row.bytes
    return taken
