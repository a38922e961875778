"""Sees that publishers contradict themselves, keeps the evidence, and tells partners that do not know.

Three ways lead to evidence (`equivocation`): an event that is written does not fit its neighbours (`EventFile`); an
event comes whose number is taken, and is another than the one that is here (`compare`); a partner has it (`Evidence`).
Whichever it is, the first evidence of a stream is kept on the disk, the node says so (`health`), and the stream's
digest becomes that of a forked one: partners whose digests differ are sent the evidence, and so everybody who exchanges
the topic comes to know. The events themselves stay as they came: nobody can say which of two was meant.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any
from weakref import WeakKeyDictionary

from grapevine.model.errors import GrapevineError, PeerError
from grapevine.net.conduct import GARBAGE
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.equivocation import Equivocation
from grapevine.net.ledger import Ledger, Stream
from grapevine.net.messages import Evidence
from grapevine.net.stamp import publisher_of
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent

_MOST_TASKS = 64  # beyond, what comes is not compared: it will come again
_MOST_TOLD = 1_000  # streams that one partner is told of
_log = logging.getLogger(__name__)


class Witness:
    """The equivocations that one node knows of. `start` it before anything comes."""

    def __init__(self, ledger: Ledger, store: Store, connections: Connections) -> None:
        self.found: dict[Stream, Equivocation] = {}
        self._ledger, self._store, self._connections = ledger, store, connections
        self._told: WeakKeyDictionary[Connection, set[Stream]] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_equivocation = self._on_found

    async def start(self) -> None:
        """Remember what earlier sessions saw."""
        for found in await self._store.equivocations():
            self.found[found.topic, found.source] = found

    def _on_found(self, found: Equivocation) -> None:
        self.found[found.topic, found.source] = found
        self._ledger.fork(found.topic, found.source)
        publisher, numbers = publisher_of(found.source), f"{found.first} and {found.second}"
        _log.error("%s contradicts itself: its events %s of topic %d do not fit", publisher, numbers, found.topic)

    def compare(self, event: StoredEvent) -> None:
        """An event came whose number is taken, and it is no copy of one that came lately: is it the same?"""
        if (event.topic, event.source) not in self.found:
            self._do(self._store.compare(event))

    def tell(self, connection: Connection, topic: int, source: bytes) -> None:
        """A partner compares a stream and does not know that it is forked: send it the evidence, once."""
        told, found = self._told.setdefault(connection, set()), self.found.get((topic, source))
        if found is not None and (topic, source) not in told and len(told) < _MOST_TOLD:
            told.add((topic, source))
            evidence = found.first, found.first_envelope, found.second, found.second_envelope
            self._connections.answer(connection, Evidence(topic, source, *evidence))

    def on_evidence(self, connection: Connection, message: Evidence) -> None:
        """A partner says that a publisher contradicts itself. Who cannot prove it is blamed; of streams without an
        account nothing is kept."""
        found = Equivocation(
            message.source,
            message.topic,
            message.first,
            message.first_envelope,
            message.second,
            message.second_envelope,
        )
        if (found.topic, found.source) in self.found:
            return
        try:
            found.check()
        except PeerError as error:
            self._connections.blame(connection, "garbage", GARBAGE, error)
            return
        if self._ledger.account(found.topic, found.source) is not None:
            self._do(self._store.note_equivocation(found))

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        if len(self._tasks) >= _MOST_TASKS:
            work.close()
            return
        task = asyncio.ensure_future(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Look at nothing more. Called when the node closes."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except GrapevineError:
        return  # the node is closing, or its disk refuses: what is wrong comes again
