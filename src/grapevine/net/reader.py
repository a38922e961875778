"""A named reader: a subscription that outlives its program. It goes on where it was, and is told what it cannot get.

    async with node.subscribe("orders", name="billing") as events:
        async for event in events:
            if isinstance(event, Gap):
                ...  # events first … last of this publisher are gone, for this reason
            else:
                ...  # handled; asking for the next event acknowledges this one

Theory. It is an `OrderedReader` whose places are on the disk (`positions`). The topic stays wanted when the reader
leaves, so the node keeps what comes.

Invariant: a position on the disk is never beyond what was acknowledged. So whatever is killed when, an event that was
handed over and not acknowledged comes again: at least once. `Event.id` tells those that were handled apart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Literal, cast, get_args

from grapevine.model import arguments
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.model.settings import none_of
from grapevine.net.envelope import Event, Gap
from grapevine.net.ordered_reader import Accounts, OrderedReader
from grapevine.net.positions import Place
from grapevine.net.stamp import source_of
from grapevine.net.store import Store

Acknowledging = Literal["auto", "explicit"]
NAME_CHARACTERS = 256
_log = logging.getLogger(__name__)


class Reader(OrderedReader):
    """Events of one topic for one named reader; the module says how it is used. Made by `Node.subscribe`.

    `enter` and `leave` are the node's. One program at a time may read under a name.
    """

    def __init__(
        self,
        topic: str,
        topic_id: int,
        name: str,
        store: Store,
        ledger: Accounts,
        *,
        size: int,
        acknowledging: Acknowledging,
        since_ms: int | None,
        order_s: float,
        enter: Callable[[Reader], Awaitable[int]],
        leave: Callable[[OrderedReader], Awaitable[None]],
    ) -> None:
        super().__init__(
            topic,
            topic_id,
            store,
            ledger,
            size=size,
            since_ms=since_ms,
            order_s=order_s,
            enter=self._enter_named,
            leave=leave,
        )
        self.name = name
        self._is_auto, self._enter_node = acknowledging == "auto", enter
        self._reader = 0  # its number in the store
        self._taken: Event | Gap | None = None  # what the application has in hand
        self._unwritten: dict[int, int] = {}  # positions that are not on the disk, by stream
        self._turn = asyncio.Lock()  # of whoever writes positions
        self._writing: asyncio.Task[None] | None = None

    async def _enter_named(self, _: OrderedReader) -> None:
        self._reader = await self._enter_node(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaving without an error acknowledges what was in hand; with one it comes again."""
        if kind is None and self._is_auto:
            self._note_taken()
        await super().__aexit__(kind, error, trace)

    async def _finish(self) -> None:
        try:
            await self._write_positions()
        except GrapevineError as failure:  # events come again, as they would after a crash
            _log.warning("the reader %r of %r left without noting how far it came: %s", self.name, self.topic, failure)
        await super()._finish()

    def close(self) -> None:
        """Nothing more is handed over; what was not is owed to the next who reads under this name."""
        super().close()
        self._queue.clear()
        self._unread = 0

    async def _places(self) -> list[Place]:
        return await self._store.places(self._reader)

    async def __anext__(self) -> Event | Gap:
        """The next event, or gap. With automatic acknowledgement, asking for it acknowledges the one before."""
        if self._is_auto and self._taken is not None:
            self._note_taken()
            self._write_soon()
        self._taken = await super().__anext__()
        return self._taken

    async def ack(self, item: Event | Gap) -> None:
        """This event or gap was handled, and so was everything of its publisher before it: none of it comes again.

        It is on the disk when this returns; StoreError if the disk refuses. UsageError for what this reader never got.
        """
        if not isinstance(item, Event | Gap) or item.topic != self.topic:
            raise UsageError(f"{item!r}: was not given to the reader {self.name!r} of {self.topic!r}; ack what it gave")
        await self.ack_up_to(item.publisher, _last_of(item), item.epoch)

    async def ack_up_to(self, publisher: PeerId, sequence: int, epoch: int = 0) -> None:
        """As `ack`, of the event or gap that ends with this sequence."""
        line = self._lines.get(source_of(publisher, epoch))
        if line is None or not 0 < sequence < line.next:
            raise UsageError(
                f"event {sequence} of {publisher} was not given to the reader {self.name!r} of {self.topic!r};"
                " ack what it gave"
            )
        self._note(line.place.stream, sequence)
        await self._write_positions()

    # Acknowledging

    def _note_taken(self) -> None:
        if self._taken is not None:
            line = self._lines[source_of(self._taken.publisher, self._taken.epoch)]
            self._note(line.place.stream, _last_of(self._taken))
            self._taken = None

    def _note(self, stream: int, sequence: int) -> None:
        self._unwritten[stream] = max(self._unwritten.get(stream, 0), sequence + 1)

    def _write_soon(self) -> None:
        """Write positions beside what the application does; while one is written, others come together."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_or_warn())

    async def _write_or_warn(self) -> None:
        try:
            await self._write_positions()
        except GrapevineError as failure:  # it is tried again with the next event; what is not noted comes again
            _log.warning("the reader %r of %r did not note how far it came: %s", self.name, self.topic, failure)

    async def _write_positions(self) -> None:
        async with self._turn:
            while self._unwritten:
                batch, self._unwritten = self._unwritten, {}
                try:
                    await self._store.move_reader(self._reader, batch)
                except BaseException:
                    self._unwritten = batch | self._unwritten  # newer ones win
                    raise


def _last_of(item: Event | Gap) -> int:
    return item.sequence if isinstance(item, Event) else item.last


def reader_name(text: object) -> str:
    """A reader's name; UsageError for anything but a text of a sensible length."""
    name = arguments.text("name", text)
    if len(name) > NAME_CHARACTERS:
        raise UsageError(f"name of {len(name)} characters: needs {NAME_CHARACTERS} at most")
    return name


def acknowledging(text: str) -> Acknowledging:
    """A way of acknowledging by its name; UsageError if there is none."""
    if text not in get_args(Acknowledging):
        raise UsageError(none_of(text, get_args(Acknowledging), "ack="))
    return cast(Acknowledging, text)
