"""Frames: what is sent arrives, however it is cut; what is no message is refused with its reason, and costs nothing."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise
from random import Random
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import PeerError, UsageError
from grapevine.net import wire
from grapevine.net.wire import LENGTH_BYTES, VERSION, Decoder, encode
from grapevine.systems.contracts.peer import Message, messages_in
from grapevine.systems.rappel.messages import Join, Ping, Profile, Pull, Update, WhoAreYou
from tests.net.messages import MODULES, RAPPEL, any_message

NEWER = VERSION + 1
UPDATE = Update(3, 17, b"news", b"\x01" * 64)


def frame(body: bytes) -> bytes:
    """A frame around anything."""
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def with_header(body: bytes, version: int = VERSION) -> bytes:
    return frame(bytes([0x92, version]) + body)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream, cut at these places."""
    places = sorted({cut % (len(stream) + 1) for cut in cuts} | {0, len(stream)})
    return [stream[a:b] for a, b in pairwise(places)]


@given(st.lists(any_message(), max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_every_message_arrives_as_it_was_sent_however_the_stream_is_cut(messages: list[Any], cuts: list[int]) -> None:
    decoder = Decoder(RAPPEL)
    stream = b"".join(map(encode, messages))
    assert [message for piece in pieces(stream, cuts) for message in decoder.feed(piece)] == messages
    assert decoder.buffered == 0


@given(any_message())
def test_every_message_arrives_byte_by_byte(message: Any) -> None:
    decoder = Decoder(RAPPEL)
    stream = encode(message)
    arrived = [decoder.feed(stream[n : n + 1]) for n in range(len(stream))]
    assert arrived == [[]] * (len(stream) - 1) + [[message]]


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES.keys())
def test_a_systems_messages_have_different_tags_and_need_nothing_done_to_travel(module: ModuleType) -> None:
    union = messages_in(module)
    kinds = get_args(union)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds) > 3
    assert all(kind.__struct_config__.array_like for kind in kinds)

    @given(any_message(union))
    def travels(message: Any) -> None:
        assert Decoder(union).feed(encode(message)) == [message]

    travels()


def test_a_frame_is_its_length_and_the_version_beside_the_message() -> None:
    sent = encode(UPDATE)
    assert int.from_bytes(sent[:LENGTH_BYTES], "big") == len(sent) - LENGTH_BYTES
    assert msgspec.msgpack.decode(sent[LENGTH_BYTES:]) == [VERSION, ["Update", 3, 17, b"news", b"\x01" * 64, False]]


def test_fields_added_at_the_end_do_not_disturb_those_who_do_not_know_them() -> None:
    body = msgspec.msgpack.encode(["JoinDeny", 5, "why"])
    assert Decoder(RAPPEL).feed(with_header(body)) == [MODULES["rappel"].JoinDeny(5)]
    assert Decoder(RAPPEL).feed(with_header(msgspec.msgpack.encode(["Pull", 1, 2]))) == [Pull(1, 2)]


REFUSED = {
    "a frame of 1,048,577 bytes was announced; the limit is 1,048,576": (1 << 20 | 1).to_bytes(4, "big"),
    "a frame of 4,294,967,295 bytes was announced": b"\xff" * 4,
    "an empty frame came": frame(b""),
    f"a frame of version {NEWER} came; this node speaks version {VERSION}": with_header(
        b"\x91\xa9WhoAreYou", version=NEWER
    ),
    "of an unknown kind came (Invalid value 'Who'": with_header(b"\x91\xa3Who"),
    "of an unknown kind came (Expected `str`, got `int`": with_header(b"\x91\x07"),
    "with wrong fields came (Expected `int`, got `str` - at `$[1]`)": with_header(b"\x92\xa8JoinDeny\xa1x"),
    "with wrong fields came (Expected `array` of at least length 2": with_header(b"\x91\xa8JoinDeny"),
    "with wrong fields came (Expected `array`, got `object`": with_header(b"\x81\xa4kind\xa9WhoAreYou"),
    "with wrong fields came (Expected `array`, got `int`": with_header(b"\x07"),
    "trailing characters": with_header(b"\x91\xa9WhoAreYou\x00"),
    "Input data was truncated": with_header(b"\x91\xa9WhoAreY"),
    "not [version, [kind, …]]": frame(b"garbage"),
    "a frame of 1 bytes came that is not": frame(b"\x92"),
    "a frame of 2 bytes came that is not": frame(bytes([0x92, VERSION])),
    "invalid start byte": with_header(b"\x91\xa3\xff\xff\xff"),
    "maximum recursion depth": with_header(b"\x92\xa9WhoAreYou" + b"\x91" * 100_000),
}


