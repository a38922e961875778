"""A live node: publish and subscribe without a broker.

    async with Node.open(listen="127.0.0.1:7001", bootstrap=["127.0.0.1:7000"]) as node:
        async with node.subscribe("weather/oslo") as events:
            await node.publish("weather/oslo", b"-3 C")
            async for event in events:
                print(event.topic, event.publisher, event.payload)

An event is acknowledged to its publisher when the disk has it. It is delivered to an application when the disk of the
application's node has it, once, and in the order of arrival. `publish` returns when the overlay has taken the event; if
there is no path, it waits for one, and after a time-out raises `NoPath`: the event is kept, and spreads when there is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.settings import make
from grapevine.net.arrivals import Arrivals, Validator
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.contacts import parse_endpoint, parse_endpoints
from grapevine.net.diary import Diary, DiaryError
from grapevine.net.envelope import Event, envelope_of, opened, published_ms, stamped
from grapevine.net.event_file import Retention, StoredEvent
from grapevine.net.home import Home
from grapevine.net.host import Host
from grapevine.net.inbox import Inbox, Policy
from grapevine.net.ledger import Ledger
from grapevine.net.links import Links, Traffic
from grapevine.net.live_system import live_system, messages_of
from grapevine.net.messages import Digest, Holdings, Kept, Want
from grapevine.net.recovery import Recovery
from grapevine.net.reunion import Reunion
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import FROM_BEHIND, Address, Message

_log = logging.getLogger(__name__)
_TICK_S = 0.1
_LEAVE_S = 2.0  # for a peer to leave in good order


class NoPath(GrapevineError):  # noqa: N818 - it says what is the case
    """Nobody took the event in time. It is kept, and spreads as soon as somebody can."""


class Node:
    """One live node. Made by `Node.open`."""

    def __init__(self, home: Home, system: LiveSystem, config: NodeConfig, links: Links, session: int) -> None:
        self.id, self.config, self.links = home.identity.id, config, links
        self.endpoint = ("", 0)
        self.delivered = self.published = 0
        self._home, self._system, self._store = home, system, home.store
        self._ledger = Ledger(config.gap_limit)
        self._host: Host
        self._names: dict[int, str] = {}  # of topics that the application wants
        self._arrivals = Arrivals(config, system, links, self._ledger, self._store, self, self._names, self._deliver)
        random = Random(session)
        self._recovery = Recovery(config, self, self._ledger, self._store, links, self._arrivals.take_kept, random)
        self._reunion = Reunion(links, config.retry_s, self._meet, random)
        self._since_ms: dict[int, int] = {}
        self._for_good: set[int] = set()  # topics that are wanted without a reader, too
        self._inboxes: dict[int, list[Inbox]] = {}
        self._members: dict[int, float] = {}  # topics that it publishes in, until when
        self._held: list[tuple[StoredEvent, asyncio.Future[None]]] = []  # events without a path
        self._diary: Diary | None = None
        self._seen = Traffic()  # at the diary's last line
        self._tasks: list[asyncio.Task[None]] = []
        self._started = self._closing = False

    # Opening and closing

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        listen: str = "127.0.0.1:0",
        bootstrap: Iterable[str] = (),
        *,
        system: str = "vitis",
        network: str = "grapevine",
        data_dir: str | Path | None = None,
        announce: str | None = None,
        diary: str | Path | None = None,
        retention: Retention | None = None,
        parameters: Mapping[str, Any] | None = None,
        validators: Mapping[str, Validator] | None = None,
        **settings: Any,
    ) -> AsyncIterator[Node]:
        """A running node, closed at the end of the block.

        `listen` is where others reach it (port 0: any), `announce` the IP address that they are told if it is another;
        `bootstrap` are endpoints of nodes to begin with. `data_dir` keeps identity, subscriptions and events; without
        it they end with the node. `parameters` are those of the system (`grapevine systems vitis`), `settings`
        those of `NodeConfig`. `validators` are there before the first event comes (`validate`). `diary` is a folder for
        what `grapevine collect` reads.
        """
        host, port = parse_endpoint(listen)
        endpoints = parse_endpoints(bootstrap)
        config = make(NodeConfig, settings, owner="a node")
        async with Home.open(data_dir, retention or Retention(), synced=config.durability == "power") as home:
            live = live_system(system, parameters or {}, home.identity.id)
            await asyncio.to_thread(live.warm_up)
            session = time.time_ns() // 1_000
            links = Links(
                home.identity,
                config,
                network=network,
                system=system,
                session=session,
                messages=messages_of(live),
                receive=lambda connection, message: node._receive(connection, message),
                unreachable=lambda address: node._lose(address),
            )
            node = cls(home, live, config, links, session)
            node._diary = Diary(Path(diary), node.id.address) if diary else None
            for topic, validator in (validators or {}).items():
                node.validate(topic, validator)
            try:
                await node._start(host, port, announce, endpoints, session)
                yield node
            finally:
                await node._close()

    async def _start(
        self, host: str, port: int, announce: str | None, bootstrap: list[tuple[str, int]], session: int
    ) -> None:
        self._reunion.endpoints = [endpoint for endpoint in bootstrap if endpoint != (host, port)]
        if self._diary:
            self._diary.session(self._system.name, self._system.config.as_dict())
        known = [contact.id.address for contact in self._home.contacts(self.links.contacts)]
        for name, since_ms in (await self._store.subscriptions()).items():
            await self._want(name, since_ms)
        self._for_good = set(self._names)  # whoever asked for them has not taken it back
        self.endpoint = await self.links.listen(host, port, announce, time.time_ns() // 1_000_000)
        if self._system.needs_contacts:
            await self._reunion.call_all()
        self._host = Host(self._system.peer(list(self._names), self.links.connected, session), self.links)
        self._started = True
        self._host.call(self._host.peer.start)
        await self._rejoin()
        for node in known:
            self._meet(node)
        self._tasks = [asyncio.create_task(run()) for run in (self._arrivals.keep, self._tick, self._reunion.run)]

    async def _close(self) -> None:
        if self._closing:
            return
        self._closing = True
        for inboxes in self._inboxes.values():
            for inbox in inboxes:
                inbox.close()
        for _, waiting in self._held:
            if not waiting.done():
                waiting.set_exception(NoPath("the node was closed before anybody took the event; it is kept"))
        if self._started:
            self._host.call(self._host.peer.leave)
            try:
                await asyncio.wait_for(self._host.finished.wait(), _LEAVE_S)
            except TimeoutError:
                _log.info("left without waiting for others any longer")
            self._host.stop()
        await self.links.close("this node stops")
        await self._recovery.close()
        while not self._arrivals.are_kept:
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._home.remember(self.links.contacts)
        if self._diary:
            self._write_diary(self._diary)
            self._diary.end()
            self._diary.close()

    # Publishing

    async def publish(self, topic: str, payload: bytes, *, timeout: float | None = None) -> Event:
        """Publish an event. It is on the disk, and handed on, when this returns; NoPath after the time-out.

        In a topic that nobody else is known to want it is kept: whoever comes within `membership_s` asks for it.
        """
        if self._closing:
            raise UsageError("the node is closed; open another")
        if not isinstance(payload, bytes) or len(payload) > self.config.payload_bytes:
            given = f"{len(payload):,} bytes" if isinstance(payload, bytes) else type(payload).__name__
            raise UsageError(f"a payload of {given}; give bytes, {self.config.payload_bytes:,} of them at most")
        number = self._system.topic(topic)
        if not self._system.may_publish(number, self.id):
            raise UsageError(f"{topic!r} is not published by this node; its own feeds begin with {self.id}/")
        await self._join(number)
        time_ms = time.time_ns() // 1_000_000
        content = stamped(time_ms, payload)
        event = await self._store.publish(
            self.id, number, time_ms, content, lambda sequence: self._home.identity.sign(number, sequence, content).seal
        )
        self.published += 1
        self._ledger.note(number, self.id.full, event.sequence, self._host.now)
        if self._diary:
            self._diary.published(number, self.id.address, event.sequence)
        self._deliver(event, self.id.address, pulled=False)
        await self._hand_on(event, self.config.publish_s if timeout is None else timeout)
        return opened(topic, event)

    async def _join(self, topic: int) -> None:
        """Who publishes in a topic is a member of it for a while: others ask members for what they missed."""
        new = topic not in self._members
        self._members[topic] = self._host.now + self.config.membership_s
        if topic not in self._ledger:  # also if somebody else is about to open it
            await self._open(topic)
        if new:
            self._host.call(lambda now: self._system.join(self._host.peer, now, topic))

    async def _rejoin(self) -> None:
        """Topics that it published in lately: events may have been on their way when the last session ended."""
        before_ms = time.time_ns() // 1_000_000 - int(1e3 * self.config.membership_s)
        for (publisher, topic), last in (await self._store.last_sequences()).items():
            if publisher == self.id and self._system.may_publish(topic, publisher):
                newest = await self._store.find(publisher, topic, [last])
                if newest and published_ms(newest[0]) > before_ms:
                    await self._join(topic)

    async def _hand_on(self, event: StoredEvent, timeout: float) -> None:
        if not self._reunion.endpoints and not self.links.open_connections:
            return  # a network of one
        if self._send(event):
            return
        waiting = asyncio.get_running_loop().create_future()
        self._held.append((event, waiting))
        try:
            await asyncio.wait_for(waiting, timeout)
        except TimeoutError:
            raise NoPath(
                f"nobody could take event {event.sequence} within {timeout:g} s; it is kept, and spreads"
                " when a neighbour is there: check that a bootstrap node is reachable"
            ) from None

    def _send(self, event: StoredEvent) -> bool:
        if not self._host.has_path(event.topic):
            return False
        envelope = envelope_of(event)
        return self._host.call(lambda now: self._host.peer.publish(now, event.topic, envelope, event.sequence))

    # Subscribing

    def subscribe(
        self, topic: str, *, size: int = 1_000, policy: Policy = "block", since: float | None = None
    ) -> Inbox:
        """The topic's events from now on, or from this time on (seconds since the epoch); use it with `async with`."""
        since_ms = None if since is None else int(since * 1e3)
        number = self._system.topic(topic)
        return Inbox(
            topic,
            number,
            self._store,
            size=size,
            policy=policy,
            since_ms=since_ms,
            enter=self._enter,
            leave=self._leave,
        )

    @property
    def subscriptions(self) -> list[str]:
        """Topics that the application wants."""
        return sorted(self._names.values())

    def validate(self, topic: str, validator: Validator) -> None:
        """Refuse events of a topic for which this is False: they are neither delivered, nor kept, nor passed on."""
        self._arrivals.validators.setdefault(self._system.topic(topic), []).append(validator)

    async def join(self, endpoint: str) -> None:
        """Begin with another node, as with one of `bootstrap`; PeerError if it cannot be reached."""
        ((host, port),) = parse_endpoints([endpoint])
        self._reunion.endpoints.append((host, port))
        await self._reunion.call(host, port)

    def partners_of(self, topic: str) -> int:
        """How many others exchange the topic's events with this node."""
        return len(self.partners(self._system.topic(topic)))

    async def ready(self, topic: str, *, peers: int = 1, timeout: float = 10.0) -> None:
        """Wait until so many others exchange the topic's events with this node; TimeoutError if they do not."""
        async with asyncio.timeout(timeout):
            while self.partners_of(topic) < peers:
                await asyncio.sleep(_TICK_S)

    async def drain(self, timeout: float = 10.0) -> None:
        """Wait until everything that was begun is on the disk, and on its way."""
        async with asyncio.timeout(timeout):
            while self._held or self._store.waiting or self.links.buffered() or not self._arrivals.are_kept:
                await asyncio.sleep(0.01)

    async def subscribe_for_good(self, topic: str) -> None:
        """Subscribe without reading: events are kept, and readers may come and go."""
        self._for_good.add(self._system.topic(topic))
        await self._want(topic, time.time_ns() // 1_000_000)

    async def unsubscribe(self, topic: str) -> None:
        """The topic is no longer wanted; open inboxes of it get nothing more."""
        number = self._system.topic(topic)
        if number not in self._names:
            return
        self._for_good.discard(number)
        if number not in self._members:
            self._host.call(lambda now: self._host.peer.unsubscribe(now, number))
        await self._store.unsubscribe(number)
        del self._names[number], self._since_ms[number]
        if number not in self._members:
            self._ledger.close(number)
        if self._diary:
            self._diary.unsubscribed(number, topic)

    async def _enter(self, inbox: Inbox) -> None:
        if self._closing:
            raise UsageError("the node is closed; open another")
        since_ms = inbox.since_ms
        await self._want(inbox.topic, time.time_ns() // 1_000_000 if since_ms is None else since_ms)
        self._inboxes.setdefault(inbox.number, []).append(inbox)
        await inbox.begin()

    async def _leave(self, inbox: Inbox) -> None:
        others = self._inboxes[inbox.number]
        others.remove(inbox)
        if not others:
            del self._inboxes[inbox.number]
            if not self._closing and inbox.number not in self._for_good:
                await self.unsubscribe(inbox.topic)

    async def _want(self, name: str, since_ms: int) -> None:
        number = self._system.topic(name)
        if number in self._names:
            self._since_ms[number] = min(since_ms, self._since_ms[number])
            return
        self._names[number], self._since_ms[number] = name, since_ms
        await self._store.subscribe(number, name, since_ms)
        await self._open(number)
        if self._diary:
            self._diary.subscribed(number, name)
        if self._started:
            self._host.call(lambda now: self._host.peer.subscribe(now, number))

    async def _open(self, topic: int) -> None:
        held = await self._store.held(topic, self.config.gap_limit)
        told = [(publisher.full, last, floor, missing) for publisher, last, floor, missing in held]
        self._ledger.open(topic, told, asyncio.get_running_loop().time())

    # What comes

    def _receive(self, connection: Connection, message: Message) -> None:
        if not self._started:
            return
        if message.carries_event:
            self._on_event(connection, message)
        elif isinstance(message, Digest):
            self._recovery.on_digest(connection, message)
        elif isinstance(message, Holdings):
            self._recovery.on_holdings(connection, message)
        elif isinstance(message, Want):
            self._recovery.on_want(connection, message)
        elif isinstance(message, Kept):
            self._recovery.on_kept(connection, message)
        else:
            self._host.on_message(connection.address, message)

    def _on_event(self, connection: Connection, message: Any) -> None:
        """An event that is pushed: kept if this node wants or carries its topic, and passed on by the peer."""
        event = self._arrivals.check(connection, message)
        if event is not None:
            again = event.publisher == self.id or self._ledger.has(event.topic, event.publisher.full, event.sequence)
            if self._diary:
                self._diary.received(
                    event.topic,
                    event.publisher.address,
                    event.sequence,
                    connection.address,
                    wanted=event.topic in self._names,
                    again=again,
                )
            self._host.on_message(connection.address, message)
            if not again:
                self._arrivals.accept(event, connection.address, pulled=False)

    def _deliver(self, event: StoredEvent, sender: Address, *, pulled: bool) -> None:
        if event.topic in self._names:
            self.delivered += 1
            if self._diary and event.publisher != self.id:
                self._diary.delivered(event.topic, event.publisher.address, event.sequence, sender, pulled=pulled)
        for inbox in self._inboxes.get(event.topic, ()):
            inbox.put(event)

    # What recovery asks

    def carried(self) -> Collection[int]:
        """Topics that this node wants or carries."""
        return self._host.carried()

    def partners(self, topic: int) -> Collection[Address]:
        """With whom it exchanges them."""
        return self._host.partners(topic)

    def since_ms(self, topic: int) -> int:
        """From when on it wants them."""
        return self._since_ms.get(topic, time.time_ns() // 1_000_000 - int(1e3 * self.config.recover_s))

    # What happens by itself

    async def _tick(self) -> None:
        compared = swept = trimmed = written = self._host.now
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._host.now
            try:
                self._send_held()
                if now - compared >= self.config.recover_every_s:
                    compared = now
                    self._follow_carried(now)
                    self._recovery.compare()
                if now - swept >= 1.0:
                    swept = now
                    self.links.sweep()
                    if self._diary:
                        self._write_diary(self._diary)
                if now - trimmed >= 60.0:
                    trimmed = now
                    await self._trim()
                if now - written >= 10.0:
                    written = now
                    self._home.remember(self.links.contacts)
            except Exception as error:  # a mistake of ours, or of a peer's class, must not end all of this
                self._host.failures[type(error).__name__] += 1
                _log.exception("a periodic task failed")

    def _send_held(self) -> None:
        still = []
        for event, waiting in self._held:
            if waiting.done():
                continue
            if self._send(event):
                waiting.set_result(None)
            else:
                still.append((event, waiting))
        self._held = still

    def _follow_carried(self, now: float) -> None:
        """Accounts are kept of topics that are carried; memberships of publishers end."""
        carried = set(self._host.carried())
        for topic in carried:
            if topic not in self._ledger:
                self._ledger.open(topic, (), now)
        for topic in [topic for topic, until in self._members.items() if until < now]:
            del self._members[topic]
            if topic not in self._names:
                self._host.call(lambda at, topic=topic: self._host.peer.unsubscribe(at, topic))  # type: ignore[misc]
        for topic in self._ledger.topics():
            if topic not in carried and topic not in self._names and topic not in self._members:
                self._ledger.close(topic)

    async def _trim(self) -> None:
        try:
            await self._store.trim(time.time_ns() // 1_000_000)
        except GrapevineError as error:
            _log.error("old events were not removed: %s", error)

    def _meet(self, node: Address) -> None:
        if self._started:
            self._host.call(lambda now: self._host.peer.meet(now, node))

    def _lose(self, node: Address) -> None:
        if self._started:
            self._host.on_unreachable(node)

    def _write_diary(self, diary: Diary) -> None:
        roles, before = self._host.peer.roles(), self._seen
        chosen = [(node, kind) for node, kinds in roles.items() for kind in kinds if kind not in FROM_BEHIND]
        diary.links(chosen, len(roles))
        self._seen = self.links.traffic()
        diary.traffic(**self._seen.since(before))
        try:
            diary.flush()
        except DiaryError as error:
            _log.error("the diary was not written: %s", error)

    # What it tells about itself

    def stats(self) -> dict[str, Any]:
        """Counts and sizes, for people and for monitoring."""
        links = self.links
        return {
            "peers": links.open_connections,
            "links": len(links.pinned),
            "subscriptions": len(self._names),
            "carried": len(self._host.carried()),
            "published": self.published,
            "delivered": self.delivered,
            "recovered": self._recovery.recovered,
            "given_up": self._ledger.given_up,
            "held": len(self._held),
            "rejected": dict(self._arrivals.rejected | links.conduct.counts),
            "counts": dict(links.counts),
            "failures": dict(self._host.failures),
            "sent": dict(links.sent),
            "received": dict(links.received),
            "bytes_in": links.bytes_in,
            "bytes_out": links.bytes_out,
            "dropped": sum(inbox.dropped for inboxes in self._inboxes.values() for inbox in inboxes),
        }

    def trouble(self) -> str | None:
        """What keeps this node from its work, in a sentence; None if nothing does."""
        if self._closing:
            return "the node is leaving"
        if self._reunion.endpoints and not self.links.open_connections:
            return "no peer is connected, although there are nodes to join"
        return None
