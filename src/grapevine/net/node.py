"""A live node: publish and subscribe without a broker.

    async with Node.open(listen="127.0.0.1:7001", bootstrap=["127.0.0.1:7000"]) as node:
        async with node.subscribe("weather/oslo") as events:
            await node.publish("weather/oslo", b"-3 C")
            async for event in events:
                print(event.topic, event.publisher, event.payload)

An event is acknowledged to its publisher when the disk has it. It is delivered to an application when the disk of the
application's node has it, once, and behind those that its publisher numbered before it. `publish` returns when the
overlay has taken the event; if there is no path, it waits for one, and after a time-out raises `NoPath`: the event is
kept, and spreads when there is.

`Node` is a thin front: `assembly` puts the parts together, and each part's module says what it does.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, overload

from grapevine.kernels.jit import compiling_told
from grapevine.model import arguments
from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net.assembly import Assembly
from grapevine.net.confirmations import MOST_ACKS, NotConfirmed
from grapevine.net.connections import Connections
from grapevine.net.contacts import parse_endpoint, parse_endpoints
from grapevine.net.data_folder import DataFolder
from grapevine.net.diary import Diary
from grapevine.net.envelope import Event
from grapevine.net.health import Condition
from grapevine.net.housekeeping import TICK_S
from grapevine.net.inbox import Inbox, Policy, policy_of
from grapevine.net.live_system import live_system
from grapevine.net.node_card import as_html, one_line
from grapevine.net.opening import check_opening, node_config
from grapevine.net.ordered_reader import OrderedReader
from grapevine.net.publishing import NoPath
from grapevine.net.reader import Acknowledging, Reader, acknowledging, reader_name
from grapevine.net.retention import Retention
from grapevine.net.surroundings import REAL_WORLD, Surroundings
from grapevine.net.tls_transport import TlsTransport
from grapevine.net.transport import MakeTransport
from grapevine.net.verdicts import Validator

__all__ = ["NoPath", "Node", "NotConfirmed"]

_REMEMBERED = 10_000  # names of topics that were published in


Since = float | Literal["beginning", "now"] | None


class Node:
    """One live node. Made by `Node.open`."""

    def __init__(self, parts: Assembly) -> None:
        self.parts, self.config, self.id = parts, parts.config, parts.folder.identity.id
        self._published: OrderedDict[str, None] = OrderedDict()  # names of topics, the last one published in last

    @property
    def endpoint(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        return self.parts.endpoint

    @property
    def connections(self) -> Connections:
        """Who is connected, and what travels there."""
        return self.parts.connections

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
        transport: MakeTransport | None = None,
        surroundings: Surroundings = REAL_WORLD,
        **settings: Any,
    ) -> AsyncIterator[Node]:
        """A running node, closed at the end of the block. UsageError, in one sentence, if it cannot be opened so.

        `listen` is where others reach it (port 0: any), `announce` the IP address that they are told if it is another;
        `bootstrap` are endpoints of nodes to begin with. `data_dir` keeps identity, subscriptions and events; without
        it they end with the node. `parameters` are those of the system (`grapevine systems vitis`), `settings`
        those of `NodeConfig`. `validators` are there before the first event comes (`validate`). `diary` is a folder for
        what `grapevine collect` reads. `transport` is TLS over TCP, or another (`grapevine.net.transport`);
        `surroundings` are the clock, the keys and the threads of this machine, or others, for tests.
        """
        at, endpoints = parse_endpoint(listen), parse_endpoints(bootstrap)
        check_opening(
            {"network": network, "announce": announce, "retention": retention, "parameters": parameters}
            | {"data_dir": data_dir, "diary": diary, "validators": validators, "transport": transport}
        )
        config = node_config(system, settings, inspect.signature(cls.open).parameters)
        kept, synced = retention or Retention(), config.durability == "power"
        async with DataFolder.open(data_dir, kept, synced=synced, surroundings=surroundings) as folder:
            live = live_system(system, parameters or {}, folder.identity.id)
            with compiling_told(system):
                await surroundings.aside(live.warm_up)
            me, clock_us = folder.identity.id.address, surroundings.clock_us
            parts = Assembly(
                folder,
                live,
                config,
                network=network,
                transport=transport or TlsTransport,
                diary=None if diary is None else Diary(Path(diary), me, clock_us=clock_us),
                surroundings=surroundings,
            )
            node = cls(parts)
            for topic, validator in (validators or {}).items():
                node.validate(topic, validator)
            try:
                await parts.start(at, announce, endpoints)
                yield node
            finally:
                await parts.close()

    # Publishing and subscribing

    async def publish(self, topic: str, payload: bytes, *, acks: int = 0, timeout: float | None = None) -> Event:
        """Publish an event. It is on this node's disk, and somebody was handed it, when this returns; whether others
        have it on theirs only `acks` says. NoPath if nobody took it before the time-out.

        With `acks`, so many other nodes of the topic have it on their disks, too; NotConfirmed after the time-out. An
        event that nobody took, or too few have confirmed, stays on offer until they have. In a topic that nobody else
        is known to want it is kept: whoever comes within `membership_s` of this node's last event there asks for it.
        """
        wanted = arguments.whole("acks", acks, high=MOST_ACKS)
        arguments.text("topic", topic)
        self._published[topic] = None
        self._published.move_to_end(topic)
        if len(self._published) > _REMEMBERED:
            self._published.popitem(last=False)
        patience = self.config.publish_s if timeout is None else arguments.amount("timeout", timeout, "seconds")
        return await self.parts.publishing.publish(topic, payload, patience, wanted)

    @overload
    def subscribe(
        self,
        topic: str,
        *,
        size: int = 1_000,
        policy: Policy = "block",
        since: Since = "now",
        ordered: Literal[True] = True,
    ) -> OrderedReader: ...

    @overload
    def subscribe(
        self,
        topic: str,
        *,
        size: int = 1_000,
        policy: Policy = "block",
        since: Since = "now",
        ordered: Literal[False],
    ) -> Inbox: ...

    @overload
    def subscribe(
        self,
        topic: str,
        *,
        name: str,
        ack: Acknowledging = "auto",
        size: int = 1_000,
        policy: Policy = "block",
        since: Since = "now",
    ) -> Reader: ...

    def subscribe(
        self,
        topic: str,
        *,
        name: str | None = None,
        ack: Acknowledging = "auto",
        size: int = 1_000,
        policy: Policy = "block",
        since: Since = "now",
        ordered: bool = True,
    ) -> Inbox | OrderedReader:
        """The topic's events from "now" on, or from a time (seconds since 1970) or the "beginning" on: what came then
        or later to this node, or to the neighbours that are asked, and is kept. Use it with `async with`.

        Of every publisher the events come in the order of its numbers; for one that is missing the reader waits
        `order_s` at most, and what cannot be had is said by a `Gap` in its place. With `ordered=False` events come as
        they arrive, and a `Gap` when something is given up. Who is too slow for a `policy` that drops is told by
        `Lagged`.

        Without a name the subscription ends with the block, and what comes afterwards is missed. With one it is
        durable (`reader`): the topic stays wanted, and the next who reads under this name, after whatever crash, goes
        on behind the last event that was acknowledged: by asking for the next one (`ack="auto"`), or by
        `await events.ack(event)` (`ack="explicit"`). `since` counts for the first time only.
        """
        parts, topic_id, size = self.parts, self._topic(topic), arguments.whole("size", size, low=1)
        since_ms = self._since_ms(since)
        if name is not None:
            return self._named(topic, name, ack, size, policy, since_ms, ordered)
        if ack != "auto":
            raise UsageError(f"ack={ack!r}: only a named reader acknowledges; give name=…, too")
        reading: dict[str, Any] = {"size": size, "policy": policy_of(policy), "since_ms": since_ms}
        reading |= {"enter": parts.topics.enter, "leave": parts.topics.leave}
        if ordered:
            return OrderedReader(topic, topic_id, parts.store, parts.ledger, order_s=self.config.order_s, **reading)
        return Inbox(topic, topic_id, parts.store, **reading)

    def _named(
        self, topic: str, name: str, ack: str, size: int, policy: str, since_ms: int | None, ordered: bool
    ) -> Reader:
        parts = self.parts
        if policy != "block":
            raise UsageError(f"policy={policy!r}: a named reader misses nothing by being slow; leave it out")
        if not ordered:
            raise UsageError("ordered=False: a named reader's place is a number; leave it out, or the name")
        return Reader(
            topic,
            self._topic(topic),
            reader_name(name),
            parts.store,
            parts.ledger,
            size=size,
            acknowledging=acknowledging(ack),
            since_ms=since_ms,
            order_s=self.config.order_s,
            enter=parts.topics.enter_named,
            leave=parts.topics.leave,
        )

    def _since_ms(self, since: object) -> int | None:
        """A time by the clock of arrivals; None: from now on."""
        if since in ("now", None):
            return None
        if since == "beginning":
            return 0
        if isinstance(since, str):
            raise UsageError(f"since={since!r}: give 'now', 'beginning', or seconds since 1970")
        at_ms = self.parts.clock.at_ms(int(arguments.amount("since", since, "seconds since 1970") * 1e3))
        return min(at_ms, self.parts.clock.now_ms())

    async def subscribe_for_good(self, topic: str) -> None:
        """Subscribe without reading: events are kept, and readers may come and go, until `unsubscribe`."""
        await self.parts.topics.want(self._topic(topic), topic, None)

    def declare_rate(self, topic: str, rate: float) -> None:
        """Say how often events are published in a topic that is subscribed to, or published in, for as long as the node
        is open; the unit is one that all nodes share, as events an hour. Vitis with `rates=declared` weighs it."""
        self.parts.host.declare_rate(self._topic(topic), arguments.amount("rate", rate))

    async def unsubscribe(self, topic: str, *, name: str | None = None, last: bool = False) -> None:
        """The topic is no longer wanted; open inboxes of it get nothing more, and named readers are forgotten.

        With a name only that reader is forgotten, and the topic stays wanted; UsageError if there is none. With `last`
        it is wanted no longer, either, when nobody else reads it, under a name or without.
        """
        topic_id = self._topic(topic)
        if name is None:
            await self.parts.topics.forget(topic_id)
        elif not await self.parts.topics.forget_reader(topic_id, reader_name(name), last=last):
            known = ", ".join(await self.parts.store.readers(topic_id)) or "no named reader"
            raise UsageError(f"{name!r} does not read {topic!r}; there is {known}")

    async def readers(self, topic: str) -> list[str]:
        """The names under which the topic is read, now or when somebody comes back."""
        return await self.parts.store.readers(self._topic(topic))

    @property
    def subscriptions(self) -> list[str]:
        """Names of the topics that the application wants."""
        return sorted(topic.name for topic in self.parts.topics.wanted())

    @property
    def topics(self) -> list[str]:
        """Names of the topics that applications of this node want, or published in since it was opened (the last
        10,000 of those)."""
        return sorted({*self._published, *(topic.name for topic in self.parts.topics.wanted())})

    def wants(self, topic: str) -> bool:
        """Whether an application of this node wants a topic."""
        return self.parts.topics.is_wanted(self._topic(topic))

    def validate(self, topic: str, validator: Validator) -> None:
        """Refuse events of a topic for which this is False: they are neither delivered, nor kept, nor passed on.

        A validator may also answer with a `Verdict`; that module says who is blamed for what.
        """
        checked = arguments.function("validator", validator, "an event")
        self.parts.arrivals.validators.setdefault(self._topic(topic), []).append(checked)

    def _topic(self, name: str) -> int:
        """The number of a topic; UsageError for what is no name of one."""
        return self.parts.system.topic(arguments.text("topic", name))

    # Others

    async def join(self, endpoint: str) -> None:
        """Begin with another node, as with one of `bootstrap`; PeerError if it cannot be reached."""
        ((host, port),) = parse_endpoints([endpoint])
        self.parts.reunion.endpoints.append((host, port))
        await self.parts.reunion.call(host, port)

    def partners_of(self, topic: str) -> int:
        """How many others exchange the topic's events with this node."""
        return len(self.parts.topics.partners(self._topic(topic)))

    def missing(self, topic: str) -> int:
        """How many of the topic's events this node knows of, has not got, and has not given up."""
        return self.parts.ledger.missing_in(self._topic(topic))

    def neighbours(self) -> list[tuple[PeerId, str]]:
        """Who is linked to this node in the overlay, and connected: its id, and the endpoint that it announces."""
        links = (self.connections.connection(address) for address in sorted(self.connections.pinned))
        contacts = [link.hello.contact for link in links if link is not None and link.hello is not None]
        return [(contact.id, f"{contact.host}:{contact.port}") for contact in contacts]

    def exchanges(self) -> dict[int, list[int]]:
        """For every topic that this node wants or carries, by id: addresses of those it exchanges events with."""
        return {topic_id: list(self.parts.topics.partners(topic_id)) for topic_id in self.parts.topics.carried()}

    async def ready(self, topic: str, *, peers: int = 1, timeout: float = 10.0) -> None:
        """Wait until so many others exchange the topic's events with this node; TimeoutError if they do not."""
        wanted = arguments.whole("peers", peers)
        async with asyncio.timeout(arguments.amount("timeout", timeout, "seconds")):
            while self.partners_of(topic) < wanted:
                await asyncio.sleep(TICK_S)

    async def drain(self, timeout: float = 10.0) -> None:
        """Wait until everything that was begun is on the disk, and on its way; TimeoutError if it takes longer."""
        parts = self.parts
        async with asyncio.timeout(arguments.amount("timeout", timeout, "seconds")):
            while parts.is_busy:
                await asyncio.sleep(0.01)

    # What it tells about itself

    @property
    def delivered(self) -> int:
        """Events that were given to applications since the node was opened, its own included."""
        return self.parts.chronicle.delivered

    def stats(self) -> dict[str, Any]:
        """Totals since the node was opened and present sizes, for people and for monitoring (`metrics`)."""
        connections, traffic = self.connections, self.connections.traffic
        return {
            "peers": connections.open_connections,
            "links": len(connections.pinned),
            "subscriptions": sum(1 for _ in self.parts.topics.wanted()),
            "carried": len(self.parts.host.carried()),
            "published": self.parts.chronicle.published,
            "delivered": self.delivered,
            "recovered": self.parts.recovery.recovered,
            "given_up": self.parts.ledger.given_up,
            "returned": self.parts.arrivals.returned,
            "forked": len(self.parts.witness.found),
            "unsent": self.parts.publishing.unsent,
            "unconfirmed": self.parts.confirmations.pending,
            "rejected": dict(self.parts.arrivals.rejected | connections.conduct.counts),
            "counts": dict(connections.counts),
            "failures": dict(self.parts.host.failures),
            "sent": dict(traffic.sent),
            "received": dict(traffic.received),
            "bytes_in": traffic.bytes_in,
            "bytes_out": traffic.bytes_out,
            "dropped": self.parts.topics.dropped,
        }

    def trouble(self) -> str | None:
        """What keeps this node from its work, in a sentence; None if nothing does."""
        return next((condition.sentence for condition in self.conditions() if condition.is_grave), None)

    def conditions(self) -> list[Condition]:
        """Everything that is wrong with this node, what is grave first (`health`); none: all is well."""
        return self.parts.health.conditions()

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)