@pytest.mark.parametrize(("reason", "stream"), REFUSED.items())
def test_what_is_no_message_is_refused_with_its_reason_however_it_is_cut(reason: str, stream: bytes) -> None:
    for size in (len(stream), 1, 3) if len(stream) < 1_000 else (len(stream), 7_000):
        decoder = Decoder(RAPPEL)
        with pytest.raises(PeerError) as refusal:
            for start in range(0, len(stream), size):
                assert decoder.feed(stream[start : start + size]) == []
        assert reason in str(refusal.value)
        assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 400
        with pytest.raises(PeerError, match=r"came|announced|is no message"):  # nothing is taken any more
            decoder.feed(encode(UPDATE))
        assert decoder.buffered == 0


def test_what_a_remote_calls_its_kind_does_not_fill_the_log() -> None:
    with pytest.raises(PeerError) as refusal:
        Decoder(RAPPEL).feed(with_header(msgspec.msgpack.encode(["\n\x1b[31m" * 50_000])))
    assert len(str(refusal.value)) < 400
    assert str(refusal.value).isprintable()


def test_a_frame_that_is_too_long_is_refused_at_its_length_before_any_of_it_is_kept() -> None:
    decoder = Decoder(RAPPEL, limit=100)
    assert decoder.feed((101).to_bytes(4, "big")[:3]) == []
    with pytest.raises(PeerError, match="101 bytes was announced; the limit is 100"):
        decoder.feed((101).to_bytes(4, "big")[3:])


@given(st.integers(0, 300))
def test_the_limit_is_the_same_for_both_ends_and_exact(size: int) -> None:
    message = Profile((1, 1), bytes(size), ())
    length = len(encode(message)) - LENGTH_BYTES
    assert Decoder(RAPPEL, limit=length).feed(encode(message, limit=length)) == [message]
    with pytest.raises(UsageError, match=f"a Profile message takes {length:,} bytes; frames hold {length - 1:,}"):
        encode(message, limit=length - 1)
    with pytest.raises(PeerError, match="was announced"):
        Decoder(RAPPEL, limit=length - 1).feed(encode(message))


def test_what_no_frame_can_hold_is_our_own_mistake() -> None:
    with pytest.raises(UsageError, match="a Pull message holds what no frame can"):
        encode(Pull(2**64, 0))
    with pytest.raises(UsageError, match="a Pull message holds what no frame can"):
        encode(Pull(object(), 0))  # type: ignore[arg-type]


class Ping2(Message, frozen=True, tag="Ping"):
    """Another one that says it is a Ping."""


def test_messages_that_could_be_mistaken_for_each_other_are_refused_from_the_start() -> None:
    with pytest.raises(UsageError, match="cannot be told apart"):
        Decoder(Ping | Ping2)


@pytest.mark.parametrize("limit", [-1, 0, 2, 2**32])
def test_a_limit_that_no_frame_keeps_is_refused(limit: int) -> None:
    with pytest.raises(UsageError, match="cannot be kept"):
        Decoder(RAPPEL, limit=limit)


def test_a_module_without_messages_is_refused() -> None:
    with pytest.raises(UsageError, match=r"grapevine\.net\.wire defines no messages"):
        messages_in(wire)


# Memory

