"""All connections of a node: one per peer, dialled when there is something to say, closed when nobody needs it.

Peers know each other by address. A *connection* is what bytes travel on; a *link* is what the overlay has chosen
(`systems/peer`). A connection to a link (`pinned`) stays; others are closed when idle. `slots` says who has a place
when there are many. When two dial each other at once, the connection of the one with the smaller id stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.conduct import Conduct
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection, State
from grapevine.net.contacts import Contact, Contacts, is_reachable
from grapevine.net.dialling import Dialling
from grapevine.net.identity import Identity
from grapevine.net.introductions import Introductions
from grapevine.net.messages import Hello, Introduce, Seek
from grapevine.net.slots import Slots
from grapevine.net.tls_transport import TlsTransport
from grapevine.net.traffic import Traffic
from grapevine.net.transport import Endpoint, Listener, MakeTransport
from grapevine.systems.contracts.peer import Address, Message

_log = logging.getLogger(__name__)
_FAREWELL_S = 1.0  # for others to read our farewell, when the node closes


class Connections:
    """Sends messages to addresses, and hands over what comes from them. It oversees every `Connection`.

    `receive` gets every message of an open connection that is not about contacts; `unreachable` is told of peers whose
    connection broke without a farewell, or to whom none could be made; `chosen` tells the links of its own choice.
    """

    def __init__(
        self,
        identity: Identity,
        config: NodeConfig,
        *,
        network: str,
        system: str,
        session: int,
        messages: Any,
        receive: Callable[[Connection, Message], None],
        unreachable: Callable[[Address], None],
        transport: MakeTransport = TlsTransport,
        chosen: Callable[[], Collection[Address]] = tuple,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.identity, self.config = identity, config
        self.contacts, self.conduct = Contacts(config.contacts), Conduct(config.ban_s)
        self.counts: Counter[str] = Counter()  # what befell connections, for operators
        self.traffic = Traffic()
        self.pinned: set[Address] = set()  # links of the overlay: connections to them are not idle
        self._slots = Slots(config, self.pinned, chosen)
        self._network, self._system, self._session, self._messages = network, system, session, messages
        self._receive, self._unreachable = receive, unreachable
        self._transport = transport(identity, config)
        self._introductions = Introductions(self.contacts, self.blame)
        self._dialling = Dialling(
            config.retry_s,
            self.counts,
            locate=lambda address: self._introductions.locate(address, list(self._open.values())),
            connect=lambda contact: self._connect((contact.host, contact.port), contact.id),
            unreachable=unreachable,
        )
        self._contact: Contact | None = None  # our own; known once we listen
        self._open: dict[Address, Connection] = {}
        self._all: dict[Connection, None] = {}  # in order; also those that have not said hello yet, or are closing
        self._all_gone = asyncio.Event()
        self._called: dict[Endpoint, PeerId] = {}  # who was found at endpoints that the host knows
        self._listener: Listener | None = None
        self._closed = False

    # What the host calls

    async def listen(self, host: str, port: int, announced: str | None, time_ms: int) -> Endpoint:
        """Take connections here; others are told the address `announced`, or this one.

        Returns where it listens. UsageError if that cannot be, or is no address that others can be told.
        """
        if announced is not None and not is_reachable(announced):
            raise UsageError(f"announce={announced!r}: give the IP address at which others reach this node")
        listener = await self._transport.listen(host, port, lambda: self._new(outgoing=False))
        found_host, found_port = listener.endpoint
        if announced is None and not is_reachable(found_host):
            listener.close()
            raise UsageError(f"{host}:{port}: others cannot be told this address; announce the one that they reach")
        self._listener = listener
        self._contact = self.identity.contact(announced or found_host, found_port, time_ms)
        return listener.endpoint

    async def close(self, reason: str) -> None:
        """Say farewell to everybody; who has not taken it after a second is cut off."""
        self._closed = True
        if self._listener is not None:
            self._listener.close()
        self._dialling.close()
        for connection in list(self._all):
            connection.close(reason)
        try:
            async with asyncio.timeout(_FAREWELL_S):
                while self._all:
                    self._all_gone.clear()
                    await self._all_gone.wait()
        except TimeoutError:
            for connection in list(self._all):
                connection.abort()

    async def call(self, host: str, port: int) -> PeerId:
        """Open a connection to whoever is at this endpoint; PeerError if nobody is, or nobody fitting."""
        peer = self._called[host, port] = await self._connect((host, port), None)
        return peer

    def send(self, to: Address, message: Message) -> None:
        """Send a message, over a connection that is there or that will be; it may be lost, and is then counted."""
        connection = self._open.get(to)
        if connection is not None and not connection.is_closing:
            self.answer(connection, message)
        else:
            self._dialling.send(to, message)

    def answer(self, connection: Connection, message: Message) -> None:
        """Send a message on this very connection, behind the contacts of those whom it names."""
        if self._contact is not None:
            self._introductions.send_before(connection, message.named())
        connection.used = self.loop.time()
        try:
            connection.send(message)
        except UsageError as error:  # a message of ours that no frame can hold: seen, not cut
            self.counts["oversized"] += 1
            _log.error("not sent to %s: %s", connection.id, error)

    def connection(self, address: Address) -> Connection | None:
        """The open connection to a peer; None if there is none."""
        return self._open.get(address)

    @property
    def open_connections(self) -> int:
        """How many peers are connected."""
        return len(self._open)

    @property
    def connected(self) -> list[Address]:
        """Addresses of the peers that are connected."""
        return list(self._open)

    def is_connected_to(self, host: str, port: int) -> bool:
        """Whether an open connection leads to this endpoint, by our name for it or by the other end's."""
        called = self._called.get((host, port))
        if called is not None and called.address in self._open:
            return True
        found = (connection.hello.contact for connection in self._open.values() if connection.hello is not None)
        return any((contact.host, contact.port) == (host, port) for contact in found)

    @property
    def unsent(self) -> int:
        """Bytes that others have not taken yet, and messages that wait for a connection, in one sum; 0 if all left."""
        return sum(connection.unsent for connection in self._all) + self._dialling.pending

    def sweep(self) -> None:
        """Close what nobody needs: connections that are no links and were not used for `idle_s`."""
        if self._listener is not None:
            self.counts["turned_away"] = self._listener.turned_away
        before = self.loop.time() - self.config.idle_s
        for address, connection in list(self._open.items()):
            if address not in self.pinned and connection.used < before:
                connection.close("idle")

    def _new(self, *, outgoing: bool) -> Connection:
        return Connection(self, self.config, self._messages, self.traffic, outgoing=outgoing)

    async def _connect(self, endpoint: Endpoint, expected: PeerId | None) -> PeerId:
        connection = self._new(outgoing=True)
        host, port = endpoint
        try:
            async with asyncio.timeout(self.config.dial_s):
                await self._transport.dial(host, port, connection, expected)
                return await asyncio.shield(connection.opened)
        except TimeoutError:
            connection.abort()
            raise PeerError(f"{host}:{port} did not answer within {self.config.dial_s:g} s") from None

    # What connections call (`Overseer`)

    def hello(self) -> Hello:
        """Network, system and session of this node, and where it is found."""
        assert self._contact is not None
        return Hello(self._network, self._system, self._session, self._contact)

    def admit(self, connection: Connection, peer: PeerId) -> None:
        """PeerError if the node is closing or full, or the peer is banned, or this very node."""
        self._all[connection] = None
        if self._closed:
            raise PeerError("this node is closing")
        if not connection.outgoing:
            self._slots.check_greeting(connection.came_from, (other for other in self._all if other is not connection))
        if len(self._all) > 2 * self.config.most_connections:
            self._cut_off_a_greeting()
        if peer == self.identity.id:
            raise PeerError("a node has no connection to itself")
        if self.conduct.is_banned(peer, self.loop.time()):
            raise PeerError(f"peer {peer} is shut out")

    def _cut_off_a_greeting(self) -> None:
        """Too many have not said hello yet: the first to come makes room if it had time to, or else the last."""
        slow_since = self.loop.time() - self.config.handshake_grace_s
        for other in self._all:
            if other.state is State.GREETING and not other.outgoing and not other.is_closing:
                if other.used > slow_since:
                    break
                other.fail(PeerError("it did not say hello while others waited"))
                return
        raise PeerError(f"there are {len(self._all)} connections already")

    def check_hello(self, connection: Connection, hello: Hello) -> None:
        """PeerError if it is of another network or system, or has the contact of somebody else."""
        if (hello.network, hello.system) != (self._network, self._system):
            raise PeerError(
                f"it is of network {hello.network[:50]!r} with {hello.system[:50]!r};"
                f" this node is of {self._network!r} with {self._system!r}"
            )
        if self.contacts.learn(hello.contact) != connection.id:
            raise PeerError("it said hello with the contact of another")

    def on_open(self, connection: Connection) -> None:
        """Keep it, unless there is a better one to the same peer already, or no room."""
        address = connection.address
        before = self._open.get(address)
        if before is not None and not before.is_closing:
            if self._is_surplus(connection, before):
                connection.close("one connection is enough")
                return
            before.close("one connection is enough")
        else:
            try:
                victim = self._slots.who_makes_room(connection, self._open)
            except PeerError as error:
                connection.fail(error)
                return
            if victim is not None:
                self._evict(victim)
        self._open[address] = connection
        for message in self._dialling.on_open(address):
            self.answer(connection, message)

    def _evict(self, victim: Connection) -> None:
        """Close a connection that makes room; its place is free at once, and a link that it was is none any more."""
        del self._open[victim.address]
        victim.close("others need the place")
        if victim.address in self.pinned:
            self._unreachable(victim.address)

    def on_message(self, connection: Connection, message: Message) -> None:
        """What is about contacts is dealt with here; everything else is for the host."""
        if isinstance(message, Introduce):
            self._introductions.on_introduce(connection, message)
        elif isinstance(message, Seek):
            self._introductions.on_seek(connection, message)
        else:
            self._receive(connection, message)

    def on_refused(self, connection: Connection, error: PeerError) -> None:
        """Who wanted to connect, or was dialled, was not fit for it."""
        self.counts["refused"] += 1
        _log.info("connection refused: %s", error)

    def blame(self, connection: Connection, misconduct: str, points: int, error: PeerError) -> None:
        """A peer broke a rule; at some point that ends the connection, and bars it from the next."""
        self.counts["rejected"] += 1
        assert connection.id is not None
        _log.warning("peer %s: %s (%s)", connection.id, misconduct, error)
        if self.conduct.blame(connection.id, misconduct, points, self.loop.time()):
            self.counts["banned"] += 1
            connection.abort()

    def on_closed(self, connection: Connection) -> None:
        """Without a farewell, whoever was there has crashed, or the network has: the host is told."""
        self._all.pop(connection, None)
        self._all_gone.set()
        if connection.id is None or self._open.get(connection.address) is not connection:
            return
        del self._open[connection.address]
        if not connection.has_farewell and not self._closed:
            self._unreachable(connection.address)

    def count(self, what: str) -> None:
        """Count something that befell a connection."""
        self.counts[what] += 1

    def _is_surplus(self, new: Connection, before: Connection) -> bool:
        """Whether both ends dialled at once, and `new` is the one that both give up."""
        assert before.hello is not None and new.hello is not None and new.id is not None
        both_dialled = before.hello.session == new.hello.session and before.outgoing != new.outgoing
        ours_stays = self.identity.id < new.id
        return both_dialled and new.outgoing != ours_stays

    @property
    def is_full(self) -> bool:
        """Whether all places for connections that others open are taken, and by links alone (`slots`)."""
        return self._slots.is_full(self._open)
