"""The layout of a node's file of events, and how files of older programs become one of today."""

from __future__ import annotations

import sqlite3

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net.offers import SCHEMA as OFFERS
from grapevine.net.positions import SCHEMA as READERS
from grapevine.net.stamp import fingerprint, source_of

_APPLICATION = 0x47525056  # "GRPV", in the file's header
_VERSION = 3  # 1 had no named readers and no offers, 2 no epochs
_ADDED_BY_3 = """
CREATE TABLE epochs (publisher BLOB PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE equivocations (
    source BLOB NOT NULL, topic INTEGER NOT NULL, first INTEGER NOT NULL, first_envelope BLOB NOT NULL,
    second INTEGER NOT NULL, second_envelope BLOB NOT NULL, PRIMARY KEY (source, topic)
) WITHOUT ROWID;
CREATE TABLE clock (only INTEGER PRIMARY KEY CHECK (only = 1), arrivals_ms INTEGER NOT NULL, day_ms INTEGER NOT NULL);
"""
_SCHEMA = f"""
CREATE TABLE streams (
    stream INTEGER PRIMARY KEY, source BLOB NOT NULL, topic INTEGER NOT NULL,
    last INTEGER NOT NULL DEFAULT 0, floor INTEGER NOT NULL DEFAULT 0, aged INTEGER NOT NULL DEFAULT 0,
    head BLOB NOT NULL DEFAULT x'', UNIQUE (source, topic)
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
{_ADDED_BY_3}
"""
_TABLES = "streams", "events", "topics", "subscriptions", "readers", "positions", "offers"
_TABLES_OF_3 = "epochs", "equivocations", "clock"


def prepare(sql: sqlite3.Connection, name: str) -> None:
    """Lay out an empty file, or bring one of an older program up to date, within a transaction that is open.

    UsageError if the file, called `name`, is another program's or a newer one's.
    """
    (application,) = sql.execute("PRAGMA application_id").fetchone()
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    if (application, version) == (0, 0) and not sql.execute("SELECT 1 FROM sqlite_master").fetchone():
        _run(sql, _SCHEMA + READERS + OFFERS)
        sql.execute(f"PRAGMA application_id = {_APPLICATION}")
    elif application != _APPLICATION:
        raise UsageError(f"{name}: is a database of another program; choose another folder")
    elif version in (1, 2):
        if version == 1:
            _run(sql, READERS + OFFERS)
        else:
            _renew_offers(sql)
        _begin_epochs(sql)
    elif version != _VERSION:
        raise UsageError(
            f"{name}: has version {version} of the layout, this program version {_VERSION}; move it away to start empty"
        )
    sql.execute(f"PRAGMA user_version = {_VERSION}")


def look_at_tables(sql: sqlite3.Connection) -> None:
    """Read a row of every table; sqlite3.DatabaseError where one is damaged."""
    for table in _TABLES + _TABLES_OF_3:
        sql.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()  # noqa: S608


def _run(sql: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        sql.execute(statement)


def _renew_offers(sql: sqlite3.Connection) -> None:
    """Offers of version 2 were all of the epoch 0, which was the only one."""
    sql.execute("ALTER TABLE offers RENAME TO old_offers")
    _run(sql, OFFERS)
    sql.execute("INSERT INTO offers (topic, epoch, sequence, acks) SELECT topic, 0, sequence, acks FROM old_offers")
    sql.execute("DROP TABLE old_offers")


def _begin_epochs(sql: sqlite3.Connection) -> None:
    """Streams of version 2 had a publisher where there is a source now; and nobody knew their last fingerprints."""
    _run(sql, _ADDED_BY_3)
    sql.execute("ALTER TABLE streams RENAME COLUMN publisher TO source")
    sql.execute("ALTER TABLE streams ADD COLUMN aged INTEGER NOT NULL DEFAULT 0")
    sql.execute("ALTER TABLE streams ADD COLUMN head BLOB NOT NULL DEFAULT x''")
    streams = sql.execute("SELECT stream, source, last, floor FROM streams").fetchall()
    for stream, publisher, last, floor in streams:
        row = sql.execute("SELECT payload FROM events WHERE stream = ? AND sequence = ?", (stream, last)).fetchone()
        head = b"" if row is None else fingerprint(last, row[0])
        values = source_of(PeerId(publisher)), floor, head, stream
        sql.execute("UPDATE streams SET source = ?, aged = ?, head = ? WHERE stream = ?", values)
