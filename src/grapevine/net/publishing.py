"""Publishing: an event goes to the disk first, then to the overlay, and waits if the overlay has no path for it.

Acknowledged means kept: whatever happens after `publish` has stored an event, it is not lost. If nobody takes it in
time the caller gets `NoPath`, and the event stays on offer (`offers`), also after a restart: this node stays a member
of the topic, hands the event on as soon as there is a path, and gives it to whoever asks. With `acks`, `publish` waits
until so many others have it on their disks (`confirmations`), and it stays on offer until they have.

An event that somebody took without being a subscriber, such as a relay, or that was published where nobody else is
known, is not on offer any more. Who comes later gets it from this node while this is a member of the topic: for
`membership_s` after its last event there, in this session and the next. Who wants it to be had for longer subscribes to
the topic, or asks for `acks`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.config import NodeConfig
from grapevine.net.confirmations import Confirmations, Key, NotConfirmed
from grapevine.net.envelope import Event, opened
from grapevine.net.epochs import Epochs
from grapevine.net.host import Host
from grapevine.net.identity import Identity
from grapevine.net.stamp import epoch_of_source, publisher_of, source_of, stamped
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent
from grapevine.net.topics import Topic, Topics
from grapevine.systems.contracts.live import LiveSystem


class NoPath(GrapevineError):  # noqa: N818 - it says what is the case
    """Nobody took the event in time. It is kept, and stays on offer, also after a restart, until somebody takes it."""

    event: Event | None = None  # set by `Publishing.publish`


@dataclass(slots=True)
class _Unsent:
    """An event that has no path yet."""

    event: StoredEvent
    acks: int

    @property
    def key(self) -> Key:
        """What names it among events of this node's."""
        return _key(self.event)

    taken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Publishing:
    """The events of this node, from the application to the overlay. `is_alone`: there is nobody to wait for."""

    def __init__(
        self,
        identity: Identity,
        system: LiveSystem,
        config: NodeConfig,
        store: Store,
        topics: Topics,
        host: Host,
        confirmations: Confirmations,
        epochs: Epochs,
        is_alone: Callable[[], bool],
        clock_us: Callable[[], int],
        kept_at_ms: Callable[[], int],
    ) -> None:
        self._identity, self._system, self._config = identity, system, config
        self._store, self._topics, self._host, self._is_alone = store, topics, host, is_alone
        self._confirmations, self._epochs = confirmations, epochs
        self._clock_us, self._kept_at_ms = clock_us, kept_at_ms  # the time of day; and the time that retention goes by
        self._unsent: dict[Key, _Unsent] = {}
        self._members: dict[Key, Topic] = {}  # of events on offer: their topics, in which the node stays a member
        self._is_closed = False

    @property
    def unsent(self) -> int:
        """Events that wait for a path, whether somebody waits for that or not."""
        return len(self._unsent)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits in `publish` until an event has a path."""
        return any(not unsent.taken.done() for unsent in self._unsent.values())

    async def publish(self, topic: str, payload: bytes, timeout: float, acks: int = 0) -> Event:
        """Keep an event, then hand it to the overlay, then wait until so many others have it on their disks.

        UsageError if it may not be published; NoPath, NotConfirmed after the time-out. As soon as they can be raised,
        the event is on the disk, and it stays on offer until it is taken, or confirmed.
        """
        began, asked_us = asyncio.get_running_loop().time(), self._clock_us()
        if self._is_closed:
            raise UsageError("the node is closed; open another")
        if not isinstance(payload, bytes) or len(payload) > self._config.payload_bytes:
            given = f"{len(payload):,} bytes" if isinstance(payload, bytes) else f"type {type(payload).__name__}"
            cure = ", e.g. text.encode()" if isinstance(payload, str) else ""
            raise UsageError(f"a payload of {given}; give bytes{cure}, {self._config.payload_bytes:,} of them at most")
        me, topic_id = self._identity.id, self._system.topic(topic)
        if not self._system.may_publish(topic_id, me):
            raise UsageError(f"{topic!r} is not published by this node; its own feeds begin with {me}/")
        async with self._topics.publishing(topic_id):
            event = await self._keep(topic_id, asked_us, payload, acks)
            self._topics.on_published(event, asked_us)
            if acks:
                await self._stay(_key(event))
        published = opened(topic, event)
        try:
            await self._hand_on(event, timeout, acks)
            if acks:
                self._confirmations.watch(_key(event), acks)
                left = timeout - (asyncio.get_running_loop().time() - began)
                await self._confirmations.wait(_key(event), max(left, 0.0))
        except (NoPath, NotConfirmed) as kept:
            kept.event = published
            raise
        return published

    async def _keep(self, topic_id: int, asked_us: int, payload: bytes, acks: int) -> StoredEvent:
        source = self._epochs.source
        epoch = epoch_of_source(source)

        def make(sequence: int, before: bytes) -> tuple[bytes, bytes]:
            content = stamped(asked_us // 1_000, payload, epoch, before)
            return content, self._identity.sign(topic_id, sequence, content).seal

        return await self._store.publish(source, topic_id, self._kept_at_ms(), make, acks)

    async def rejoin(self) -> None:
        """Be a member of topics that this node published in lately: events may have been on their way at its end."""
        me, before_ms = self._identity.id, self._kept_at_ms() - int(1e3 * self._config.membership_s)
        for (source, topic_id), last in (await self._store.last_sequences()).items():
            if publisher_of(source) == me and self._system.may_publish(topic_id, me):
                newest = await self._store.find(source, topic_id, [last])
                if newest and newest[0].time_ms > before_ms:
                    async with self._topics.publishing(topic_id):
                        pass  # that is enough to become a member

    async def _hand_on(self, event: StoredEvent, timeout: float, acks: int) -> None:
        if self._is_alone() or self._send(event):
            return
        unsent = self._unsent[_key(event)] = _Unsent(event, acks)
        try:
            await asyncio.wait_for(asyncio.shield(unsent.taken), timeout)
        except TimeoutError:
            await self._keep_on_offer(unsent)
            raise NoPath(
                f"nobody could take event {event.sequence} within {timeout:g} s; it is kept, and stays on offer until"
                " somebody takes it: check that a bootstrap node is reachable"
            ) from None
        except (NoPath, asyncio.CancelledError):
            await asyncio.shield(asyncio.ensure_future(self._keep_on_offer(unsent)))
            raise

    def _send(self, event: StoredEvent) -> bool:
        if not self._host.has_path(event.topic):
            return False
        return self._host.publish(event.topic, event.envelope, event.number)

    # Offers

    async def _keep_on_offer(self, unsent: _Unsent) -> None:
        """An event that nobody took waits beyond its publisher's patience, and beyond the node's session."""
        unsent.taken.cancel()  # nobody waits for it here any more
        key = unsent.key
        with suppress(GrapevineError):  # the disk refuses, or the node closes: others may still ask for it in time
            await self._stay(key)
            await self._store.offer(*key, unsent.acks)
            if key not in self._unsent and not unsent.acks:  # it was taken while the disk was busy
                await self.end_offer(key)

    async def _stay(self, key: Key) -> None:
        """Be a member of a topic as long as this event is on offer."""
        if key not in self._members:
            self._members[key] = await self._topics.begin_publication(key[0])

    async def end_offer(self, key: Key) -> None:
        """An event was taken, or confirmed as often as was wanted. Membership ends in its time."""
        if (topic := self._members.pop(key, None)) is not None:
            self._topics.end_publication(topic)
        await self._store.end_offer(*key)

    async def resume_offers(self) -> None:
        """Go on with what was on offer when the last session ended; what retention has removed is over."""
        for topic_id, epoch, sequence, acks in await self._store.offers():
            key = topic_id, epoch, sequence
            found = await self._store.find(source_of(self._identity.id, epoch), topic_id, [sequence])
            if not found:
                await self._store.end_offer(*key)
                continue
            await self._stay(key)
            unsent = self._unsent[key] = _Unsent(found[0], acks)
            unsent.taken.cancel()

    async def send_unsent(self) -> None:
        """Try again to hand on what waits. Called by the node every now and then."""
        for key, unsent in list(self._unsent.items()):
            if not self._send(unsent.event):
                continue
            del self._unsent[key]
            if not unsent.taken.done():
                unsent.taken.set_result(None)
            elif unsent.acks:
                self._confirmations.watch(key, unsent.acks)
            else:
                with suppress(GrapevineError):  # the disk refuses: then the next session offers it once more
                    await self.end_offer(key)

    def close(self) -> None:
        """The node closes: whoever waits for a path is told, and nothing more is published."""
        self._is_closed = True
        for unsent in self._unsent.values():
            if not unsent.taken.done():
                unsent.taken.set_exception(NoPath("the node was closed before anybody took the event; it is kept"))


def _key(event: StoredEvent) -> Key:
    return event.topic, event.epoch, event.sequence
