"""One connection: frames in and out over TLS, with all the bounds that a stranger meets."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net import wire
from grapevine.net.conduct import GARBAGE, SLOW, TokenBucket
from grapevine.net.identity import id_of
from grapevine.net.messages import Farewell, Hello, Introduce
from grapevine.systems.contracts.peer import Address, Message

if TYPE_CHECKING:
    from grapevine.net.links import Links

_TOLD = 4_096  # contacts that a connection remembers having told


class Connection(asyncio.Protocol):
    """From the end of the TLS handshake to the end of the connection. `Links` has all of them."""

    def __init__(self, links: Links, *, outgoing: bool, expected: PeerId | None = None) -> None:
        self.links, self.outgoing, self._expected = links, outgoing, expected
        self.id: PeerId | None = None  # known from the handshake on
        self.hello: Hello | None = None  # theirs: from then on the connection is open
        self.opened: asyncio.Future[PeerId] = links.loop.create_future()
        self.opened.add_done_callback(_retrieve)
        self.used = links.loop.time()
        self.told: dict[Address, int] = {}  # contacts that the other end was told, by the time of the record
        self.farewell = False  # one of the two has said that it closes
        self._transport: asyncio.Transport | None = None
        self._decoder = wire.Decoder(links.messages, links.config.frame_bytes)
        self._bytes = TokenBucket(links.config.rate_bytes, self.used)
        self._frames = TokenBucket(links.config.rate_messages, self.used)
        self._slow_since: float | None = None
        self._waiting: asyncio.TimerHandle | None = None

    @property
    def address(self) -> Address:
        """Of the other end."""
        assert self.id is not None
        return self.id.address

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = transport.get_extra_info("ssl_object")
        try:
            assert isinstance(connection, ssl.SSLObject)
            self.id = id_of(connection, self._expected)
            self.links.admit(self, self.id)
        except PeerError as error:
            self.fail(error)
            return
        self._waiting = self.links.loop.call_later(self.links.config.dial_s, self._no_hello)
        self.send(self.links.hello())

    def data_received(self, data: bytes) -> None:
        links, now = self.links, self.links.loop.time()
        links.bytes_in += len(data)
        try:
            messages = self._decoder.feed(data)
        except PeerError as error:
            links.blame(self, "garbage", GARBAGE, error)
            return
        wait = max(self._bytes.take(len(data), now), self._frames.take(sum(map(_cost, messages)), now))
        if wait > 0 and self._transport is not None and not self._transport.is_closing():
            links.counts["throttled"] += 1
            self._transport.pause_reading()
            links.loop.call_later(wait, self._resume)
        for message in messages:
            if self.is_closing:  # it was dropped for what came before
                return
            self._receive(now, message)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._waiting is not None:
            self._waiting.cancel()
        if not self.opened.done():
            self.opened.set_exception(PeerError("the connection closed before it opened"))
        self.links.lost(self)

    # What hosts call

    @property
    def is_closing(self) -> bool:
        """Whether it is over, or about to be."""
        return self._transport is None or self._transport.is_closing()

    def send(self, message: Message) -> bool:
        """Write a message, unless too much waits already; who does not read for long is dropped."""
        transport, links = self._transport, self.links
        if transport is None or transport.is_closing():
            return False
        if transport.get_write_buffer_size() > links.config.queue_bytes:
            now = links.loop.time()
            links.counts["dropped_slow"] += 1
            if self._slow_since is None:
                self._slow_since = now
            elif now - self._slow_since > links.config.slow_s:
                links.blame(self, "slow", SLOW, PeerError("it does not read what is sent to it"))
                self.abort()
            return False
        self._slow_since = None
        frame = wire.encode(message, links.config.frame_bytes)
        links.bytes_out += len(frame)
        links.sent[type(message).__name__] += 1
        transport.write(frame)
        return True

    def close(self, reason: str) -> None:
        """Say goodbye, and close when everything is written."""
        if not self.farewell and not self.is_closing:
            self.farewell = True
            self.send(Farewell(reason))
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: PeerError) -> None:
        """It cannot become a connection."""
        if not self.opened.done():
            self.opened.set_exception(error)
        self.links.refused(self, error)
        self.abort()

    def buffered(self) -> int:
        """Bytes that were not taken by the network yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def has_told(self, address: Address, time_ms: int) -> bool:
        """Whether the other end knows this record from us; it does from now on."""
        if self.told.get(address, -1) >= time_ms:
            return True
        self.told[address] = time_ms
        if len(self.told) > _TOLD:
            del self.told[next(iter(self.told))]
        return False

    def _receive(self, now: float, message: Any) -> None:
        self.links.received[type(message).__name__] += 1
        if isinstance(message, Farewell):
            self.farewell = True
        elif isinstance(message, Hello):
            self._on_hello(message)
        elif self.hello is None:
            self.links.blame(self, "garbage", GARBAGE, PeerError("it spoke before it said hello"))
        else:
            self.used = now
            self.links.take(self, message)

    def _on_hello(self, hello: Hello) -> None:
        if self.hello is not None:
            self.links.blame(self, "garbage", GARBAGE, PeerError("it said hello twice"))
            return
        try:
            self.links.check_hello(self, hello)
        except PeerError as error:
            self.fail(error)
            return
        self.hello = hello
        if self._waiting is not None:
            self._waiting.cancel()
        self.links.open(self)

    def _no_hello(self) -> None:
        self.fail(PeerError("it did not say hello in time"))

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


def _cost(message: Any) -> int:
    """What a message counts: contacts have to be checked, which takes as long as some twenty messages."""
    return 1 + 20 * len(message.contacts) if isinstance(message, Introduce) else 1


def _retrieve(future: asyncio.Future[PeerId]) -> None:
    """An error that nobody waits for has been counted already."""
    if not future.cancelled():
        future.exception()
