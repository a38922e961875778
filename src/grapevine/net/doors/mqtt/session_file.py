"""Sessions on the disk, so that they outlive the node: one row each, replaced as a whole.

Several changes that come while the disk is busy are written together. A write survives the end of the process; after a
loss of power the last ones may be missing, and messages of QoS 2 may come twice.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from grapevine.model.errors import UsageError
from grapevine.net.store import StoreError

SESSION_FILE = "mqtt.sqlite"


class SessionFile:
    """Contents by client identifier. Without a folder nothing is kept beyond the process."""

    def __init__(self, folder: Path | None) -> None:
        self.path = ":memory:" if folder is None else str(folder / SESSION_FILE)
        try:
            self._sql = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._sql.execute("PRAGMA journal_mode = WAL")
            self._sql.execute("PRAGMA synchronous = NORMAL")
            self._sql.execute("CREATE TABLE IF NOT EXISTS sessions (client TEXT PRIMARY KEY, content BLOB NOT NULL)")
        except sqlite3.Error as error:
            raise UsageError(f"{self.path}: cannot be used ({error}); move it away to begin without sessions") from None
        self._changes: dict[str, bytes | None] = {}
        self._written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writer: asyncio.Task[None] | None = None

    def all(self) -> dict[str, bytes]:
        """What was kept."""
        return dict(self._sql.execute("SELECT client, content FROM sessions ORDER BY client"))

    async def put(self, client: str, content: bytes | None) -> None:
        """Keep, or remove (None), a session. It is written when this returns; StoreError if the disk refuses."""
        self._changes[client] = content
        written = self._written
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        await asyncio.shield(written)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._writer is not None:
            await self._writer
        self._sql.close()

    async def _write(self) -> None:
        while self._changes:
            changes, written = self._changes, self._written
            self._changes, self._written = {}, asyncio.get_running_loop().create_future()
            try:
                await asyncio.to_thread(self._commit, changes)
            except sqlite3.Error as error:
                written.set_exception(
                    StoreError(f"{self.path}: cannot be written ({error}); see whether the disk is full")
                )
                written.exception()  # whoever waits gets it; perhaps nobody does any more
            else:
                written.set_result(None)
        self._writer = None

    def _commit(self, changes: dict[str, bytes | None]) -> None:
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            for client, content in changes.items():
                if content is None:
                    self._sql.execute("DELETE FROM sessions WHERE client = ?", (client,))
                else:
                    self._sql.execute("REPLACE INTO sessions VALUES (?, ?)", (client, content))
        except BaseException:
            self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")
