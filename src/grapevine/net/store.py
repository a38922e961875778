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
from typing import Any, NamedTuple, TypeVar

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.equivocation import Equivocation
from grapevine.net.event_file import EventFile, Possessed
from grapevine.net.positions import Place
from grapevine.net.private_files import make_private_file, make_private_folder
from grapevine.net.retention import Retention
from grapevine.net.store_work import StoreWork, ThreadedWork, Written
from grapevine.net.stored_event import StoredEvent

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


class Stretch(NamedTuple):
    """A part of a stream."""

    events: list[StoredEvent]
    last: int  # of the stream
    floor: int  # up to here retention has removed everything
    aged: int  # up to here because of its age; beyond, for room


class Store:
    """Events of one node, in its data folder. `async with await Store.open(folder) as store: …`"""

    def __init__(self, writer: EventFile, reader: EventFile, retention: Retention, work: StoreWork) -> None:
        self.path, self.retention = writer.path, retention
        self.trouble: str | None = None  # why the disk refused the last changes; None: it did not
        self.on_equivocation: Callable[[Equivocation], None] = lambda _: None  # told of every new one, in the loop
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
        self, source: bytes, topic: int, time_ms: int, make: Callable[[int, bytes], tuple[bytes, bytes]], acks: int = 0
    ) -> StoredEvent:
        """Keep an event of one's own under the next number of its stream, and only then send it to others.

        The number is taken and used in one transaction, so that there are no gaps, and no number of a source has two
        events, whatever crashes. (Restored copies of the file are why sources have epochs.) `make` is given the number
        and the fingerprint of the event before, and gives content and signature; it is called in the writer's thread.
        With `acks`, the event is on offer from the beginning (`offer`).
        """
        return await self._change(lambda file: file.publish(source, topic, time_ms, make, acks))

    async def epoch(self, publisher: PeerId) -> int | None:
        """The last epoch that this node, which is that publisher, began; None: none."""
        return await self._ask(lambda file: file.epoch(publisher))

    async def begin_epoch(self, publisher: PeerId, epoch: int) -> None:
        """This node, which is that publisher, publishes in that epoch from now on."""
        await self._change(lambda file: file.begin_epoch(publisher, epoch))

    async def clock(self) -> tuple[int, int] | None:
        """What `note_clock` noted last; None: nothing."""
        return await self._ask(EventFile.clock)

    async def note_clock(self, arrivals_ms: int, day_ms: int) -> None:
        """What the clock of arrivals and the time of day are now (`steady_clock`)."""
        await self._change(lambda file: file.note_clock(arrivals_ms, day_ms))

    async def compare(self, event: StoredEvent) -> bool:
        """Whether an event whose number is taken contradicts what is here; then the evidence is kept."""
        return await self._change(lambda file: file.compare(event), event.size)

    async def note_equivocation(self, found: Equivocation) -> bool:
        """Keep evidence that somebody sent and that was checked; False if there is some of the stream already."""
        return await self._change(lambda file: file.note_equivocation(found))

    async def equivocations(self) -> list[Equivocation]:
        """The evidence that is kept, one of a stream at most."""
        return await self._ask(EventFile.equivocations)

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

    async def offer(self, topic: int, epoch: int, sequence: int, acks: int) -> None:
        """Remember that an event of one's own waits for so many confirmations, or for somebody who takes it (0)."""
        await self._change(lambda file: file.offers.add(topic, epoch, sequence, acks))

    async def end_offer(self, topic: int, epoch: int, sequence: int) -> None:
        """It waits no longer."""
        await self._change(lambda file: file.offers.end(topic, epoch, sequence))

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

    async def since(self, source: bytes, topic: int, sequence: int, limit: int) -> list[StoredEvent]:
        """A stream's events after this one, in order, at most so many."""
        return await self._ask(lambda file: file.since(source, topic, sequence, limit))

    async def find(self, source: bytes, topic: int, sequences: Iterable[int]) -> list[StoredEvent]:
        """Those of these events that are here, in the order asked for."""
        return await self._ask(lambda file: file.find(source, topic, sequences))

    async def since_time(self, source: bytes, topic: int, first_ms: int, limit: int) -> list[StoredEvent]:
        """A stream's events in order, from the first one on that came at this time or later, at most so many."""
        return await self._ask(lambda file: file.since_time(source, topic, first_ms, limit))

    async def over(self, source: bytes, topic: int, first_ms: int) -> int:
        """The last event of a stream that came before this time, or that retention removed; 0: none."""
        return await self._ask(lambda file: file.over(source, topic, first_ms))

    async def newest_first(self, source: bytes, topic: int, first_ms: int, up_to: int, limit: int) -> list[StoredEvent]:
        """A stream's events that came at this time or later, from this number down, at most so many."""
        return await self._ask(lambda file: file.newest_first(source, topic, first_ms, up_to, limit))

    async def missing(self, source: bytes, topic: int, window: int) -> list[int]:
        """Numbers among a stream's last `window` whose events have not come; removed ones are not missing."""
        return await self._ask(lambda file: file.missing(source, topic, window))

    async def next_sequence(self, source: bytes, topic: int) -> int:
        """The number that the stream's next event will have."""
        return await self._ask(lambda file: file.next_sequence(source, topic))

    async def last_sequences(self) -> dict[tuple[bytes, int], int]:
        """The last number of every stream, by source and topic; also where retention has left no event."""
        return await self._ask(EventFile.last_sequences)

    async def subscriptions(self) -> dict[str, int]:
        """Topics that the application wants, by name, and since when (ms)."""
        return await self._ask(EventFile.subscriptions)

    async def arrivals(self, topic: int, after: int, limit: int) -> list[StoredEvent]:
        """Events of a topic in the order in which they came, after this arrival."""
        return await self._ask(lambda file: file.arrivals(topic, after, limit))

    async def offers(self) -> list[tuple[int, int, int, int]]:
        """Events of one's own that wait: topic, epoch, sequence, and how many confirmations are wanted."""
        return await self._ask(lambda file: file.offers.all())

    async def readers(self, topic: int) -> list[str]:
        """The names of a topic's readers, in alphabetical order."""
        return await self._ask(lambda file: file.positions.names(topic))

    async def places(self, reader: int) -> list[Place]:
        """Every stream of the reader's topic, and how far it has come there."""
        return await self._ask(lambda file: file.positions.places(reader))

    async def beginnings(self, topic: int, since_ms: int | None) -> list[Place]:
        """Where a reader without a name begins in every stream that is known (`Positions.beginnings`)."""
        return await self._ask(lambda file: file.positions.beginnings(topic, since_ms))

    async def streams(self, topic: int) -> list[Place]:
        """Every stream of a topic, for a reader that has been nowhere."""
        return await self._ask(lambda file: file.positions.streams(topic))

    async def stretch(self, place: Place, topic: int, first: int, limit: int) -> Stretch:
        """Events of a stream from the first on, in order, at most so many, and how far it goes.

        An event that comes while this is asked may be among them and beyond the last number, never the other way round.
        """

        def look(file: EventFile) -> Stretch:
            last, floor, aged = file.extent(place.stream)
            return Stretch(file.since(place.source, topic, first - 1, limit), last, floor, aged)

        return await self._ask(look)

    async def last_arrival(self, topic: int, before_ms: int | None = None) -> int:
        """The number of the last event of a topic that had come by this time, or by now; 0 if none had."""
        return await self._ask(lambda file: file.last_arrival(topic, before_ms))

    async def possessed(self, topic: int, window: int) -> list[Possessed]:
        """Streams of a topic, for a ledger, with what is missing among the last `window`."""
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
        found = self._commit(batch)
        return Written(partial(self._settle, batch, found), len(batch) + (not more), more)

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

    def _commit(self, batch: list[_Change]) -> list[Equivocation]:
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
            return self._writer.take_found()
        except Exception as error:
            explained = self._explained(error)
            self.trouble = str(explained)
            for change in batch:
                change.error = explained
            self._undo()
            return []

    def _settle(self, batch: list[_Change], found: list[Equivocation]) -> None:
        for one in found:
            self.on_equivocation(one)
        for change in batch:
            if change.done.done():
                continue  # whoever waited has given up
            if change.error is not None:
                change.done.set_exception(change.error)
            else:
                change.done.set_result(change.result)

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
