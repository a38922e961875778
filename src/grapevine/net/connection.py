"""One connection: messages both ways over a channel, with all the bounds that a stranger meets.

A connection is what a channel (`transport`) becomes when two nodes talk over it. Its life:

    CONNECTING ──channel open──▶ GREETING ──hello accepted──▶ OPEN ──▶ CLOSED
         └──────refused, or nobody there──────┴──refused, or late──────────▲

- CONNECTING: there is no channel yet. Nothing can be sent.
- GREETING: the other end has proven its id and was admitted; our hello is on its way and theirs is awaited, for
  `dial_s` seconds.
- OPEN: both hellos were heard. Messages go up to the overseer, in the order in which they came.
- CLOSED: the channel has ended, for whatever reason. A connection is never opened twice.

Three rules hold at every moment:

1. *Nobody is heard before its hello.* In GREETING only Hello and Farewell are taken; anything else, and a second Hello,
   is garbage, and costs a ban. So everything above sees only peers of this network, with a proven id.
2. *Nobody makes this node hold much.* A frame is bounded by the decoder, bytes and messages per second by token buckets
   (who sends more is read more slowly, never dropped), what waits to be read by the other end by `queue_bytes`: beyond
   that messages are dropped, and after `slow_s` the peer is.
3. *Once there was a channel, `opened` is settled once and `on_closed` is called once,* whatever happens, so that nobody
   who dials waits for ever, and no connection that is over counts against `most_connections`.

A connection decides nothing about others: it asks and tells its `Overseer`, which has all of them.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any, Protocol

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net import wire
from grapevine.net.conduct import GARBAGE, SLOW, TokenBucket
from grapevine.net.config import NodeConfig
from grapevine.net.messages import Farewell, Hello, Introduce
from grapevine.net.traffic import Traffic
from grapevine.net.transport import Channel, ChannelUser
from grapevine.systems.contracts.peer import Address, Message

_MOST_INTRODUCED = 4_096  # contacts that a connection remembers having sent


class State(Enum):
    """Where a connection is in its life; the module says what each means."""

    CONNECTING = "connecting"
    GREETING = "greeting"
    OPEN = "open"
    CLOSED = "closed"


class Overseer(Protocol):
    """What a connection asks and tells whoever has all connections of a node (`Connections`)."""

    def hello(self) -> Hello:
        """What this node says first on every connection."""

    def admit(self, connection: Connection, peer: PeerId) -> None:
        """Called when a channel is open, before anything is said: PeerError if this peer may not connect now."""

    def check_hello(self, connection: Connection, hello: Hello) -> None:
        """Called with the other end's hello: PeerError if it is of another network, or not by the proven peer."""

    def on_open(self, connection: Connection) -> None:
        """Both hellos were heard. The overseer may close or fail the connection at once, if it is one too many."""

    def on_message(self, connection: Connection, message: Message) -> None:
        """A message of an open connection. Everything but Hello and Farewell comes here."""

    def on_refused(self, connection: Connection, error: PeerError) -> None:
        """It could not become a connection; `error` says why. It closes by itself."""

    def blame(self, connection: Connection, misconduct: str, points: int, error: PeerError) -> None:
        """The other end broke a rule (`conduct` has the points); the overseer aborts the connection if it bans it."""

    def on_closed(self, connection: Connection) -> None:
        """It is over. Also called for those that were never open."""

    def count(self, what: str) -> None:
        """Something that operators want to know of happened: `throttled`, `dropped_slow`."""


