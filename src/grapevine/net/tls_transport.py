"""The transport of real networks: TLS 1.3 over TCP, both ends with certificates (`identity` says what they prove).

`tls_listener` takes connections, and bounds what those cost that have not proven anything.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity, id_of
from grapevine.net.tls_listener import TlsListener
from grapevine.net.transport import Channel, ChannelUser, Listener, Transport

_READ_AT_ONCE = 1 << 15  # bytes of a connection; a TLS record has half as many


class TlsTransport(Transport):
    """Dials and listens with one identity. UsageError if its key or certificate has changed on the disk."""

    def __init__(self, identity: Identity, config: NodeConfig) -> None:
        self._config = config
        self._client_context, self._server_context = identity.client_context(), identity.server_context()

    async def listen(self, host: str, port: int, accept: Callable[[], ChannelUser]) -> Listener:
        try:
            return await TlsListener.bind(
                host, port, self._server_context, self._config, lambda: _TlsChannel(accept(), None)
            )
        except OSError as error:
            raise UsageError(f"{host}:{port}: cannot be listened on ({error.strerror}); choose another") from None

    async def dial(self, host: str, port: int, user: ChannelUser, expected: PeerId | None) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: _TlsChannel(user, expected), host, port, ssl=self._client_context, server_hostname=""
            )
        except (OSError, UnicodeError, ssl.SSLError) as error:
            raise PeerError(f"{host}:{port} cannot be reached ({error})") from None


class _TlsChannel(asyncio.Protocol, Channel):
    """asyncio calls this after the handshake; who has not completed one never gets here."""

    def __init__(self, user: ChannelUser, expected: PeerId | None) -> None:
        self._user, self._expected = user, expected
        self._transport: asyncio.Transport | None = None
        self._is_proven = False

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = transport.get_extra_info("ssl_object")
        assert isinstance(connection, ssl.SSLObject)
        self.came_from = (transport.get_extra_info("peername") or ("",))[0]
        try:
            self.peer = id_of(connection, self._expected)
        except PeerError as error:
            self._user.on_channel_refused(error)
            transport.abort()
        else:
            self._is_proven = True
            _read_less_at_once(transport)
            self._user.on_channel_open(self)

    def data_received(self, data: bytes) -> None:
        if self._is_proven:
            self._user.on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._user.on_channel_closed()

    # What the user calls

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _read_less_at_once(transport: asyncio.Transport) -> None:
    """Let asyncio give its 256 KiB back that it keeps to read a connection into: most of what a connection costs.

    Nothing public says how many there are. A loop that reads in another way, such as uvloop, is left as it is.
    """
    protocol = getattr(transport, "_ssl_protocol", None)
    if protocol is not None and len(getattr(protocol, "_ssl_buffer", b"")) > _READ_AT_ONCE:
        buffer = bytearray(_READ_AT_ONCE)
        protocol.max_size = _READ_AT_ONCE
        protocol._ssl_buffer, protocol._ssl_buffer_view = buffer, memoryview(buffer)
