"""The node's memory: events, sequence numbers and subscriptions that survive it, behind asyncio.

All changes go through one thread, which commits whatever has come together while the disk was busy with the commit
before (group commit): one at a time when little happens, hundreds at once when much does. A change is acknowledged,
that is, its `await` returns, when the disk has it. Questions have a thread and a connection of their own, do not wait
for the disk, and see everything that was acknowledged before they were asked. The threads are those of `store_work`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.event_file import EventFile, Retention, StoredEvent
from grapevine.net.positions import Place
from grapevine.net.private_files import make_private_file, make_private_folder
from grapevine.net.store_work import StoreWork, ThreadedWork, Written

STORE_FILE = "events.sqlite"
BATCH_CHANGES = 1_000  # in one transaction, so that nobody waits long for others
BATCH_BYTES = 8 << 20
TRIM_STEP = 500  # events removed in one transaction, likewise

Answer = TypeVar("Answer")


class StoreError(GrapevineError):
    """The disk is full, or broken, or the file on it is."""


@dataclass(slots=True)
class _Change:
    """Something to do in the next transaction, and who waits until it is on the disk."""

    work: Callable[[EventFile], Any]
    bytes: int
    done: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class Store:
    """Events of one node, in its data folder. `async with await Store.open(folder) as store: …`"""

    def __init__(self, writer: EventFile, reader: EventFile, retention: Retention, work: StoreWork) -> None:
        self.path, self.retention = writer.path, retention
        self.trouble: str | None = None  # why the disk refused the last changes; None: it did not
        self._writer, self._reader, self._work = writer, reader, work
        self._loop = asyncio.get_running_loop()
        self._changes: SimpleQueue[_Change | None] = SimpleQueue()  # None is the last
        self._closing: asyncio.Future[None] | None = None
        work.start(self._write)

    @classmethod
    async def open(
        cls, folder: Path, retention: Retention | None = None, *, synced: bool = True, work: StoreWork | None = None
    ) -> Store:
        """The store in a data folder; an empty one if there is none yet. Unsynced, it survives all but a power cut.

        `work` says how its work gets done; in threads, unless another is given.
        """
        work = work or ThreadedWork()
        writer, reader = await work.prepare(partial(_open_twice, folder, synced))
        return cls(writer, reader, retention or Retention(), work)

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was begun, and let go of the file."""
        if self._closing is None:
            self._changes.put(None)
            self._work.on_queued()
            self._closing = asyncio.ensure_future(self._work.finish(self._close_files))
        await asyncio.shield(self._closing)

    def _close_files(self) -> None:
        self._reader.close()
        self._writer.close()

    # Changes

    async def append(self, event: StoredEvent) -> int:
        """Keep an event; its place in the order of arrivals, or 0 if it is known, or was removed by retention.

        It is on the disk when this returns.
        """
        return await self._change(lambda file: file.append(event), event.size)

    async def append_all(self, events: Sequence[StoredEvent]) -> list[int]:
        """Keep several events, all or none; as many answers as `append` would give. StoreError if the disk refuses."""
        return await self._change(lambda file: [file.append(event) for event in events], sum(e.size for e in events))

    async def publish(
        self,
        publisher: PeerId,
        topic: int,
        time_ms: int,
        payload: bytes,
        sign: Callable[[int], bytes],
        acks: int = 0,
    ) -> StoredEvent:
        """Keep an event of one's own under the next number of its stream, and only then send it to others.

        The number is taken and used in one transaction, so that there are no gaps, and no number has two events,
        whatever crashes. (Restoring an old copy of the file would break that: become a new peer then.) `sign` is given
        the number, and is called in the writer's thread. With `acks`, it is on offer from the beginning (`offer`).
        """
        return await self._change(
            lambda file: file.publish(publisher, topic, time_ms, payload, sign, acks), len(payload)
        )

    async def subscribe(self, topic: int, name: str, since_ms: int) -> None:
        """Remember that the application wants a topic, from this time on."""
        await self._change(lambda file: file.subscribe(topic, name, since_ms))

    async def unsubscribe(self, topic: int) -> None:
        """Forget that the application wants a topic, and its readers. Its events stay until retention takes them."""
        await self._change(lambda file: file.unsubscribe(topic))

    async def open_reader(self, topic: int, name: str, since_ms: int | None) -> int:
        """The number of a topic's reader of this name; it is made if there is none (`Positions.open`)."""
        return await self._change(lambda file: file.positions.open(topic, name, since_ms))

    async def forget_reader(self, topic: int, name: str) -> bool:
        """Remove a topic's reader of this name; False if there was none."""
        return bool(await self._change(lambda file: file.positions.forget(topic, name)))

    async def move_reader(self, reader: int, positions: Mapping[int, int]) -> None:
        """Note by stream what is the first event that the reader has not acknowledged."""
        await self._change(lambda file: file.positions.move(reader, positions))

    async def offer(self, topic: int, sequence: int, acks: int) -> None:
        """Remember that an event of one's own waits for so many confirmations, or for somebody who takes it (0)."""
        await self._change(lambda file: file.offers.add(topic, sequence, acks))

    async def end_offer(self, topic: int, sequence: int) -> None:
        """It waits no longer."""
        await self._change(lambda file: file.offers.end(topic, sequence))

    async def trim(self, now_ms: int) -> int:
        """Remove what is beyond the retention, in steps between which others may write; how many events that were.

        The file does not shrink: SQLite uses the space again.
        """
        removed = 0
        while step := await self._change(lambda file: file.trim(now_ms, self.retention, TRIM_STEP)):
            removed += step
        return removed

    async def _change(self, work: Callable[[EventFile], Answer], size: int = 0) -> Answer:
        self._refuse_if_closed()
        change = _Change(work, size, self._loop.create_future())
        self._changes.put(change)
        self._work.on_queued()
        answer: Answer = await change.done
        return answer

    # Questions

    async def since(self, publisher: PeerId, topic: int, sequence: int, limit: int) -> list[StoredEvent]:
        """A stream's events after this one, in order, at most so many."""
        return await self._ask(lambda file: file.since(publisher, topic, sequence, limit))

    async def find(self, publisher: PeerId, topic: int, sequences: Iterable[int]) -> list[StoredEvent]:
        """Those of these events that are here, in the order asked for."""
        return await self._ask(lambda file: file.find(publisher, topic, sequences))

    async def missing(self, publisher: PeerId, topic: int, window: int) -> list[int]:
        """Numbers among a stream's last `window` whose events have not come; removed ones are not missing."""
        return await self._ask(lambda file: file.missing(publisher, topic, window))

    async def next_sequence(self, publisher: PeerId, topic: int) -> int:
        """The number that the stream's next event will have."""
        return await self._ask(lambda file: file.next_sequence(publisher, topic))

    async def last_sequences(self) -> dict[tuple[PeerId, int], int]:
        """The last number of every stream, by publisher and topic; also where retention has left no event."""
        return await self._ask(EventFile.last_sequences)

    async def subscriptions(self) -> dict[str, int]:
        """Topics that the application wants, by name, and since when (ms)."""
        return await self._ask(EventFile.subscriptions)

    async def arrivals(self, topic: int, after: int, limit: int) -> list[StoredEvent]:
        """Events of a topic in the order in which they came, after this arrival."""
        return await self._ask(lambda file: file.arrivals(topic, after, limit))

    async def offers(self) -> list[tuple[int, int, int]]:
        """Events of one's own that wait: topic, sequence, and how many confirmations are wanted."""
        return await self._ask(lambda file: file.offers.all())

    async def readers(self, topic: int) -> list[str]:
        """The names of a topic's readers, in alphabetical order."""
        return await self._ask(lambda file: file.positions.names(topic))

    async def places(self, reader: int) -> list[Place]:
        """Every stream of the reader's topic, and how far it has come there."""
        return await self._ask(lambda file: file.positions.places(reader))

    async def stretch(
        self, stream: int, publisher: PeerId, topic: int, first: int, limit: int
    ) -> tuple[list[StoredEvent], int, int]:
        """Events of a stream from the first on, in order, at most so many; its last number; and its floor.

        An event that comes while this is asked may be among them and beyond the last number, never the other way round.
        """

        def look(file: EventFile) -> tuple[list[StoredEvent], int, int]:
            last, floor = file.extent(stream)
            return file.since(publisher, topic, first - 1, limit), last, floor

        return await self._ask(look)

    async def last_arrival(self, topic: int, before_ms: int | None = None) -> int:
        """The number of the last event of a topic that had come by this time, or by now; 0 if none had."""
        return await self._ask(lambda file: file.last_arrival(topic, before_ms))

    async def possessed(self, topic: int, window: int) -> list[tuple[PeerId, int, int, list[int]]]:
        """Streams of a topic, for a ledger: publisher, last, floor, and what is missing among the last `window`."""
        return await self._ask(lambda file: file.possessed(topic, window))

    @property
    def waiting(self) -> int:
        """Changes that are not on the disk yet."""
        return self._changes.qsize()

    async def bytes_by_topic(self) -> dict[int, int]:
        """Bytes of events kept, as retention counts them."""
        return await self._ask(EventFile.bytes_by_topic)

    async def _ask(self, question: Callable[[EventFile], Answer]) -> Answer:
        self._refuse_if_closed()
        try:
            return await self._work.ask(question, self._reader)
        except sqlite3.Error as error:
            raise self._explained(error) from None

    def _refuse_if_closed(self) -> None:
        if self._closing is not None:
            raise UsageError(f"{self.path}: the store is closed; open it again")

    def _explained(self, error: Exception) -> StoreError:
        broken = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        advice = (
            "restore it, or move it away to start empty"
            if broken
            else "see what else uses it, and whether the disk is full"
        )
        return StoreError(f"{self.path}: cannot be {'read' if broken else 'used'} ({error}); {advice}")

    # What the writer does (`Writing`)

    def _write(self, *, wait: bool) -> Written:
        batch, more = self._gather(wait=wait)
        self._commit(batch)
        return Written(partial(_settle, batch), len(batch) + (not more), more)

    def _gather(self, *, wait: bool) -> tuple[list[_Change], bool]:
        """What has come, at least one change if it waits; and whether more can come."""
        batch: list[_Change] = []
        size = 0
        try:
            while len(batch) < BATCH_CHANGES and size < BATCH_BYTES:
                change = self._changes.get(block=wait and not batch)
                if change is None:
                    return batch, False
                batch.append(change)
                size += change.bytes
        except Empty:
            pass
        return batch, True

    def _commit(self, batch: list[_Change]) -> None:
        try:
            self._writer.begin()
            for change in batch:
                try:
                    change.result = change.work(self._writer)
                except sqlite3.Error:
                    raise
                except Exception as error:  # of a `sign` that fails before anything is written: nobody else's matter
                    change.error = error
            self._writer.commit()
            self.trouble = None
        except Exception as error:
            explained = self._explained(error)
            self.trouble = str(explained)
            for change in batch:
                change.error = explained
            self._undo()

    def _undo(self) -> None:
        try:
            self._writer.rollback()
        except sqlite3.Error:
            return  # SQLite has done it already, or will when the file is opened again


def _open_twice(folder: Path, synced: bool) -> tuple[EventFile, EventFile]:
    try:
        make_private_folder(folder)
        make_private_file(folder / STORE_FILE)
        for beside in folder.glob(f"{STORE_FILE}-*"):  # a write-ahead log; a new one gets the mode of the file itself
            make_private_file(beside)
    except OSError as error:
        raise UsageError(f"{folder}: cannot hold a store ({error.strerror}); choose another folder") from None
    writer = EventFile(folder / STORE_FILE, synced=synced)
    try:
        return writer, EventFile(folder / STORE_FILE, read_only=True)
    except BaseException:
        writer.close()
        raise


def _settle(batch: list[_Change]) -> None:
    for change in batch:
        if change.done.done():
            continue  # whoever waited has given up
        if change.error is not None:
            change.done.set_exception(change.error)
        else:
            change.done.set_result(change.result)
