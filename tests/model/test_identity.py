"""Signatures of events (Rappel §4.1): only the topic's publisher can make them, and for one event each."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import EventSignatures, PeerId, SignedEvent, key_from, new_key

ALICE, BOB = key_from("alice"), key_from("bob")
NUMBERS = st.integers(0, 2**64 - 1)
SIGNS = EventSignatures(dict.fromkeys(range(10), ALICE), lambda topic: ALICE.public_key())
BOBS = EventSignatures(dict.fromkeys(range(10), BOB), lambda topic: BOB.public_key())


@given(st.integers(0, 9), NUMBERS, st.binary())
def test_what_the_publisher_signs_is_verified_and_nobody_elses(topic: int, sequence: int, payload: bytes) -> None:
    signature = SIGNS.sign(topic, sequence, payload)
    assert len(signature) == 64
    assert SIGNS.verify(topic, sequence, payload, signature)
    assert not BOBS.verify(topic, sequence, payload, signature)
    assert not SIGNS.verify(topic, sequence, payload, BOBS.sign(topic, sequence, payload))


Event = tuple[int, int, bytes]


@given(*2 * [st.tuples(st.integers(0, 9), NUMBERS, st.binary(max_size=20))])
def test_a_signature_is_of_one_topic_sequence_and_payload(signed: Event, other: Event) -> None:
    assert SIGNS.verify(*other, SIGNS.sign(*signed)) == (other == signed)


def test_every_part_is_signed() -> None:
    """Also where one part borrows from the next: the payload cannot take over the end of the sequence number."""
    signature = SIGNS.sign(1, 2, b"\x03news")
    for other in ((2, 2, b"\x03news"), (1, 3, b"\x03news"), (1, 2, b"\x03new"), (1, 2 << 8 | 3, b"news"), (1, 2, b"")):
        assert not SIGNS.verify(*other, signature)


@given(st.binary(max_size=100))
def test_what_is_no_signature_is_refused(content: bytes) -> None:
    assert not SIGNS.verify(1, 1, b"news", content)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_numbers_that_no_event_has_are_refused(number: int) -> None:
    """They come from the network, where anybody may send anything."""
    signature = SIGNS.sign(1, 1, b"news")
    assert not SIGNS.verify(1, number, b"news", signature)
    assert not SIGNS.verify(number, 1, b"news", signature)


def test_the_same_secret_is_the_same_key() -> None:
    again = EventSignatures({1: key_from("alice")}, lambda topic: ALICE.public_key())
    assert again.sign(1, 7, b"news") == SIGNS.sign(1, 7, b"news")
    assert again.sign(1, 7, b"news") != BOBS.sign(1, 7, b"news")


def test_who_does_not_publish_a_topic_cannot_sign_its_events() -> None:
    with pytest.raises(KeyError):
        SIGNS.sign(10, 1, b"news")


# Events that anybody can check

ALICE_ID, BOB_ID = (PeerId.of(key.public_key().public_bytes_raw()) for key in (ALICE, BOB))


def test_a_peer_is_the_hash_of_its_key_and_its_address_the_beginning_of_it() -> None:
    assert len(ALICE_ID.full) == 32
    assert str(ALICE_ID) == ALICE_ID.full.hex()
    assert ALICE_ID.address == int(str(ALICE_ID)[:16], 16) < 2**64
    assert PeerId.parse(str(ALICE_ID)) == ALICE_ID != BOB_ID
    assert PeerId.of(new_key().public_key().public_bytes_raw()) != PeerId.of(new_key().public_key().public_bytes_raw())


@pytest.mark.parametrize("text", ["", "alice", "ab" * 31, "ab" * 33, "zz" * 32])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no peer id; give the 64 hexadecimal digits"):
        PeerId.parse(text)


@given(NUMBERS, NUMBERS, st.binary())
def test_anybody_can_check_who_published_a_signed_event(topic: int, sequence: int, payload: bytes) -> None:
    event = SignedEvent.sign(ALICE, topic, sequence, payload)
    arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=SignedEvent)
    assert arrived.check() == arrived.check(ALICE_ID) == ALICE_ID
    with pytest.raises(PeerError, match=f"is by {ALICE_ID}, not by {BOB_ID}"):
        arrived.check(BOB_ID)
    assert SignedEvent.unseal(topic, sequence, payload, event.seal) == event


CHANGES = {
    "another key": {"key": BOB.public_key().public_bytes_raw()},
    "no key": {"key": b""},
    "a key that is none": {"key": b"\xff" * 32},
    "another topic": {"topic": 2},
    "no topic": {"topic": -1},
    "another sequence": {"sequence": 8},
    "no sequence": {"sequence": 2**64},
    "another payload": {"payload": b"new"},
    "no signature": {"signature": b""},
    "another signature": {"signature": b"\1" * 64},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_signed_event_that_was_changed_is_refused(change: dict[str, object]) -> None:
    event = msgspec.structs.replace(SignedEvent.sign(ALICE, 1, 7, b"news"), **change)
    with pytest.raises(PeerError, match="is not signed by"):
        event.check()
    with pytest.raises(PeerError):
        event.check(ALICE_ID)


def test_what_has_a_number_of_more_than_64_bits_cannot_be_signed() -> None:
    with pytest.raises(UsageError, match="numbers have 64 bits"):
        SignedEvent.sign(ALICE, 1, 2**64, b"")


def test_a_key_never_signs_what_could_pass_for_a_handshake() -> None:
    """TLS 1.3 begins what it signs with 64 spaces (RFC 8446 §4.4.3); so would this event, were it signed bare."""
    spaces = int.from_bytes(b" " * 8, "big")
    payload = b" " * 48 + b"TLS 1.3, client CertificateVerify\0" + bytes(32)
    bare = EventSignatures({spaces: ALICE}, lambda topic: ALICE.public_key()).sign(spaces, spaces, payload)
    assert SignedEvent.sign(ALICE, spaces, spaces, payload).signature != bare
    ALICE.public_key().verify(bare, b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + bytes(32))
