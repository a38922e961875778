"""One client on one connection: bytes in and out, how long it may be silent, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import mqtt5

from grapevine.model.errors import GrapevineError
from grapevine.net.doors.mqtt.codec import Codec
from grapevine.net.doors.mqtt.texts import Malformed

_READ_BYTES = 65_536
_PATIENCE = 1.5  # times the keep-alive (MQTT-3.1.2-22)
_CLOSE_S = 1.0  # for a client to read the last words
_log = logging.getLogger(__name__)

_TAKEN_OVER, _LEFT, _SILENT = 0x8E, 0x8B, 0x8D


class Handler(Protocol):
    """Who a connection tells what came (`Conversation`)."""

    keep_alive_s: float

    async def on_packet(self, packet: mqtt5.Packet) -> bool:
        """Act on a packet; False if it was the last one. Malformed if it may not be sent."""

    async def on_end(self) -> None:
        """Nothing more comes, and nothing more can be sent."""


class Connection:
    """The bytes of one client. `run` is its life."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most_bytes: int, most_waiting: int
    ) -> None:
        self.codec = Codec(most_bytes)
        self.most_packet: int | None = None  # bytes of the longest packet that the client takes
        self._reader, self._writer, self._most_waiting = reader, writer, most_waiting
        self._unwritten: list[bytes] = []
        self._task = asyncio.current_task()
        self._reason = 0  # that the client is told at the end, if it is ended from here
        self._is_ending = False
        self._ended = asyncio.get_running_loop().create_future()

    async def run(self, make: Callable[[Connection], Handler], connect_s: float) -> None:
        """Read until the client, the door or a mistake ends it. The first packet has to come within `connect_s`."""
        handler = make(self)
        handler.keep_alive_s = connect_s / _PATIENCE
        try:
            await self._read(handler)
        except Malformed as mistake:
            _log.info("a client was cut off: %s", mistake)
            self._say_goodbye(mistake.reason)
        except TimeoutError:
            self._say_goodbye(_SILENT)
        except asyncio.CancelledError:
            if not self._reason:
                raise
            self._say_goodbye(self._reason)
        except (OSError, GrapevineError) as error:
            _log.info("a client has gone: %s", error)
        finally:
            self._is_ending = True
            await asyncio.shield(asyncio.ensure_future(self._finish(handler)))

    async def _read(self, handler: Handler) -> None:
        while True:
            limit = handler.keep_alive_s * _PATIENCE if handler.keep_alive_s else None
            async with asyncio.timeout(limit):
                data = await self._reader.read(_READ_BYTES)
            if not data:
                return
            for packet in self.codec.packets(data):
                if not await handler.on_packet(packet):
                    return

    async def _finish(self, handler: Handler) -> None:
        try:
            await handler.on_end()
        finally:
            self._flush()
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._writer.wait_closed()
            self._writer.transport.abort()
            if not self._ended.done():
                self._ended.set_result(None)

    async def end(self, *, taken_over: bool) -> None:
        """End it from outside: another client has come under its name, or the door closes. It is over on return."""
        self.cut(_TAKEN_OVER if taken_over else _LEFT)
        await asyncio.wait([self._ended])

    def cut(self, reason: int = 0x80) -> None:
        """Begin to end it, for a reason that a client of MQTT 5 is told; the first one counts."""
        if self._task is not None and not self._reason and not self._is_ending:
            self._reason = reason
            self._task.cancel()

    def _say_goodbye(self, reason: int) -> None:
        if self.codec.version == 5 and reason:  # a server of 3.1.1 says nothing
            self.send(mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode(reason)))

    # Writing

    def send(self, packet: mqtt5.Packet) -> bool:
        """Write a packet, with others of this turn of the loop; False if the client takes none so long."""
        return self.send_bytes(self.codec.write(packet))

    def send_bytes(self, frame: bytes) -> bool:
        """The same, of what the codec has written."""
        if self.most_packet is not None and len(frame) > self.most_packet:
            return False
        if frame and not self._unwritten:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unwritten.append(frame)
        return True

    @property
    def is_slow(self) -> bool:
        """Whether more waits for the client than it may let wait."""
        return self._writer.transport.get_write_buffer_size() > self._most_waiting

    async def drained(self) -> None:
        """Wait until the client has read what waits; OSError if it has gone."""
        self._flush()
        await self._writer.drain()

    def _flush(self) -> None:
        if self._unwritten:
            frames, self._unwritten = b"".join(self._unwritten), []
            if not self._writer.transport.is_closing():
                self._writer.write(frames)
