"""Bytes of one client, and packets of MQTT 5: whichever version the client speaks, the rest of the door sees these."""

from __future__ import annotations

from collections.abc import Iterator

import mqtt5

from grapevine.net.doors.mqtt import version3
from grapevine.net.doors.mqtt.texts import (
    AUTH,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Malformed,
    check_texts,
)

_FROM_CLIENTS = {CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH}
_NAME = b"\0\4MQTT"
_LONGEST_HEADER = 5


class Codec:
    """Reads what a client sends, and writes what it gets. `version` is 0 until it has said which one it speaks."""

    def __init__(self, most_bytes: int) -> None:
        self.version = 0
        self._most_bytes, self._buffer = most_bytes, bytearray()

    def packets(self, data: bytes) -> Iterator[mqtt5.Packet]:
        """The packets that are complete with this data. At the first one that is none it raises Malformed, and nothing
        more can be read; a packet that is too large is refused by its header, before it has come."""
        self._buffer += data
        while (frame := self._next_frame()) is not None:
            yield self._read(*frame)

    def write(self, packet: mqtt5.Packet) -> bytes:
        """The packet in the client's version; MQTT 5 as long as that is unknown."""
        return version3.from_version5(packet) if self.version == version3.LEVEL else packet.write()

    def _next_frame(self) -> tuple[int, bytes] | None:
        size, at = 0, 1
        while True:
            if at >= len(self._buffer):
                return None
            digit = self._buffer[at]
            size |= (digit & 0x7F) << (7 * (at - 1))
            at += 1
            if digit < 0x80:
                break
            if at == _LONGEST_HEADER:
                raise Malformed("the length of a packet is longer than 4 bytes")
        if at + size > self._most_bytes:
            raise Malformed(f"a packet of {at + size:,} bytes came; {self._most_bytes:,} are allowed", 0x95)
        if len(self._buffer) < at + size:
            return None
        first, body = self._buffer[0], bytes(self._buffer[at : at + size])
        del self._buffer[: at + size]
        return first, body

    def _read(self, first: int, body: bytes) -> mqtt5.Packet:
        kind = first >> 4
        if kind not in _FROM_CLIENTS:
            raise Malformed(f"clients send no packets of kind {kind}", 0x82)
        if kind == CONNECT and not self.version:
            self.version = _version(body)
        if not self.version:
            raise Malformed("the first packet is no CONNECT", 0x82)  # MQTT-3.1.0-1
        if self.version == version3.LEVEL:
            if kind == AUTH:
                raise Malformed("MQTT 3.1.1 has no AUTH", 0x82)
            body = version3.to_version5(first, body)
        check_texts(first, body)
        frame = b"".join((bytes((first,)), version3.length(len(body)), body))
        try:
            packet, size = mqtt5.read(memoryview(frame))
        except (ValueError, IndexError) as error:
            raise Malformed(f"a packet cannot be read: {error}") from None
        if size != len(frame):
            raise Malformed("a packet is shorter than it says")
        if getattr(packet, "packet_id", None) == 0:
            raise Malformed("a packet identifier is 0", 0x82)  # MQTT-2.2.1-3
        return packet


def _version(body: bytes) -> int:
    if not body.startswith(_NAME) or len(body) <= len(_NAME) or body[len(_NAME)] not in (4, 5):
        raise Malformed("MQTT 5 and 3.1.1 are spoken here, no other version", 0x84)  # MQTT-3.1.2-1, MQTT-3.1.2-2
    return body[len(_NAME)]
