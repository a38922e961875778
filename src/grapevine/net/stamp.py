"""What a publisher writes before its payload, and signs with it: when, in which epoch, and which event came before.

    2^63 + time in ms (8 bytes) · epoch (8) · fingerprint of the event before, in this stream (16) · payload

Events of programs before there were epochs begin with the time alone, whose first bit is 0. They belong to epoch 0, and
name no event before. Both forms are read for ever, since stores hold them and signatures cover them.

A *source* is a publisher in one of its epochs (`epochs` says what these are): its id and the epoch, 40 bytes in one. A
*stream* is what a source publishes in a topic, numbered from 1 without gaps.

The fingerprint of the event before makes a stream a chain. Whoever signs two different events under one number has to
continue one of them, and whoever has the other sees that the next event does not fit (`equivocation`). Equal last
events mean equal streams, so that partners need to compare no more than the last (`Ledger.digest`).
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

from grapevine.model.identity import ID_BYTES, PeerId
from grapevine.systems.contracts.peer import NUMBERS_OF_AN_EPOCH

FINGERPRINT_BYTES = 16
SOURCE_BYTES = ID_BYTES + 8
FIRST = bytes(FINGERPRINT_BYTES)  # the fingerprint of the event before the first one

_CHANCE_BITS = 24  # the low bits of an epoch; those above order a publisher's epochs
_MOST_EPOCHS = 1 << 34 + _CHANCE_BITS  # so that numbers of overlays are below 2^62
_TIME, _FORM = struct.Struct(">Q"), struct.Struct(f">QQ{FINGERPRINT_BYTES}s")
_HAS_EPOCH = 1 << 63
_EPOCH = struct.Struct(">Q")
STAMP_BYTES = _FORM.size  # of the longer form
SHORTEST_BYTES = _TIME.size


class Stamp(NamedTuple):
    """What stands before an event's payload."""

    time_ms: int  # since the epoch of 1970, by the publisher's clock, which may be wrong
    epoch: int
    before: bytes | None  # the fingerprint of the event before; None in the older form
    size: int  # bytes that it takes

    @property
    def is_sound(self) -> bool:
        """Whether an honest publisher can have written it."""
        return self.epoch < _MOST_EPOCHS


def stamped(time_ms: int, payload: bytes, epoch: int = 0, before: bytes | None = None) -> bytes:
    """A stamp and the application's payload in one: what a publisher signs, and a store keeps as payload.

    Without `before` it is the older form, which no publisher writes any more.
    """
    if before is None:
        return _TIME.pack(time_ms) + payload
    return _FORM.pack(_HAS_EPOCH | time_ms, epoch, before) + payload


def stamp_of(content: bytes) -> Stamp:
    """The stamp that a content begins with; an empty one of what is too short to have any."""
    if len(content) < SHORTEST_BYTES:
        return Stamp(0, 0, None, len(content))
    (time_ms,) = _TIME.unpack_from(content)
    if time_ms & _HAS_EPOCH and len(content) >= STAMP_BYTES:
        _, epoch, before = _FORM.unpack_from(content)
        return Stamp(time_ms ^ _HAS_EPOCH, epoch, before, STAMP_BYTES)
    return Stamp(time_ms, 0, None, SHORTEST_BYTES)


def epoch_of(content: bytes) -> int:
    """The epoch alone; 0 of what is too short for a stamp."""
    if len(content) < STAMP_BYTES or not content[0] & 0x80:
        return 0
    return int(_EPOCH.unpack_from(content, _TIME.size)[0])


def fingerprint(sequence: int, content: bytes) -> bytes:
    """What tells an event apart from any other that its publisher might have signed under the same number."""
    return blake2b(b"%d " % sequence + content, digest_size=FINGERPRINT_BYTES).digest()


# Sources


def source_of(publisher: PeerId, epoch: int = 0) -> bytes:
    """A publisher in one of its epochs."""
    return publisher.full + _EPOCH.pack(epoch)


def publisher_of(source: bytes) -> PeerId:
    """Who a source is."""
    return PeerId(source[:ID_BYTES])


def epoch_of_source(source: bytes) -> int:
    """In which of its epochs."""
    return int(_EPOCH.unpack_from(source, ID_BYTES)[0])


# Numbers of overlays


def overlay_number(epoch: int, sequence: int) -> int:
    """The number under which overlays, which know nothing of epochs, tell a publisher's events apart.

    It rises with epoch and sequence, and within an epoch it rises by one. Two events have the same only if an epoch has
    more than 2^28 of them; an overlay then takes the later one for a copy, and recovery brings it.
    """
    return (epoch >> _CHANCE_BITS) * NUMBERS_OF_AN_EPOCH + sequence


def sequence_of(epoch: int, number: int) -> int:
    """The sequence of the event that overlays know by this number; below 1 if none of the epoch has it."""
    return number - overlay_number(epoch, 0)


def next_epoch(before: int, now_s: int, chance: bytes) -> int:
    """An epoch after this one that nobody has drawn yet.

    Its upper bits are the time, or one more than those of the epoch before if the clock is behind that; they order the
    epochs of a publisher. Its lower bits are a hash of `chance`, for those who begin twice from the same state with a
    clock that stands.
    """
    order = max((before >> _CHANCE_BITS) + 1, now_s)
    low = int.from_bytes(blake2b(chance, digest_size=_CHANCE_BITS // 8).digest(), "big")
    return order << _CHANCE_BITS | low
