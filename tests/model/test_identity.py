"""Signatures of events (Rappel §4.1): only the topic's publisher can make them, and for one event each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.identity import EventSignatures, key_from

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
