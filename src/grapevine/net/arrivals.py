"""From a message that carries an event to the disk, and only then to the application.

Whoever sends an event answers for it: it must be what its publisher signed, at every hop. What an application's
validator refuses, or what is longer than this node takes, is neither kept nor passed on; who passed it on could not
know that, and is not blamed (`verdicts`). Readers do not hear of what the validator refused; for what is too long they
are given a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from grapevine.model.errors import PeerError
from grapevine.model.identity import SEAL_BYTES
from grapevine.net.conduct import FORGED, REFUSED
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.envelope import Seals, opened
from grapevine.net.epochs import Epochs
from grapevine.net.ledger import Ledger
from grapevine.net.stamp import epoch_of, fingerprint, sequence_of, stamp_of
from grapevine.net.store import Store, StoreError
from grapevine.net.stored_event import StoredEvent
from grapevine.net.topics import Topics
from grapevine.net.verdicts import Validator, Verdict, verdict_of
from grapevine.net.witness import Witness
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address

_MOST_WAITING = 10_000  # events, for the disk
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Arrival:
    """An event that was checked and noted in the ledger, and waits for the disk."""

    event: StoredEvent
    sender: Address
    pulled: bool


class Arrivals:
    """Events on their way to the disk. Two ways in: `check` and `accept` for pushed ones, `take_kept` for recovered."""

    def __init__(
        self,
        config: NodeConfig,
        system: LiveSystem,
        connections: Connections,
        ledger: Ledger,
        store: Store,
        topics: Topics,
        witness: Witness,
        epochs: Epochs,
        clock_ms: Callable[[], int],
        on_kept: Callable[[StoredEvent], None] | None = None,
    ) -> None:
        self.me, self.witness, self.clock_ms = connections.identity.id, witness, clock_ms
        self.rejected: Counter[str] = Counter()  # by reason
        self.returned = 0  # events of this node's that others had and its folder had not
        self._epochs = epochs
        self._renewing: asyncio.Future[None] | None = None
        self._on_kept = on_kept  # told of every event that is on the disk (`confirmations`)
        self.validators: dict[int, list[Validator]] = {}
        self._config, self._system, self._connections = config, system, connections
        self._ledger, self._store, self._topics = ledger, store, topics
        self._seals = Seals()
        self._waiting: deque[_Arrival] = deque()
        self._news = asyncio.Event()
        self._written = asyncio.Event()  # nothing waits, and nothing is being written
        self._written.set()

    @property
    def waiting(self) -> bool:
        """Whether something that came is not on the disk yet."""
        return not self._written.is_set()

    async def all_kept(self) -> None:
        """Wait until everything that came is on the disk, or was given up because the disk refused it."""
        await self._written.wait()

    # Checks

    def check(self, connection: Connection, message: Any) -> StoredEvent | None:
        """The event that a pushed message carries; None if it may not be passed on.

        A message whose event is forged, or which names another publisher than the seal does, is blamed on its sender.
        """
        sequence = sequence_of(epoch_of(message.payload[SEAL_BYTES:]), message.sequence)
        event = self._checked(connection, message.topic, sequence, message.payload, pulled=False)
        if event is not None and getattr(message, "publisher", event.publisher.address) != event.publisher.address:
            error = PeerError(f"event {event.sequence} of topic {event.topic} is of another than it says")
            self._blame(connection, "forged", FORGED, error)
            return None
        return event

    def take_kept(self, connection: Connection, topic: int, sequence: int, envelope: bytes) -> bool:
        """Take an event that was asked for because it was missed; False if it is not new."""
        event = self._checked(connection, topic, sequence, envelope, pulled=True)
        return event is not None and self.accept(event, connection.address, pulled=True)

    def take_older(self, connection: Connection, topic: int, sequence: int, envelope: bytes) -> None:
        """An event that a partner holds for too old to be wanted: it shows that its stream exists, and how far."""
        event = self._checked(connection, topic, sequence, envelope, pulled=True)
        if event is not None and topic in self._ledger and self._has_room(event):
            self._ledger.show(topic, event.source, sequence, fingerprint(sequence, event.payload))

    def _checked(
        self, connection: Connection, topic: int, sequence: int, envelope: bytes, *, pulled: bool
    ) -> StoredEvent | None:
        most, copies = self._config.payload_bytes, self._seals.copies
        try:
            event = self._seals.check(topic, sequence, envelope, self.clock_ms())
            if self._topics.is_wanted(topic) and not self._system.may_publish(topic, event.publisher):
                raise PeerError(f"an event of topic {topic} came that {event.publisher} may not publish")
        except PeerError as error:
            self._blame(connection, "forged", FORGED, error)
            return None
        if len(event.payload) > most + stamp_of(event.payload).size:
            self.rejected["too long"] += 1
            if topic in self._ledger and self._has_room(event):
                now, head = self._connections.loop.time(), fingerprint(sequence, event.payload)
                self._ledger.give_up(topic, event.source, sequence, now, head)  # or it would be asked for again
            return None
        if self._seals.copies == copies and self._ledger.has(topic, event.source, sequence):
            self.witness.compare(event)  # it came long ago, or it is another under the same number
        for validator in self.validators.get(topic, ()):
            verdict = self._verdict(validator, event)
            if verdict is not Verdict.ACCEPT:
                self._refuse(connection, event, verdict, pulled=pulled)
                return None
        return event

    def _verdict(self, validator: Validator, event: StoredEvent) -> Verdict:
        try:
            return verdict_of(validator(opened(self._topics.name_of(event.topic), event)))
        except Exception:
            _log.exception("a validator failed; the event is ignored")
            return Verdict.IGNORE

    def _refuse(self, connection: Connection, event: StoredEvent, verdict: Verdict, *, pulled: bool) -> None:
        """A validator does not want it. It is seen, or it would be asked for again; where its publisher has an account,
        or room for one."""
        if event.topic in self._ledger and self._has_room(event):
            now, head = self._connections.loop.time(), fingerprint(event.sequence, event.payload)
            self._ledger.refuse(event.topic, event.source, event.sequence, now, head)
        if verdict is Verdict.REJECT and connection.id == event.publisher and not pulled:
            self._blame(connection, "refused", REFUSED, PeerError(f"a validator refused event {event.sequence}"))
        else:
            self.rejected["refused" if verdict is Verdict.REJECT else "ignored"] += 1

    def _blame(self, connection: Connection, what: str, points: int, error: PeerError) -> None:
        self.rejected[what] += 1
        self._connections.blame(connection, what, points, error)

    # The disk

    def accept(self, event: StoredEvent, sender: Address, *, pulled: bool) -> bool:
        """Keep an event of a topic that is wanted or carried; False if it is known, or of another topic."""
        topic, now = event.topic, self._connections.loop.time()
        if not self._topics.is_carried(topic):
            return False
        if not self._has_room(event):
            return False
        if len(self._waiting) >= _MOST_WAITING:
            self.rejected["disk too slow"] += 1  # it stays missing, and is asked for later
            return False
        if not self._ledger.note(topic, event.source, event.sequence, now, fingerprint(event.sequence, event.payload)):
            return False
        if event.publisher == self.me:
            self._on_own(event)
        self._waiting.append(_Arrival(event, sender, pulled))
        self._written.clear()
        self._news.set()
        return True

    def _has_room(self, event: StoredEvent) -> bool:
        has_room = self._ledger.has_room(event.topic, event.source, self._config.publishers)
        if not has_room:
            self.rejected["too many publishers"] += 1
        return has_room

    def _on_own(self, event: StoredEvent) -> None:
        """An event of this node's comes back that its folder does not have: that is older than what others have."""
        self.returned += 1
        if event.epoch == self._epochs.epoch and self._renewing is None:
            _log.error("the folder was restored without a trace: this node publishes in a new epoch from now on")
            self._renewing = asyncio.ensure_future(self._epochs.renew())

    async def keep(self) -> None:
        """For ever: write what has come to the disk, together; then deliver it."""
        while True:
            await self._news.wait()
            self._news.clear()
            batch = list(self._waiting)
            self._waiting.clear()
            try:
                await self._keep(batch)
            except Exception as error:  # a StoreError, mostly; whatever it is, others will come
                _log.error("events were not kept: %s", error, exc_info=not isinstance(error, StoreError))
                self._lose(batch)
            finally:
                if not self._waiting:
                    self._written.set()

    async def _keep(self, batch: list[_Arrival]) -> None:
        numbers = await self._store.append_all([arrival.event for arrival in batch])
        for came, number in zip(batch, numbers, strict=True):
            if self._on_kept is not None:
                self._on_kept(came.event)
            if number:  # otherwise the store had it already
                self._topics.deliver(replace(came.event, arrival=number), came.sender, pulled=came.pulled)

    def _lose(self, batch: list[_Arrival]) -> None:
        """The disk did not take them: they are missing again, and asked for later."""
        for came in batch:
            event = came.event
            self._ledger.lose(event.topic, event.source, event.sequence, self._connections.loop.time())
        self.rejected["not kept"] += len(batch)
