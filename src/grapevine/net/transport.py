"""What a transport is: how two nodes come to have a stream of bytes between them, each sure of who the other is.

Everything above (`connection`, `connections`) knows only what stands here. `tls_transport` carries it over TCP, with
TLS 1.3 proving both ends; `memory_transport` carries it inside one process, so that whole nodes can be tested without
a socket; `torture.simulated_transport` carries it over a network that fails. Whoever writes another one passes
`tests/net/test_transport.py`, which holds for all of them.

A transport promises three things, and those above rely on nothing else:

1. *Proven before used.* `ChannelUser.on_channel_open` is called at most once, before anything else, with a channel
   whose `peer` has proven that it holds the key of that id, and is the expected peer if one was expected. If it has
   not, `on_channel_refused` is called instead, and no byte of it is ever handed over.
2. *A stream.* What one end writes reaches the other whole, unchanged and in order, up to some point at which the
   channel ends; nothing comes after the end. A message may arrive in any number of pieces.
3. *An end that is told.* `on_channel_closed` is called exactly once for every channel that was opened or refused,
   whichever end closed it, also when the other end vanished without a word.

A transport never makes a writer wait: `write` buffers what the other end does not take, and `unsent` says how much
that is. Who writes has to look, and stop (`Connection.send` does).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from grapevine.model.errors import PeerError
from grapevine.model.identity import PeerId
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity

Endpoint = tuple[str, int]  # host and port at which a node is dialled


class Channel(ABC):
    """One end of an open stream. Made by a transport, and handed to a `ChannelUser`."""

    peer: PeerId  # who is at the other end, proven
    came_from = ""  # its IP address, by which `slots` counts; "": the transport cannot tell

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send bytes. Returns at once; what cannot leave yet is buffered. Nothing happens if the channel is closing."""

    @property
    @abstractmethod
    def unsent(self) -> int:
        """Bytes that were written and that the network, or the other end, has not taken yet."""

    @property
    @abstractmethod
    def is_closing(self) -> bool:
        """Whether this end was closed or aborted, or the channel is over. Nothing can be written any more."""

    @abstractmethod
    def pause_reading(self) -> None:
        """Hand over nothing more until `resume_reading`; what comes meanwhile waits, in the end at the sender's."""

    @abstractmethod
    def resume_reading(self) -> None:
        """Go on handing over what comes."""

    @abstractmethod
    def close(self) -> None:
        """Close when everything that was written has left; the other end is told after it has read that."""

    @abstractmethod
    def abort(self) -> None:
        """Close at once: what was not sent is lost, and what has come and was not handed over never is."""


class ChannelUser(ABC):
    """Whoever reads from a channel. All calls come from the loop, never from within `write`, `close` or `abort`."""

    @abstractmethod
    def on_channel_open(self, channel: Channel) -> None:
        """The other end has proven who it is; from now on bytes may be written and may come."""

    @abstractmethod
    def on_channel_refused(self, error: PeerError) -> None:
        """The other end is nobody, or another than expected; the transport closes by itself."""

    @abstractmethod
    def on_data(self, data: bytes) -> None:
        """The next bytes of the stream, at least one."""

    @abstractmethod
    def on_channel_closed(self) -> None:
        """It is over; nothing is called after this."""


class Listener(ABC):
    """An endpoint at which others are waited for. Made by `Transport.listen`."""

    endpoint: Endpoint  # as it is bound: a port of 0 has become a real one

    @property
    def turned_away(self) -> int:
        """How many were closed at once, before anything was made for them: others of their address were too many."""
        return 0

    @abstractmethod
    def close(self) -> None:
        """Take nobody more. Channels that are open stay so."""


class Transport(ABC):
    """One node's way to others. `Connections` has one, made for its identity by a `MakeTransport`."""

    @abstractmethod
    async def listen(self, host: str, port: int, accept: Callable[[], ChannelUser]) -> Listener:
        """Wait for others at this endpoint (port 0: any free one); `accept` makes a user for each who comes.

        UsageError if the endpoint is taken, or is not one of this machine.
        """

    @abstractmethod
    async def dial(self, host: str, port: int, user: ChannelUser, expected: PeerId | None) -> None:
        """Open a channel to whoever listens at this endpoint, and hand it to the user before returning.

        PeerError if nobody is there. If somebody is there who is not `expected`, this returns, and the user has been
        told by `on_channel_refused`. The caller limits the time that this may take.
        """


class MakeTransport(Protocol):
    """Makes the transport of a node: what `Node.open` takes, since it learns its identity only while opening."""

    def __call__(self, identity: Identity, config: NodeConfig) -> Transport:
        """A transport that proves this identity; whoever has not proven its own after `dial_s` is cut off."""
