"""Confirmed publishing: how a publisher knows that others have an event on their disks.

    A ──Confirm──▶ B         A asks those with whom it exchanges the topic's events, at once and then every `ASK_S`
    A ◀─Confirmed── B        when B's disk has the event: now, or once it is written

Rules:

1. Whoever was asked counts, once for each event, by its proven id. What it says is not proven: a partner may say that
   it keeps what it does not. So `acks` guards against crashes and lost messages, not against liars.
2. An event is asked about until it has as many confirmations as are wanted, also when nobody waits for them any more
   (`on_reached` then ends its offer).
3. What a stranger can make this node remember is bounded: sequences of a question, and answers that are owed to all.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from grapevine.model.errors import GrapevineError, PeerError
from grapevine.model.identity import PeerId
from grapevine.net.conduct import GARBAGE
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.envelope import Event
from grapevine.net.messages import Confirm, Confirmed
from grapevine.net.stamp import source_of
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent
from grapevine.systems.contracts.peer import Address

ASK_S = 0.5
MOST_ACKS = 64  # more partners than that nobody has
_SEQUENCES = 500  # in one question
_OWED = 10_000  # answers that wait for the disk; beyond, the oldest are forgotten, and asked for again
_LOOKING = 64  # questions that are looked up at a time

Key = tuple[int, int, int]  # topic, epoch and sequence of an event of this node's


class NotConfirmed(GrapevineError):  # noqa: N818 - it says what is the case
    """Fewer others than asked for said in time that they have the event. It is kept, and stays on offer to them."""

    event: Event | None = None  # set by `Publishing.publish`

    def __init__(self, sequence: int, confirmed: int, wanted: int) -> None:
        super().__init__(
            f"{confirmed} of {wanted} others had event {sequence} on their disks in time; it is kept here, and stays on"
            " offer until they have: wait longer, or ask for fewer"
        )
        self.confirmed, self.wanted = confirmed, wanted


class Interests(Protocol):
    """What confirmations ask about topics (`Topics`)."""

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom the node exchanges a topic's events."""


@dataclass(slots=True)
class _Pending:
    """An event of this node's that wants confirmations."""

    wanted: int
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    asked: set[Address] = field(default_factory=set)
    by: set[PeerId] = field(default_factory=set)


class Confirmations:
    """Both sides of one node: `watch` and `wait` for its own events, `on_confirm` and `on_kept` for those of others."""

    def __init__(
        self,
        interests: Interests,
        store: Store,
        connections: Connections,
        on_reached: Callable[[Key], Awaitable[None]],
    ) -> None:
        self._interests, self._store, self._connections, self._on_reached = interests, store, connections, on_reached
        self._pending: dict[Key, _Pending] = {}
        # Who waits until we have an event, by topic, source and sequence.
        self._owed: OrderedDict[tuple[int, bytes, int], list[Connection]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pending(self) -> int:
        """Events of this node's that fewer have confirmed than are to."""
        return len(self._pending)

    # Events of our own

    def watch(self, key: Key, acks: int) -> None:
        """Ask for confirmations of an event from now on, until there are so many."""
        topic, epoch, sequence = key
        self._pending[key] = _Pending(acks)
        self._ask_about(topic, epoch, [sequence])

    async def wait(self, key: Key, timeout: float) -> None:
        """Until an event that is watched has been confirmed as often as was wanted; NotConfirmed after the time-out."""
        pending = self._pending.get(key)
        if pending is None:
            return  # it was, meanwhile
        try:
            async with asyncio.timeout(timeout):
                await pending.reached.wait()
        except TimeoutError:
            raise NotConfirmed(key[2], len(pending.by), pending.wanted) from None

    def ask(self) -> None:
        """Ask again about whatever wants confirmations. A chore."""
        streams: dict[tuple[int, int], list[int]] = {}
        for topic, epoch, sequence in self._pending:
            streams.setdefault((topic, epoch), []).append(sequence)
        for (topic, epoch), sequences in streams.items():
            self._ask_about(topic, epoch, sequences)

    def _ask_about(self, topic: int, epoch: int, sequences: list[int]) -> None:
        for partner in self._interests.partners(topic):
            connection = self._connections.connection(partner)
            if connection is not None:
                open_ones = [s for s in sequences if connection.id not in self._pending[topic, epoch, s].by]
                for sequence in open_ones[:_SEQUENCES]:
                    self._pending[topic, epoch, sequence].asked.add(partner)
                if open_ones:
                    self._connections.answer(connection, Confirm(topic, epoch, tuple(open_ones[:_SEQUENCES])))

    def on_confirmed(self, connection: Connection, message: Confirmed) -> None:
        """A partner has these on its disk. What it was not asked about is ignored."""
        for sequence in message.sequences[:_SEQUENCES]:
            key = message.topic, message.epoch, sequence
            pending = self._pending.get(key)
            if pending is not None and connection.address in pending.asked and connection.id is not None:
                pending.by.add(connection.id)
                if len(pending.by) >= pending.wanted:
                    del self._pending[key]
                    pending.reached.set()
                    self._do(self._on_reached(key))

    # Events of others

    def on_confirm(self, connection: Connection, message: Confirm) -> None:
        """A publisher asks for events of its own: answer about those on the disk, and about others when they are."""
        sequences = [sequence for sequence in message.sequences[:_SEQUENCES] if 1 <= sequence < 2**63]
        if not sequences or not (0 <= message.topic < 2**64 and 0 <= message.epoch < 2**64):
            self._connections.blame(connection, "garbage", GARBAGE, PeerError("it asks about no event"))
            return
        assert connection.id is not None
        source = source_of(connection.id, message.epoch)
        for sequence in sequences:
            waiting = self._owed.setdefault((message.topic, source, sequence), [])
            if connection not in waiting:
                waiting.append(connection)
        while len(self._owed) > _OWED:
            self._owed.popitem(last=False)
        if len(self._tasks) < _LOOKING:  # beyond, it will ask again
            self._do(self._look_up(source, message.topic, sequences))

    async def _look_up(self, source: bytes, topic: int, sequences: list[int]) -> None:
        for event in await self._store.find(source, topic, sequences):
            self.on_kept(event)

    def on_kept(self, event: StoredEvent) -> None:
        """An event is on this node's disk: whoever waits for that is told. Called for every event that is written."""
        waiting = self._owed.pop((event.topic, event.source, event.sequence), None) if self._owed else None
        for connection in waiting or ():
            if not connection.is_closing:
                self._connections.answer(connection, Confirmed(event.topic, event.epoch, (event.sequence,)))

    # Work beside

    def _do(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _quietly(work: Awaitable[None]) -> None:
        try:
            await work
        except GrapevineError:
            return  # the node is closing, or its disk refuses: it is asked again, and so are others

    async def close(self) -> None:
        """Answer no more. Called when the node closes; whoever waits is told by `NotConfirmed` in its time."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
