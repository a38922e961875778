"""Offers on disk: events of this node's own that nobody has taken yet, or fewer have confirmed than were to.

`publish` gives up waiting after a time-out, but not the event: it stays on offer, also after a restart, until somebody
takes it (`publishing`) or enough others say that they have it on their disk (`confirmations`).
"""

from __future__ import annotations

import sqlite3

from grapevine.net.sqlite_numbers import signed, unsigned

SCHEMA = """
CREATE TABLE offers (
    topic INTEGER NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, acks INTEGER NOT NULL,
    PRIMARY KEY (topic, epoch, sequence)
) WITHOUT ROWID;
"""


class Offers:
    """The offers of a file; their publisher is the node. A change counts when the file commits."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def add(self, topic: int, epoch: int, sequence: int, acks: int) -> None:
        """An event waits for so many confirmations; 0: for somebody who takes it."""
        self._sql.execute("INSERT OR REPLACE INTO offers VALUES (?, ?, ?, ?)", (signed(topic), epoch, sequence, acks))

    def end(self, topic: int, epoch: int, sequence: int) -> None:
        """It waits no longer."""
        self._sql.execute(
            "DELETE FROM offers WHERE topic = ? AND epoch = ? AND sequence = ?", (signed(topic), epoch, sequence)
        )

    def all(self) -> list[tuple[int, int, int, int]]:
        """Topic, epoch, sequence, and how many confirmations are wanted, in order."""
        rows = self._sql.execute("SELECT topic, epoch, sequence, acks FROM offers ORDER BY topic, epoch, sequence")
        return [(unsigned(topic), epoch, sequence, acks) for topic, epoch, sequence, acks in rows]