LIMIT = 1 << 16
GREEDY = {
    "announces 4 billion feeds": with_header(b"\x95\xa4Ping\x92\x01\x01\xc2\xdd\xff\xff\xff\xff\x01"),
    "announces a payload of 4 GB": with_header(b"\x94\xa6Update\x01\x01\xc6\xff\xff\xff\xff\x01"),
    "nested announcements": with_header(b"\x92\xa9WhoAreYou" + b"\xdd\xff\xff\xff\xff" * 10_000),
    "the most objects for a byte": with_header(
        b"\x96\xa4Join\x01\xdc" + (LIMIT - 20).to_bytes(2, "big") + b"\x01" * (LIMIT - 20) + b"\x01\x01\xc2"
    ),
    "never ends": (LIMIT - 1).to_bytes(4, "big") + bytes(LIMIT - 2),
}


@pytest.mark.parametrize("stream", GREEDY.values(), ids=GREEDY.keys())
def test_memory_is_bounded_by_the_limit_whatever_sizes_a_frame_announces(stream: bytes) -> None:
    decoder = Decoder(RAPPEL, limit=LIMIT)
    tracemalloc.start()
    try:
        for start in range(0, len(stream), 1_000):
            decoder.feed(stream[start : start + 1_000])
    except PeerError:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert decoder.buffered < LIMIT + LENGTH_BYTES
    assert most < 50 * LIMIT


# Fuzz: garbage, and frames that were frames before somebody touched them


def seeds(random: Random) -> list[bytes]:
    """Valid frames of most shapes."""
    numbers = tuple(random.getrandbits(random.choice([3, 7, 15, 31, 63])) for _ in range(8))
    return [
        encode(message)
        for message in (
            UPDATE,
            Ping((1, 2), True, numbers, numbers),
            Profile((1, 300), random.randbytes(200), (1.5, -2.5)),
            Join(numbers[0], (0.5, 1.0), 3, 4, True, 2.5),
            Pull(1, 2, numbers),
            WhoAreYou(),
        )
    ]


def spoil(random: Random, valid: bytes) -> bytes:
    """A frame with a wrong byte, a byte more or less, an end cut off, or nothing but noise."""
    body = bytearray(valid[LENGTH_BYTES:])
    place = random.randrange(len(body))
    match random.randrange(6):
        case 0:
            return frame(random.randbytes(random.randrange(1, 60)))
        case 1:
            body[place] ^= 1 << random.randrange(8)
        case 2:
            body[place] = random.choice(b"\x80\x90\xc0\xc1\xc4\xc6\xca\xcf\xd4\xd9\xdb\xdd\xdf\xff")
        case 3:
            body[place:place] = random.randbytes(random.randrange(1, 5))
        case 4:
            del body[place:]
        case _:
            return random.randbytes(random.randrange(1, 60))  # without a length of its own
    return frame(bytes(body))


def fuzz(frames: int, seed: int) -> tuple[int, float]:
    """Frames that a decoder refused, of so many, and frames a second (spoiling them not counted)."""
    random = Random(seed)
    refused, seconds, left = 0, 0.0, frames
    while left:
        valid = seeds(random)
        spoilt = [spoil(random, random.choice(valid)) for _ in range(min(left, 10_000))]
        left -= len(spoilt)
        began = time.perf_counter()
        for stream in spoilt:
            decoder = Decoder(RAPPEL, limit=LIMIT)
            try:
                decoder.feed(stream)
            except PeerError:
                refused += 1
            assert decoder.buffered <= len(stream)
        seconds += time.perf_counter() - began
    return refused, frames / seconds


def test_twenty_thousand_spoilt_frames_raise_nothing_but_peer_errors() -> None:
    refused, _ = fuzz(20_000, seed=1)
    assert 10_000 < refused < 20_000  # some are still messages, or wait for more


@pytest.mark.slow
def test_a_million_spoilt_frames_raise_nothing_but_peer_errors(record_property: Any) -> None:
    refused, speed = fuzz(1_000_000, seed=2)
    record_property("frames_per_second", round(speed))
    print(f"{refused:,} of 1,000,000 refused, {speed:,.0f} frames/s")
    assert 500_000 < refused < 1_000_000


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_noise_in_any_pieces_raises_nothing_but_peer_errors(noise: list[bytes]) -> None:
    decoder = Decoder(RAPPEL, limit=LIMIT)
    for piece in noise:
        try:
            decoder.feed(piece)
        except PeerError:
            assert decoder.buffered == 0
