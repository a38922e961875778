"""All connections of a node: one per peer, dialled when there is something to say, closed when nobody needs it.

Peers know each other by address. Where an address is to be found travels beside the messages that name it, as a record
that its owner signed (`contacts`). A connection that is a link of the overlay stays; others are closed when idle. When
two dial each other at once, the connection of the one with the smaller id stays.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.conduct import FORGED, Conduct
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.contacts import Contact, Contacts, is_reachable
from grapevine.net.identity import Identity
from grapevine.net.messages import Hello, Introduce, Seek
from grapevine.systems.contracts.peer import Address, Message

_log = logging.getLogger(__name__)
_PENDING = 64  # messages that wait for a connection
_DIALS = 16  # at a time
_MOST_DIALS = 1_000  # begun, or waiting for their turn
_ASKED = 3  # peers that are asked where another is
_INTRODUCED = 64  # contacts in one message
_UNREACHABLE = 10_000  # remembered


@dataclass(frozen=True, slots=True)
class Traffic:
    """What came and went."""

    sent: Counter[str] = field(default_factory=Counter)  # messages, by kind
    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def since(self, before: Traffic) -> dict[str, Any]:
        """What did since then, as a diary takes it."""
        sent = self.sent - before.sent
        return {
            "sent": sent,
            "messages_out": sent.total(),
            "messages_in": self.messages_in - before.messages_in,
            "bytes_in": self.bytes_in - before.bytes_in,
            "bytes_out": self.bytes_out - before.bytes_out,
        }


class Links:
    """Sends messages to addresses, and hands over what comes from them."""

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
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.identity, self.config, self.messages = identity, config, messages
        self.contacts, self.conduct = Contacts(config.contacts), Conduct(config.ban_s)
        self.counts: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()  # by kind of message
        self.received: Counter[str] = Counter()
        self.bytes_in = self.bytes_out = 0
        self.pinned: set[Address] = set()  # links of the overlay
        self._network, self._system, self._session = network, system, session
        self._receive, self._unreachable = receive, unreachable
        self._contact: Contact | None = None
        self._open: dict[Address, Connection] = {}
        self._all: set[Connection] = set()
        self._pending: dict[Address, list[Message]] = {}
        self._dialling: dict[Address, asyncio.Task[None]] = {}
        self._again: dict[Address, float] = {}  # unreachable peers, and when they may be tried again
        self._called: dict[tuple[str, int], PeerId] = {}  # who was found at endpoints that the host knows
        self._sought: dict[Address, asyncio.Future[None]] = {}
        self._places = asyncio.Semaphore(_DIALS)
        self._server: asyncio.Server | None = None
        self._client_context = identity.client_context()
        self._closed = False

    # The host's side

    async def listen(self, host: str, port: int, announced: str | None, time_ms: int) -> tuple[str, int]:
        """Take connections here; the address that others are told is `announced`, or the same."""
        context = self.identity.server_context()
        if announced is not None and not is_reachable(announced):
            raise UsageError(f"announce={announced!r}: give the IP address at which others reach this node")
        try:
            self._server = await self.loop.create_server(
                lambda: Connection(self, outgoing=False),
                host,
                port,
                ssl=context,
                ssl_handshake_timeout=self.config.dial_s,
                backlog=256,
            )
        except OSError as error:
            raise UsageError(f"{host}:{port}: cannot be listened on ({error.strerror}); choose another port") from None
        found_host, found_port = self._server.sockets[0].getsockname()[:2]
        if announced is None and not is_reachable(found_host):
            self._server.close()
            raise UsageError(f"{host}:{port}: others cannot be told this address; announce the one that they reach")
        self._contact = self.identity.contact(announced or found_host, found_port, time_ms)
        return found_host, found_port

    async def close(self, reason: str) -> None:
        """Say goodbye to everybody."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._dialling.values():
            task.cancel()
        for connection in list(self._all):
            connection.close(reason)
        for _ in range(20):
            if not self._all:
                break
            await asyncio.sleep(0.05)
        for connection in list(self._all):
            connection.abort()

    async def call(self, host: str, port: int) -> PeerId:
        """Open a connection to whoever is at this endpoint; PeerError if nobody is, or nobody fitting."""
        peer = self._called[host, port] = await self._connect(host, port, None)
        return peer

    def send(self, to: Address, message: Message) -> None:
        """Send a message, over a connection that is there or that will be."""
        connection = self._open.get(to)
        if connection is not None and not connection.is_closing:
            self._write(connection, message)
            return
        waiting = self._pending.setdefault(to, [])
        if len(waiting) >= _PENDING:
            self.counts["dropped_pending"] += 1
            return
        waiting.append(message)
        if len(self._dialling) >= _MOST_DIALS:
            del self._pending[to]
            self.counts["dropped_pending"] += 1
        elif to not in self._dialling and not self._closed:
            self._dialling[to] = self.loop.create_task(self._dial(to))

    def answer(self, connection: Connection, message: Message) -> None:
        """Send a message on this very connection."""
        self._write(connection, message)

    def connection(self, address: Address) -> Connection | None:
        """The open connection to a peer."""
        return self._open.get(address)

    @property
    def open_connections(self) -> int:
        """How many there are."""
        return len(self._open)

    @property
    def connected(self) -> list[Address]:
        """Who is at their other ends."""
        return list(self._open)

    def is_connected_to(self, host: str, port: int) -> bool:
        """Whether one of them leads to this endpoint."""
        called = self._called.get((host, port))  # it may know itself by another name than we do
        if called is not None and called.address in self._open:
            return True
        found = (connection.hello.contact for connection in self._open.values() if connection.hello is not None)
        return any((contact.host, contact.port) == (host, port) for contact in found)

    def traffic(self) -> Traffic:
        """Until now."""
        return Traffic(self.sent.copy(), self.received.total(), self.bytes_in, self.bytes_out)

    def buffered(self) -> int:
        """Bytes, and messages, that have not left yet."""
        return sum(c.buffered() for c in self._all) + sum(map(len, self._pending.values()))

    def sweep(self) -> None:
        """Close what nobody needs: connections that are no links and were not used lately."""
        before = self.loop.time() - self.config.idle_s
        for address, connection in list(self._open.items()):
            if address not in self.pinned and connection.used < before:
                connection.close("idle")

    def _write(self, connection: Connection, message: Message) -> None:
        if self._contact is not None:
            self._introduce(connection, message.named())
        connection.used = self.loop.time()
        try:
            connection.send(message)
        except UsageError as error:  # a message of ours that no frame can hold: seen, not cut
            self.counts["oversized"] += 1
            _log.error("not sent to %s: %s", connection.id, error)

    def _introduce(self, connection: Connection, named: Iterable[Address]) -> None:
        known = [self.contacts.find(node) for node in dict.fromkeys(named)]
        news = [
            contact
            for contact in known
            if contact is not None and not connection.has_told(contact.id.address, contact.time_ms)
        ]
        for at in range(0, len(news), _INTRODUCED):
            connection.send(Introduce(tuple(news[at : at + _INTRODUCED])))

    # Dialling

    async def _dial(self, to: Address) -> None:
        try:
            contact = await self._locate(to)
            if contact is None or self._again.get(to, 0.0) > self.loop.time():
                raise PeerError("nobody knows where it is, or it could not be reached a moment ago")
            async with self._places:
                await self._connect(contact.host, contact.port, contact.id)
        except PeerError:
            self.counts["unreachable"] += 1
            self._dialling.pop(to, None)
            lost = self._pending.pop(to, [])
            self.counts["dropped_unreachable"] += len(lost)
            if self._again.get(to, 0.0) <= self.loop.time():  # not tried: that must not put it off again
                self._again[to] = self.loop.time() + self.config.retry_s
            while len(self._again) > _UNREACHABLE:
                del self._again[next(iter(self._again))]
            if not self._closed:
                self._unreachable(to)
        finally:
            self._dialling.pop(to, None)

    async def _connect(self, host: str, port: int, expected: PeerId | None) -> PeerId:
        connection = Connection(self, outgoing=True, expected=expected)
        try:
            async with asyncio.timeout(self.config.dial_s):
                await self.loop.create_connection(
                    lambda: connection, host, port, ssl=self._client_context, server_hostname=""
                )
                return await asyncio.shield(connection.opened)
        except TimeoutError:
            connection.abort()
            raise PeerError(f"{host}:{port} did not answer within {self.config.dial_s:g} s") from None
        except (OSError, UnicodeError, ssl.SSLError) as error:
            raise PeerError(f"{host}:{port} cannot be reached ({error})") from None

    async def _locate(self, address: Address) -> Contact | None:
        """Where the peer is; a few others are asked if need be."""
        if self.contacts.find(address) is None and self._open:
            found = self._sought.setdefault(address, self.loop.create_future())
            for connection in list(self._open.values())[:_ASKED]:
                connection.send(Seek(address))
            try:
                await asyncio.wait_for(asyncio.shield(found), 1.0)
            except TimeoutError:
                self._sought.pop(address, None)
        return self.contacts.find(address)

    # What connections call

    def hello(self) -> Hello:
        """Who we are."""
        assert self._contact is not None
        return Hello(self._network, self._system, self._session, self._contact)

    def admit(self, connection: Connection, peer: PeerId) -> None:
        """Whether it may connect at all; PeerError if not."""
        self._all.add(connection)
        if self._closed:
            raise PeerError("this node is closing")
        if len(self._all) > 2 * self.config.peers:
            raise PeerError(f"there are {len(self._all)} connections already")
        if peer == self.identity.id:
            raise PeerError("a node has no connection to itself")
        if self.conduct.is_banned(peer, self.loop.time()):
            raise PeerError(f"peer {peer} is shut out")

    def check_hello(self, connection: Connection, hello: Hello) -> None:
        """Whether we are of one network; PeerError if not."""
        if (hello.network, hello.system) != (self._network, self._system):
            raise PeerError(
                f"it is of network {hello.network[:50]!r} with {hello.system[:50]!r};"
                f" this node is of {self._network!r} with {self._system!r}"
            )
        if self.contacts.learn(hello.contact) != connection.id:
            raise PeerError("it said hello with the contact of another")

    def open(self, connection: Connection) -> None:
        """Both have said hello: from now on it carries messages."""
        address = connection.address
        before = self._open.get(address)
        if before is not None and not before.is_closing:
            assert before.hello is not None and connection.hello is not None and connection.id is not None
            both_dialled = before.hello.session == connection.hello.session and before.outgoing != connection.outgoing
            ours_stays = self.identity.id < connection.id
            if both_dialled and connection.outgoing != ours_stays:
                connection.opened.set_result(connection.id)
                connection.close("one connection is enough")
                return
            before.close("one connection is enough")
        elif len(self._open) >= self.config.peers and not self._make_room():
            connection.fail(PeerError(f"there are {len(self._open)} connections already"))
            return
        self._open[address] = connection
        self._again.pop(address, None)
        assert connection.id is not None
        connection.opened.set_result(connection.id)
        for message in self._pending.pop(address, []):
            self._write(connection, message)

    def _make_room(self) -> bool:
        """Close the connection that was idle for longest, unless all are links."""
        idle = [connection for address, connection in self._open.items() if address not in self.pinned]
        if not idle:
            return False
        min(idle, key=lambda connection: connection.used).close("others need the place")
        return True

    def lost(self, connection: Connection) -> None:
        """It is over. Without a farewell, whoever was there has crashed, or the network has."""
        self._all.discard(connection)
        if connection.id is None or self._open.get(connection.address) is not connection:
            return
        del self._open[connection.address]
        if not connection.farewell and not self._closed:
            self._unreachable(connection.address)

    def refused(self, connection: Connection, error: PeerError) -> None:
        """Who wanted to connect could not."""
        self.counts["refused"] += 1
        _log.info("connection refused: %s", error)

    def blame(self, connection: Connection, what: str, points: int, error: PeerError) -> None:
        """A peer broke the rules; at some point that ends the connection, and bars it from the next."""
        self.counts["rejected"] += 1
        assert connection.id is not None
        _log.warning("peer %s: %s (%s)", connection.id, what, error)
        if self.conduct.blame(connection.id, what, points, self.loop.time()):
            self.counts["banned"] += 1
            connection.abort()

    def take(self, connection: Connection, message: Message) -> None:
        """A message of an open connection: ours, or for the host."""
        if isinstance(message, Introduce):
            self._on_introduce(connection, message)
        elif isinstance(message, Seek):
            found = self.contacts.find(message.node)
            if found is not None:
                connection.send(Introduce((found,)))
        else:
            self._receive(connection, message)

    def _on_introduce(self, connection: Connection, message: Introduce) -> None:
        for contact in message.contacts[:_INTRODUCED]:
            try:
                owner = self.contacts.learn(contact)
            except PeerError as error:
                self.blame(connection, "forged", FORGED, error)
                return
            waiting = self._sought.pop(owner.address, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
