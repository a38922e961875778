"""Publishing: an event goes to the disk first, then to the overlay, and waits if the overlay has no path for it.

Acknowledged means kept: whatever happens after `publish` has stored an event, it is not lost. If nobody takes it in
time the caller gets `NoPath`, and the event spreads when somebody asks this node, a member of the topic, for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.config import NodeConfig
from grapevine.net.envelope import Event, envelope_of, opened, published_ms, stamped
from grapevine.net.event_file import StoredEvent
from grapevine.net.host import Host
from grapevine.net.identity import Identity
from grapevine.net.store import Store
from grapevine.net.surroundings import wall_clock_ms
from grapevine.net.topics import Topics
from grapevine.systems.contracts.live import LiveSystem


class NoPath(GrapevineError):  # noqa: N818 - it says what is the case
    """Nobody took the event in time. It is kept, and spreads as soon as somebody can."""


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
        is_alone: Callable[[], bool],
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._identity, self._system, self._config = identity, system, config
        self._store, self._topics, self._host, self._is_alone = store, topics, host, is_alone
        self._clock_ms = clock_ms
        self._unsent: list[tuple[StoredEvent, asyncio.Future[None]]] = []  # and who waits until they are sent
        self._is_closed = False

    @property
    def unsent(self) -> int:
        """Events that wait for a path."""
        return len(self._unsent)

    async def publish(self, topic: str, payload: bytes, timeout: float) -> Event:
        """Keep an event, then hand it to the overlay. UsageError if it may not be published; NoPath after the time-out.

        It is on the disk, and will spread, as soon as NoPath can be raised.
        """
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
            event = await self._keep(topic_id, payload)
            self._topics.on_published(event)
        await self._hand_on(event, timeout)
        return opened(topic, event)

    async def _keep(self, topic_id: int, payload: bytes) -> StoredEvent:
        time_ms = self._clock_ms()
        content = stamped(time_ms, payload)

        def sign(sequence: int) -> bytes:
            return self._identity.sign(topic_id, sequence, content).seal

        return await self._store.publish(self._identity.id, topic_id, time_ms, content, sign)

    async def rejoin(self) -> None:
        """Be a member of topics that this node published in lately: events may have been on their way at its end."""
        me, before_ms = self._identity.id, self._clock_ms() - int(1e3 * self._config.membership_s)
        for (publisher, topic_id), last in (await self._store.last_sequences()).items():
            if publisher == me and self._system.may_publish(topic_id, publisher):
                newest = await self._store.find(publisher, topic_id, [last])
                if newest and published_ms(newest[0]) > before_ms:
                    async with self._topics.publishing(topic_id):
                        pass  # that is enough to become a member

    async def _hand_on(self, event: StoredEvent, timeout: float) -> None:
        if self._is_alone() or self._send(event):
            return
        sent = asyncio.get_running_loop().create_future()
        self._unsent.append((event, sent))
        try:
            await asyncio.wait_for(sent, timeout)
        except TimeoutError:
            raise NoPath(
                f"nobody could take event {event.sequence} within {timeout:g} s; it is kept, and spreads"
                " when a neighbour is there: check that a bootstrap node is reachable"
            ) from None

    def _send(self, event: StoredEvent) -> bool:
        if not self._host.has_path(event.topic):
            return False
        return self._host.publish(event.topic, envelope_of(event), event.sequence)

    def send_unsent(self) -> None:
        """Try again to hand on what waits. Called by the node every now and then."""
        still = []
        for event, sent in self._unsent:
            if sent.done():
                continue  # whoever waited has given up
            if self._send(event):
                sent.set_result(None)
            else:
                still.append((event, sent))
        self._unsent = still

    def close(self) -> None:
        """The node closes: whoever waits for a path is told, and nothing more is published."""
        self._is_closed = True
        for _, sent in self._unsent:
            if not sent.done():
                sent.set_exception(NoPath("the node was closed before anybody took the event; it is kept"))
