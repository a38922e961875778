"""What an event carries for MQTT clients beside its payload, and how it is put into the event.

An event whose message has nothing but a payload is that payload, so that programs of both kinds understand each other.
Otherwise the event begins with `MARK`, the size of a header and the header (msgpack), and the payload follows. A
program without MQTT reads such events with `unpacked`. Nothing that comes can break it: what is no header is payload.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from grapevine.net.envelope import Event
from grapevine.net.stamp import source_of

MARK = b"\0mqtt\0"
_SIZE_BYTES = 4
_TEXT_BYTES = 65_535
HEADER_BYTES = 65_536  # of the longest header


class Extras(msgspec.Struct, frozen=True, omit_defaults=True):
    """Properties of a message as its publisher gave them (MQTT 5, section 3.3.2.3), and two flags."""

    retain: bool = False
    is_text: bool = False  # the payload format indicator
    expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    user: tuple[tuple[str, str], ...] = ()
    client: str = ""  # who published it, if that client wants none of its own messages


PLAIN = Extras()
_decoder = msgspec.msgpack.Decoder(Extras)


@dataclass(frozen=True, slots=True)
class Message:
    """An event as MQTT clients get it."""

    topic: str
    source: bytes  # its publisher, in one of that one's epochs (`stamp`)
    sequence: int
    time: float  # of its publication, in seconds since the epoch
    payload: bytes
    extras: Extras

    @classmethod
    def of(cls, event: Event) -> Message:
        """The message that an event carries."""
        payload, extras = unpacked(event.payload)
        source = source_of(event.publisher, event.epoch)
        return cls(event.topic, source, event.sequence, event.time, payload, extras)

    def seconds_left(self, now: float) -> int | None:
        """Until it expires: 0 or less if it has; None if it never does (MQTT-3.3.2-5, MQTT-3.3.2-6)."""
        if self.extras.expiry_s is None:
            return None
        return self.extras.expiry_s - max(0, int(now - self.time))


def packed(payload: bytes, extras: Extras) -> bytes:
    """The payload of the event that carries a message."""
    if extras == PLAIN and not payload.startswith(MARK):
        return payload
    header = msgspec.msgpack.encode(extras)
    return MARK + len(header).to_bytes(_SIZE_BYTES, "big") + header + payload


def unpacked(content: bytes) -> tuple[bytes, Extras]:
    """The payload of a message, and what came with it."""
    if not content.startswith(MARK):
        return content, PLAIN
    start = len(MARK) + _SIZE_BYTES
    end = start + int.from_bytes(content[len(MARK) : start], "big")
    if not start < end <= min(len(content), start + HEADER_BYTES):
        return content, PLAIN
    try:
        extras = _decoder.decode(content[start:end])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return content, PLAIN
    return (content[end:], extras) if _can_be_sent(extras) else (content, PLAIN)


def _can_be_sent(extras: Extras) -> bool:
    """Whether a packet can hold it: others may have written anything."""
    texts = [extras.content_type or "", extras.response_topic or "", *(text for pair in extras.user for text in pair)]
    topic = extras.response_topic
    return (
        all("\0" not in text and len(text.encode("utf-8", "surrogatepass")) <= _TEXT_BYTES for text in texts)
        and not any("\ud800" <= character <= "\udfff" for text in texts for character in text)
        and (topic is None or ("+" not in topic and "#" not in topic and bool(topic)))
        and len(extras.correlation or b"") <= _TEXT_BYTES
        and (extras.expiry_s is None or 0 <= extras.expiry_s < 2**32)
    )
