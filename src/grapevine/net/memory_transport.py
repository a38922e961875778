"""A transport inside one process: no socket, no file, no thread, and nothing happens but what the loop is asked to do.

    network = MemoryNetwork()
    async with Node.open(transport=network.transport) as a, Node.open(["…"], transport=network.transport) as b: ...

All nodes of one `MemoryNetwork`, and no others, reach each other, by endpoints that look like those of sockets. What an
end writes waits at the other until the loop hands it over, and as long as the other has paused; so `unsent` is all that
was not read, without the buffers that a system's sockets have in between.

An identity is proven here too: each end signs a challenge that no end was given before. Whoever says that it is
another, but has not its key, is refused as it is by TLS.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity, proven
from grapevine.net.transport import Channel, ChannelUser, Endpoint, Listener, Transport

_FIRST_PORT = 49_152  # of those that are given to whoever asks for port 0
_LAST_PORT = 65_535


class MemoryNetwork:
    """Who listens where. `transport` is what `Node.open` takes."""

    def __init__(self) -> None:
        self.listeners: dict[Endpoint, MemoryListener] = {}
        self._challenges = count(1)

    def transport(self, identity: Identity, config: NodeConfig) -> MemoryTransport:
        """The transport of one node. Nobody is slow here to prove who it is, so no bound of it is used."""
        return MemoryTransport(self, identity)

    def challenge(self) -> bytes:
        """Bytes that nobody in this network has signed before."""
        return b"%d" % next(self._challenges)

    def free_port(self, host: str) -> int:
        """A port at which nobody listens; UsageError if there is none left."""
        for port in range(_FIRST_PORT, _LAST_PORT + 1):
            if (host, port) not in self.listeners:
                return port
        raise UsageError(f"{host}: all ports are taken; close a node first")


class MemoryTransport(Transport):
    """Dials and listens with one identity, in one network."""

    def __init__(self, network: MemoryNetwork, identity: Identity) -> None:
        self._network, self._identity = network, identity

    async def listen(self, host: str, port: int, accept: Callable[[], ChannelUser]) -> Listener:
        endpoint = host, port or self._network.free_port(host)
        if endpoint in self._network.listeners:
            raise UsageError(f"{host}:{port}: cannot be listened on (somebody does already); choose another")
        listener = self._network.listeners[endpoint] = MemoryListener(self._network, endpoint, self._identity, accept)
        return listener

    async def dial(self, host: str, port: int, user: ChannelUser, expected: PeerId | None) -> None:
        await asyncio.sleep(0)  # as on any network, others may act before the answer comes
        listener = self._network.listeners.get((host, port))
        if listener is None:
            raise PeerError(f"{host}:{port} cannot be reached (nobody listens there)")
        here, there = MemoryChannel(user), MemoryChannel(listener.accept())
        here.other, there.other = there, here
        challenge = self._network.challenge
        # Whoever is dialled begins later than the dialler, but before it reads what the dialler writes at once.
        asyncio.get_running_loop().call_soon(there.begin, self._identity, challenge(), None)
        here.begin(listener.identity, challenge(), expected)


class MemoryListener(Listener):
    """One endpoint of a network, until it is closed."""

    def __init__(
        self, network: MemoryNetwork, endpoint: Endpoint, identity: Identity, accept: Callable[[], ChannelUser]
    ) -> None:
        self.endpoint, self.identity, self.accept = endpoint, identity, accept
        self._network = network

    def close(self) -> None:
        if self._network.listeners.get(self.endpoint) is self:
            del self._network.listeners[self.endpoint]


class MemoryChannel(Channel):
    """One end. What the other end has written and this one has not read yet is kept here."""

    other: MemoryChannel

    def __init__(self, user: ChannelUser) -> None:
        self._user = user
        self._loop = asyncio.get_running_loop()
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_paused = self._is_scheduled = self._is_closing = self._is_over = False

    def begin(self, identity: Identity, challenge: bytes, expected: PeerId | None) -> None:
        """Let the other end prove that it has this identity; then the channel is open."""
        try:
            self.peer = proven(challenge, *identity.prove(challenge), expected)
        except PeerError as error:
            self._user.on_channel_refused(error)
            self.abort()
        else:
            self._user.on_channel_open(self)

    def write(self, data: bytes) -> None:
        if not self._is_closing:
            self.other._take(bytes(data))

    @property
    def unsent(self) -> int:
        return self.other._unread_bytes

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._schedule()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._forget_unread()
            self.other._schedule()  # it reads the rest, and then finds the end

    def abort(self) -> None:
        if not self._is_over:
            self._is_closing = True
            self._forget_unread()
            self._loop.call_soon(self._end)
            self._loop.call_soon(self.other._end)

    def _take(self, data: bytes) -> None:
        if data and not self._is_closing:
            self._unread.append(data)
            self._unread_bytes += len(data)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._is_over:
            self._is_scheduled = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        """Hand over one piece, or find that the other end has closed after its last one."""
        self._is_scheduled = False
        if self._unread and not self._is_paused:
            data = self._unread.popleft()
            self._unread_bytes -= len(data)
            self._schedule()
            self._user.on_data(data)
        elif not self._unread and (self._is_closing or self.other._is_closing):
            self._end()
            self._loop.call_soon(self.other._end)

    def _end(self) -> None:
        if not self._is_over:
            self._is_closing = self._is_over = True
            self._forget_unread()
            self._user.on_channel_closed()

    def _forget_unread(self) -> None:
        self._unread.clear()
        self._unread_bytes = 0