class Connection(ChannelUser):
    """One connection to one peer. Made by `Connections`, for a channel that it dials or accepts."""

    def __init__(
        self, overseer: Overseer, config: NodeConfig, messages: Any, traffic: Traffic, *, outgoing: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._overseer, self._config, self._traffic = overseer, config, traffic
        self.outgoing = outgoing  # this node dialled
        self.state = State.CONNECTING
        self.id: PeerId | None = None  # of the other end; known from GREETING on
        self.hello: Hello | None = None  # the other end's; known from OPEN on
        self.opened: asyncio.Future[PeerId] = self._loop.create_future()  # PeerError if it never opens
        self.opened.add_done_callback(_retrieve)
        self.used = self._loop.time()  # when a message last came or went
        self.has_farewell = False  # one of the two has said that it closes: the end will be no crash
        self._introduced: dict[Address, int] = {}  # contacts that the other end was sent, by the time of the record
        self._channel: Channel | None = None
        self._decoder = wire.Decoder(messages, config.frame_bytes)
        self._bytes = TokenBucket(config.rate_bytes, self.used)
        self._frames = TokenBucket(config.rate_messages, self.used)
        self._slow_since: float | None = None
        self._hello_timer: asyncio.TimerHandle | None = None

    @property
    def came_from(self) -> str:
        """The IP address of the other end; "" if that is not known."""
        return self._channel.came_from if self._channel is not None else ""

    @property
    def address(self) -> Address:
        """The other end's address, by which protocols know it. Only from GREETING on."""
        assert self.id is not None
        return self.id.address

    # What the transport calls

    def on_channel_open(self, channel: Channel) -> None:
        self._channel, self.id, self.state = channel, channel.peer, State.GREETING
        try:
            self._overseer.admit(self, self.id)
        except PeerError as error:
            self.fail(error)
            return
        self._hello_timer = self._loop.call_later(self._config.dial_s, self._no_hello)
        self.send(self._overseer.hello())

    def on_channel_refused(self, error: PeerError) -> None:
        self.fail(error)

    def on_data(self, data: bytes) -> None:
        now = self._loop.time()
        self._traffic.bytes_in += len(data)
        try:
            messages = self._decoder.feed(data)
        except PeerError as error:
            self._overseer.blame(self, "garbage", GARBAGE, error)
            return
        wait_s = max(self._bytes.take(len(data), now), self._frames.take(sum(map(_cost, messages)), now))
        if wait_s > 0 and self._channel is not None and not self.is_closing:
            self._overseer.count("throttled")
            self._channel.pause_reading()
            self._loop.call_later(wait_s, self._resume_reading)
        for message in messages:
            if self.is_closing:  # it was dropped for what came before
                return
            self._on_message(now, message)

    def on_channel_closed(self) -> None:
        self.state, self._channel = State.CLOSED, None
        if self._hello_timer is not None:
            self._hello_timer.cancel()
        if not self.opened.done():
            self.opened.set_exception(PeerError("the connection closed before it opened"))
        self._overseer.on_closed(self)

    # What the overseer calls

    @property
    def is_closing(self) -> bool:
        """Whether it is over, or about to be, or has not begun: nothing can be sent."""
        return self._channel is None or self._channel.is_closing

    def send(self, message: Message) -> bool:
        """Write a message; False if it was dropped, because the connection is closing or too much is unread.

        Who has not read for `slow_s` is blamed and cut off. UsageError if no frame can hold the message.
        """
        channel = self._channel
        if channel is None or channel.is_closing:
            return False
        if channel.unsent > self._config.queue_bytes:
            self._on_slow()
            return False
        self._slow_since = None
        frame = wire.encode(message, self._config.frame_bytes)
        self._traffic.bytes_out += len(frame)
        self._traffic.sent[type(message).__name__] += 1
        channel.write(frame)
        return True

    def close(self, reason: str) -> None:
        """Say farewell, and close when everything is written, or the other end has not read it for `dial_s`."""
        if not self.has_farewell and not self.is_closing:
            self.has_farewell = True
            self.send(Farewell(reason))
        if self._channel is not None and not self._channel.is_closing:
            self._channel.close()
            self._loop.call_later(self._config.dial_s, self.abort)

    def abort(self) -> None:
        """Close at once and without a word: to the other end this is a crash."""
        if self._channel is not None:
            self._channel.abort()

    def fail(self, error: PeerError) -> None:
        """It cannot become a connection: whoever waits for it is told, then the overseer; then it is cut off."""
        if not self.opened.done():
            self.opened.set_exception(error)
        self._overseer.on_refused(self, error)
        self.abort()

    @property
    def unsent(self) -> int:
        """Bytes that the network, or the other end, has not taken yet."""
        return self._channel.unsent if self._channel is not None else 0

    def introduce(self, address: Address, time_ms: int) -> bool:
        """Note that the other end is sent the record of this time; False if it has one as new from us already."""
        if self._introduced.get(address, -1) >= time_ms:
            return False
        self._introduced[address] = time_ms
        if len(self._introduced) > _MOST_INTRODUCED:
            del self._introduced[next(iter(self._introduced))]
        return True

    def _on_message(self, now: float, message: Any) -> None:
        self._traffic.received[type(message).__name__] += 1
        if isinstance(message, Farewell):
            self.has_farewell = True
        elif isinstance(message, Hello):
            self._on_hello(message)
        elif self.state is not State.OPEN:
            self._overseer.blame(self, "garbage", GARBAGE, PeerError("it spoke before it said hello"))
        else:
            self.used = now
            self._overseer.on_message(self, message)

    def _on_hello(self, hello: Hello) -> None:
        if self.state is State.OPEN:
            self._overseer.blame(self, "garbage", GARBAGE, PeerError("it said hello twice"))
            return
        try:
            self._overseer.check_hello(self, hello)
        except PeerError as error:
            self.fail(error)
            return
        self.hello, self.state = hello, State.OPEN
        if self._hello_timer is not None:
            self._hello_timer.cancel()
        self._overseer.on_open(self)
        if not self.opened.done():
            assert self.id is not None
            self.opened.set_result(self.id)

    def _on_slow(self) -> None:
        now = self._loop.time()
        self._overseer.count("dropped_slow")
        if self._slow_since is None:
            self._slow_since = now
        elif now - self._slow_since > self._config.slow_s:
            self._overseer.blame(self, "slow", SLOW, PeerError("it does not read what is sent to it"))
            self.abort()

    def _no_hello(self) -> None:
        self.fail(PeerError("it did not say hello in time"))

    def _resume_reading(self) -> None:
        if self._channel is not None and not self._channel.is_closing:
            self._channel.resume_reading()


def _cost(message: Any) -> int:
    """What a message counts: contacts have to be checked, which takes as long as some twenty messages."""
    return 1 + 20 * len(message.contacts) if isinstance(message, Introduce) else 1


def _retrieve(future: asyncio.Future[PeerId]) -> None:
    """An error that nobody waits for has been counted already."""
    if not future.cancelled():
        future.exception()
