"""Text in packets of MQTT 5 is looked at before the codec reads it.

mqtt5 0.8 panics at text that is no UTF-8 (an exception that `except Exception` lets pass, and lines on the error
stream), takes U+0000, and takes reserved bits of subscription options. All three are malformed packets (MQTT-1.5.4-1,
MQTT-1.5.4-2, MQTT-3.8.3-5), and anybody may send them.
"""

from __future__ import annotations

from grapevine.model.errors import PeerError

CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 3, 4, 5, 6, 7
SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH = 8, 10, 12, 14, 15

# Identifiers of properties by what they hold (MQTT 5, table 2-4).
_SIZES = dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1)
_SIZES |= dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2) | dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4)
_TEXTS, _BINARY, _PAIR, _NUMBER = {0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F}, {0x09, 0x16}, 0x26, 0x0B


class Malformed(PeerError):  # noqa: N818 - it says what is the case
    """A packet that is none, or that a client may not send; `reason` is the code of MQTT 5 for it."""

    def __init__(self, sentence: str, reason: int = 0x81) -> None:
        super().__init__(sentence)
        self.reason = reason


class _Walk:
    """A position in the body of a packet. Every step raises Malformed where the body ends too early."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    @property
    def is_over(self) -> bool:
        return self.at >= len(self.body)

    def skip(self, size: int) -> bytes:
        part = self.body[self.at : self.at + size]
        if len(part) < size:
            raise Malformed("the packet ends in the middle of a field")
        self.at += size
        return part

    def byte(self) -> int:
        return self.skip(1)[0]

    def binary(self) -> bytes:
        return self.skip(int.from_bytes(self.skip(2), "big"))

    def text(self) -> None:
        try:
            if "\0" in self.binary().decode():
                raise Malformed("a text has the character U+0000")
        except UnicodeDecodeError:
            raise Malformed("a text is no UTF-8") from None

    def number(self) -> int:
        value = 0
        for place in range(4):
            digit = self.byte()
            value |= (digit & 0x7F) << (7 * place)
            if digit < 0x80:
                return value
        raise Malformed("a number of variable length is longer than 4 bytes")

    def properties(self) -> None:
        end = self.number() + self.at
        while self.at < end:
            kind = self.byte()
            if kind in _SIZES:
                self.skip(_SIZES[kind])
            elif kind in _TEXTS:
                self.text()
            elif kind in _BINARY:
                self.binary()
            elif kind == _PAIR:
                self.text()
                self.text()
            elif kind == _NUMBER:
                self.number()
            else:
                raise Malformed(f"there is no property {kind}")
        if self.at != end:
            raise Malformed("the properties are longer than they say")


def check_texts(first: int, body: bytes) -> None:
    """Raise Malformed if a client's packet of MQTT 5, by its first byte and what follows its length, has bad text."""
    walk, kind = _Walk(body), first >> 4
    if kind == CONNECT:
        _check_connect(walk)
    elif kind == PUBLISH:
        walk.text()
        walk.skip(2 if first & 0x06 else 0)
        walk.properties()
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        walk.skip(2)
        walk.properties()
        while not walk.is_over:
            walk.text()
            if kind == SUBSCRIBE and walk.byte() & 0xC0:
                raise Malformed("reserved bits of the subscription options are set")
    elif kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT, AUTH):
        walk.skip(0 if kind in (DISCONNECT, AUTH) else 2)
        if not walk.is_over:
            walk.skip(1)
        if not walk.is_over:
            walk.properties()


def _check_connect(walk: _Walk) -> None:
    walk.text()
    walk.skip(1)
    flags = walk.byte()
    if flags & 0x01 or (flags & 0x38 and not flags & 0x04):  # MQTT-3.1.2-3, MQTT-3.1.2-11, MQTT-3.1.2-13
        raise Malformed("flags of CONNECT are set that must not be")
    walk.skip(2)
    walk.properties()
    walk.text()
    if flags & 0x04:
        walk.properties()
        walk.text()
        walk.binary()
    if flags & 0x80:
        walk.text()
    if flags & 0x40:
        walk.binary()
