"""From a message that carries an event to the disk, and only then to the application.

Whoever sends an event answers for it: it must be what its publisher signed, at every hop. What an application's
validator refuses is neither kept nor passed on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from grapevine.model.errors import PeerError
from grapevine.net.conduct import FORGED, REFUSED
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.envelope import TIME_BYTES, Event, Seals, opened, published_ms
from grapevine.net.event_file import StoredEvent
from grapevine.net.ledger import Ledger
from grapevine.net.links import Links
from grapevine.net.recovery import CLOCKS_DIFFER_MS, Holder
from grapevine.net.store import Store, StoreError
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import Address

_MOST_WAITING = 10_000  # events, for the disk
_log = logging.getLogger(__name__)

Validator = Callable[[Event], bool]


class Deliver(Protocol):
    """What is told of an event that the disk has."""

    def __call__(self, event: StoredEvent, sender: Address, *, pulled: bool) -> None:
        """Once for every event."""


@dataclass(slots=True)
class _Arrival:
    event: StoredEvent
    sender: Address
    pulled: bool


class Arrivals:
    """Events on their way to the disk."""

    def __init__(
        self,
        config: NodeConfig,
        system: LiveSystem,
        links: Links,
        ledger: Ledger,
        store: Store,
        holder: Holder,
        names: Mapping[int, str],  # of topics that the application wants
        deliver: Deliver,
    ) -> None:
        self.rejected: Counter[str] = Counter()  # by reason
        self.validators: dict[int, list[Validator]] = {}
        self._config, self._system, self._links, self._ledger = config, system, links, ledger
        self._store, self._holder, self._names, self._deliver = store, holder, names, deliver
        self._seals = Seals()
        self._waiting: deque[_Arrival] = deque()
        self._news = asyncio.Event()
        self._writing = False

    @property
    def are_kept(self) -> bool:
        """Whether everything that came is on the disk."""
        return not self._waiting and not self._writing

    # Checks

    def check(self, connection: Connection, message: Any) -> StoredEvent | None:
        """The event that a message carries; None if it carries none that may be passed on."""
        event = self._checked(connection, message.topic, message.sequence, message.payload, pulled=False)
        if event is not None and getattr(message, "publisher", event.publisher.address) != event.publisher.address:
            error = PeerError(f"event {event.sequence} of topic {event.topic} is of another than it says")
            self._blame(connection, "forged", FORGED, error)
            return None
        return event

    def take_kept(self, connection: Connection, topic: int, sequence: int, envelope: bytes) -> bool:
        """An event that was missed, and asked for; False if it is not new."""
        event = self._checked(connection, topic, sequence, envelope, pulled=True)
        if event is None:
            return False
        if topic in self._ledger and published_ms(event) < self._holder.since_ms(topic) - CLOCKS_DIFFER_MS:
            self._ledger.nothing_below(topic, event.publisher.full, sequence, lost=False)
            return False
        return self.accept(event, connection.address, pulled=True)

    def _checked(
        self, connection: Connection, topic: int, sequence: int, envelope: bytes, *, pulled: bool
    ) -> StoredEvent | None:
        most = self._config.payload_bytes
        try:
            event = self._seals.check(topic, sequence, envelope, time.time_ns() // 1_000_000)
            if len(event.payload) > most + TIME_BYTES:
                raise PeerError(f"an event of {len(event.payload):,} bytes came; {most:,} are allowed")
            if topic in self._names and not self._system.may_publish(topic, event.publisher):
                raise PeerError(f"an event of topic {topic} came that {event.publisher} may not publish")
        except PeerError as error:
            self._blame(connection, "forged", FORGED, error)
            return None
        for validator in self.validators.get(topic, ()):
            if not self._passes(validator, event):
                self._refuse(connection, event, pulled=pulled)
                return None
        return event

    def _passes(self, validator: Validator, event: StoredEvent) -> bool:
        try:
            return validator(opened(self._names.get(event.topic, ""), event))
        except Exception:
            _log.exception("a validator failed; the event is refused")
            return False

    def _refuse(self, connection: Connection, event: StoredEvent, *, pulled: bool) -> None:
        """A validator does not want it. It is seen, or it would be asked for again. Who was asked is innocent."""
        if event.topic in self._ledger:
            self._ledger.note(event.topic, event.publisher.full, event.sequence, self._links.loop.time())
        if pulled:
            self.rejected["refused"] += 1
        else:
            self._blame(connection, "refused", REFUSED, PeerError(f"a validator refused event {event.sequence}"))

    def _blame(self, connection: Connection, what: str, points: int, error: PeerError) -> None:
        self.rejected[what] += 1
        self._links.blame(connection, what, points, error)

    # The disk

    def accept(self, event: StoredEvent, sender: Address, *, pulled: bool) -> bool:
        """Keep an event of a topic that is wanted or carried; False if it is known, or of another topic."""
        topic, now = event.topic, self._links.loop.time()
        if topic not in self._ledger:
            if not self._holder.partners(topic):
                return False
            self._ledger.open(topic, (), now)
        if not self._ledger.has_room(topic, event.publisher.full, self._config.publishers):
            self.rejected["too many publishers"] += 1
            return False
        if len(self._waiting) >= _MOST_WAITING:
            self.rejected["disk too slow"] += 1  # it stays missing, and is asked for later
            return False
        if not self._ledger.note(topic, event.publisher.full, event.sequence, now):
            return False
        self._waiting.append(_Arrival(event, sender, pulled))
        self._news.set()
        return True

    async def keep(self) -> None:
        """For ever: write what has come to the disk, together; then deliver it."""
        while True:
            await self._news.wait()
            self._news.clear()
            batch = list(self._waiting)
            self._waiting.clear()
            self._writing = True
            try:
                numbers = await self._store.append_all([arrival.event for arrival in batch])
                for arrival, number in zip(batch, numbers, strict=True):
                    if number:
                        self._deliver(replace(arrival.event, number=number), arrival.sender, pulled=arrival.pulled)
            except Exception as error:  # a StoreError, mostly; whatever it is, others will come
                _log.error("events were not kept: %s", error, exc_info=not isinstance(error, StoreError))
                for arrival in batch:
                    event = arrival.event
                    self._ledger.lose(event.topic, event.publisher.full, event.sequence, self._links.loop.time())
                self.rejected["not kept"] += len(batch)
            finally:
                self._writing = False
