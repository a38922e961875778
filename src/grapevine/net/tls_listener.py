"""Takes connections for TLS, and makes nothing for them before they have begun to speak.

Whoever connects goes through three states, of which only the last one costs more than a socket:

    SILENT ──first bytes──▶ READY ──a place is free──▶ HANDSHAKE ──proven──▶ a channel
      └── pushed out by others, or late ──┴──── late, while others are ready ──▶ closed

- SILENT: it was taken, and has said nothing. At most `most_silent` are; the next one pushes out the one that has been
  silent for longest. An honest dialler speaks at once, so only a flood of connections within one round trip harms it.
- READY: its first bytes are here, and all places for handshakes are taken. While somebody is ready, a handshake that
  has had `handshake_grace_s` makes room. At most `most_silent` are ready, too; beyond, the last of the address that
  has most here is closed.
- HANDSHAKE: a TLS session is made for it, which takes a third of a megabyte. At most `most_handshakes` are.

How many of one address are anywhere among these is bounded by the `Doorstep`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable

from grapevine.net.config import NodeConfig
from grapevine.net.doorstep import Doorstep
from grapevine.net.transport import Endpoint, Listener

_BACKLOG = 256  # strangers whom the system lets wait until they are taken
_NO_SOCKETS_S = 1.0  # until another is taken, when the process may have no more of them
_log = logging.getLogger(__name__)


class TlsListener(Listener):
    """Listens on these sockets, bound already, and makes a channel (`make`) of whoever proves who it is."""

    def __init__(
        self,
        sockets: list[socket.socket],
        context: ssl.SSLContext,
        config: NodeConfig,
        make: Callable[[], asyncio.Protocol],
    ) -> None:
        self._sockets, self._context, self._config, self._make = sockets, context, config, make
        self._loop = asyncio.get_running_loop()
        self._doorstep = Doorstep(config, self._loop.time)
        self._silent: OrderedDict[socket.socket, tuple[str, float]] = OrderedDict()  # from where, and since when
        self._ready: OrderedDict[socket.socket, str] = OrderedDict()
        self._handshakes: OrderedDict[asyncio.Task[None], tuple[socket.socket, str, float]] = OrderedDict()
        self._tick: asyncio.TimerHandle | None = None  # looks who is late; set while anybody may be
        self._is_closed = False
        self.endpoint: Endpoint = sockets[0].getsockname()[:2]
        for listening in sockets:
            listening.setblocking(False)
            self._loop.add_reader(listening, self._take_from, listening)

    @classmethod
    async def bind(
        cls, host: str, port: int, context: ssl.SSLContext, config: NodeConfig, make: Callable[[], asyncio.Protocol]
    ) -> TlsListener:
        """Listen on all addresses that this host has; OSError if one cannot be."""
        sockets: list[socket.socket] = []
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
                sockets.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except OSError:
            for made in sockets:
                made.close()
            raise
        return cls(sockets, context, config, make)

    @property
    def turned_away(self) -> int:
        return self._doorstep.turned_away

    def close(self) -> None:
        self._is_closed = True
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        for came in list(self._silent):
            self._drop_silent(came)
        while self._ready:
            came, host = self._ready.popitem()
            self._drop(came, host)
        for handshake in list(self._handshakes):
            handshake.cancel()
        if self._tick is not None:
            self._tick.cancel()

    # SILENT

    def _take_from(self, listening: socket.socket) -> None:
        for _ in range(_BACKLOG):
            try:
                came, (host, *_) = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # the process, or the system, has no more sockets
                _log.error("nobody can be taken for a moment (%s)", error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(_NO_SOCKETS_S, self._listen_again, listening)
                return
            if not self._doorstep.enter(host):
                came.close()
                continue
            came.setblocking(False)
            self._silent[came] = host, self._loop.time()
            self._loop.add_reader(came, self._on_first_bytes, came)
            if len(self._silent) > self._config.most_silent:
                self._drop_silent(next(iter(self._silent)))
            self._watch()

    def _listen_again(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening, self._take_from, listening)

    def _drop_silent(self, came: socket.socket) -> None:
        host, _ = self._silent.pop(came)
        self._loop.remove_reader(came)
        self._drop(came, host)

    def _drop(self, came: socket.socket, host: str) -> None:
        self._doorstep.leave(host)
        came.close()

    # READY

    def _on_first_bytes(self, came: socket.socket) -> None:
        """Something has come, or the end of the connection has: the handshake finds out which."""
        host, _ = self._silent.pop(came)
        self._loop.remove_reader(came)
        self._ready[came] = host
        self._begin()
        if len(self._ready) > self._config.most_silent:
            last_of_most = max(reversed(self._ready), key=lambda one: self._doorstep.crowd(self._ready[one]))
            self._drop(last_of_most, self._ready.pop(last_of_most))

    def _begin(self) -> None:
        """Begin handshakes as long as there are places: addresses with few here first, then who came first."""
        while self._ready and len(self._handshakes) < self._config.most_handshakes:
            came = min(self._ready, key=lambda one: self._doorstep.crowd(self._ready[one]))
            host = self._ready.pop(came)
            handshake = self._loop.create_task(self._greet(came))
            self._handshakes[handshake] = came, host, self._loop.time()
            handshake.add_done_callback(self._end)

    # HANDSHAKE

    async def _greet(self, came: socket.socket) -> None:
        """The handshake; once it is over the channel is its user's, and this has nothing more to do with it."""
        try:
            await self._loop.connect_accepted_socket(
                self._make, came, ssl=self._context, ssl_handshake_timeout=self._config.dial_s
            )
        except (OSError, ssl.SSLError) as error:
            _log.debug("a handshake failed: %s", error)

    def _end(self, handshake: asyncio.Task[None]) -> None:
        came, host, _ = self._handshakes.pop(handshake)
        if handshake.cancelled():
            came.close()  # the task may not have begun
        self._doorstep.leave(host)
        if not self._is_closed:
            self._begin()

    # Who is late

    def _watch(self) -> None:
        if self._tick is None:
            self._tick = self._loop.call_later(self._config.handshake_grace_s / 2, self._look)

    def _look(self) -> None:
        """Drop who has been silent for too long, and cut off handshakes that hold up others."""
        self._tick, now = None, self._loop.time()
        for came, (_, since) in list(self._silent.items()):
            if since + self._config.dial_s > now:
                break
            self._drop_silent(came)
        waiting = len(self._ready)
        for handshake, (_, _, since) in list(self._handshakes.items())[:waiting]:
            if since + self._config.handshake_grace_s > now:
                break
            handshake.cancel()
        if self._silent or self._ready:
            self._watch()
