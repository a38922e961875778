"""The transport of a node in the simulated network: how it dials and listens (`channel` is what it gets so)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.identity import Identity
from grapevine.net.torture.channel import End
from grapevine.net.torture.loop import Process
from grapevine.net.torture.network import Network
from grapevine.net.transport import ChannelUser, Endpoint, Listener, MakeTransport, Transport

_REDIAL_S = 1.0  # between two attempts of a system to reach a machine that does not answer


def transport_of(network: Network, host: str, process: Process) -> MakeTransport:
    """Makes the transport of a node that runs in this process on this host."""
    return lambda identity, config: SimulatedTransport(network, host, process, identity)


class SimulatedTransport(Transport):
    """One node's way to others, in one session."""

    def __init__(self, network: Network, host: str, process: Process, identity: Identity) -> None:
        self._network, self._host, self._process, self._identity = network, host, process, identity

    async def listen(self, host: str, port: int, accept: Callable[[], ChannelUser]) -> Listener:
        endpoint = host, port or self._network.free_port()
        if host != self._host or endpoint in self._network.listeners:
            raise UsageError(f"{host}:{port}: cannot be listened on; choose another endpoint")
        listener = SimulatedListener(self._network, endpoint, self._process, self._identity, accept)
        self._network.listeners[endpoint] = listener
        return listener

    async def dial(self, host: str, port: int, user: ChannelUser, expected: PeerId | None) -> None:
        network, there, back = self._network, (self._host, host), (host, self._host)
        await asyncio.sleep(network.latency_s(there) + network.latency_s(back))
        while network.is_cut(there) or network.is_cut(back) or host in network.down:
            await asyncio.sleep(_REDIAL_S)  # the caller limits the time
        listener = network.listeners.get((host, port))
        if not isinstance(listener, SimulatedListener):
            raise PeerError(f"{host}:{port} cannot be reached (nobody listens there)")
        ours = End(network, self._host, self._process, contextvars.copy_context(), user)
        theirs = End(network, host, listener.process, listener.context, None)
        ours.other, theirs.other = theirs, ours
        at = ours.arrival_of_next()  # the other end opens when it hears of this, and before it hears anything else
        network.loop.call_at(at, theirs.accept, listener.accept, self._identity, context=listener.context)
        ours.begin(listener.identity, expected)


class SimulatedListener(Listener):
    """One endpoint, until it is closed or its process dies."""

    def __init__(
        self,
        network: Network,
        endpoint: Endpoint,
        process: Process,
        identity: Identity,
        accept: Callable[[], ChannelUser],
    ) -> None:
        self.endpoint, self.process, self.identity, self.accept = endpoint, process, identity, accept
        self.context = contextvars.copy_context()  # what comes is dealt with in the listener's process
        self._network = network

    def close(self) -> None:
        if self._network.listeners.get(self.endpoint) is self:
            del self._network.listeners[self.endpoint]
