"""MQTT 3.1.1 in terms of MQTT 5: what a client sends becomes a body of MQTT 5, what it is sent is written without
properties and reasons.

No maintained library reads and writes 3.1.1 without doing I/O of its own. It does not take one: the packets of a client
are those of MQTT 5 without the lengths of their properties (all zero here), so they are put in, and the codec of MQTT 5
checks the rest. Section numbers are those of the OASIS standard, version 3.1.1.
"""

from __future__ import annotations

import mqtt5

from grapevine.net.doors.mqtt.texts import CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Malformed

LEVEL = 4
_NONE = b"\0"  # the length of no properties
_FOR_EVER = b"\x05\x11\xff\xff\xff\xff"  # a session without an end: what clean session = 0 says (3.1.2.4)
_HEAD = 10  # of CONNECT: name, level, flags, keep-alive
# Return codes of CONNACK by reasons of MQTT 5 (3.2.2.3); 3, the server is unavailable, for all others.
_RETURN_CODES = {0x00: 0, 0x84: 1, 0x85: 2, 0x86: 4, 0x87: 5, 0x8C: 5}
_ACKS: dict[type, int] = {
    mqtt5.PubAckPacket: 0x40,
    mqtt5.PubRecPacket: 0x50,
    mqtt5.PubRelPacket: 0x62,
    mqtt5.PubCompPacket: 0x70,
}


def to_version5(first: int, body: bytes) -> bytes:
    """The body that the packet has in MQTT 5; Malformed if it ends before that can be said."""
    kind = first >> 4
    if kind == CONNECT:
        return _connect(body)
    if kind == PUBLISH:
        end = _after_binary(body, 0) + (2 if first & 0x06 else 0)
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        end = 2
    else:
        if len(body) > 2:
            raise Malformed("the packet is longer than MQTT 3.1.1 has it")
        return body
    if len(body) < end:
        raise Malformed("the packet ends in the middle of a field")
    rest = body[end:]
    if kind == SUBSCRIBE and any(options & 0xFC for options in _options(rest)):
        raise Malformed("reserved bits of a requested QoS are set")  # MQTT-3.8.3-4
    return body[:end] + _NONE + rest


def from_version5(packet: mqtt5.Packet) -> bytes:
    """The packet as a client of 3.1.1 gets it; nothing where it knows no such packet (a server's DISCONNECT)."""
    if isinstance(packet, mqtt5.PublishPacket):
        return _publish(packet)
    if (kind := _ACKS.get(type(packet))) is not None:
        assert isinstance(packet, mqtt5.PubAckPacket | mqtt5.PubRecPacket | mqtt5.PubRelPacket | mqtt5.PubCompPacket)
        return bytes((kind, 2)) + packet.packet_id.to_bytes(2, "big")
    if isinstance(packet, mqtt5.ConnAckPacket):
        return bytes((0x20, 2, packet.session_present, _RETURN_CODES.get(int(packet.reason_code), 3)))
    if isinstance(packet, mqtt5.SubAckPacket):
        codes = bytes(min(int(code), 0x80) for code in packet.reason_codes)  # 0x80: failure (3.9.3)
        return b"\x90" + length(2 + len(codes)) + packet.packet_id.to_bytes(2, "big") + codes
    if isinstance(packet, mqtt5.UnsubAckPacket):
        return b"\xb0\x02" + packet.packet_id.to_bytes(2, "big")
    return packet.write() if isinstance(packet, mqtt5.PingRespPacket) else b""


def length(size: int) -> bytes:
    """A length as both versions write it (2.2.3)."""
    found = bytearray()
    while True:
        size, digit = size >> 7, size & 0x7F
        found.append(digit | 0x80 if size else digit)
        if not size:
            return bytes(found)


def _connect(body: bytes) -> bytes:
    if len(body) < _HEAD:
        raise Malformed("the packet ends in the middle of a field")
    flags = body[7]
    if flags & 0x40 and not flags & 0x80:
        raise Malformed("there is a password without a user name")  # MQTT-3.1.2-22
    properties = _NONE if flags & 0x02 else _FOR_EVER
    end = _after_binary(body, _HEAD)
    will = _NONE if flags & 0x04 else b""
    return body[:6] + b"\x05" + body[7:_HEAD] + properties + body[_HEAD:end] + will + body[end:]


def _publish(packet: mqtt5.PublishPacket) -> bytes:
    topic = packet.topic.encode()
    number = b"" if packet.packet_id is None else packet.packet_id.to_bytes(2, "big")
    first = 0x30 | packet.duplicate << 3 | int(packet.qos) << 1 | packet.retain
    size = 2 + len(topic) + len(number) + len(packet.payload)
    return b"".join((bytes((first,)), length(size), len(topic).to_bytes(2, "big"), topic, number, packet.payload))


def _after_binary(body: bytes, at: int) -> int:
    return at + 2 + int.from_bytes(body[at : at + 2], "big")


def _options(rest: bytes) -> list[int]:
    """The bytes behind the filters of SUBSCRIBE, as far as they are there."""
    found, at = [], 0
    while (at := _after_binary(rest, at)) < len(rest):
        found.append(rest[at])
        at += 1
    return found
