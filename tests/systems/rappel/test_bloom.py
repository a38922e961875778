"""Bloom filters against sets, and their false positives against Rappel §2.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.rappel.bloom import BITS, BYTES, HASHES, bloom_of, from_bytes, mask, may_hold, to_bytes

KEYS = st.lists(st.text(max_size=20), max_size=100)


@given(KEYS)
def test_a_filter_holds_all_its_keys(keys: list[str]) -> None:
    bloom = bloom_of(keys)
    assert all(may_hold(bloom, mask(key)) for key in keys)


@given(KEYS, KEYS)
def test_the_filter_of_a_union_is_the_union_of_the_filters(some: list[str], others: list[str]) -> None:
    assert bloom_of(some) | bloom_of(others) == bloom_of(some + others)


@given(st.text(max_size=20))
def test_a_key_has_at_most_three_of_1024_bits(key: str) -> None:
    assert 1 <= mask(key).bit_count() <= HASHES == 3
    assert mask(key).bit_length() <= BITS == 1_024


def test_nothing_is_in_an_empty_filter() -> None:
    assert bloom_of([]) == 0
    assert not any(may_hold(0, mask(str(number))) for number in range(1_000))


@given(KEYS)
def test_a_filter_survives_its_journey(keys: list[str]) -> None:
    sent = to_bytes(bloom_of(keys))
    assert len(sent) == BYTES == 128
    assert from_bytes(sent) == bloom_of(keys)


@pytest.mark.parametrize(("feeds", "claimed"), [(50, 0.0025), (100, 0.016), (200, 0.087)])
def test_false_positives_are_as_rare_as_the_paper_says(feeds: int, claimed: float) -> None:
    """§2.2; 400 filters, 1,000 strangers each."""
    strangers = [mask(f"http://stranger.net/{number}") for number in range(1_000)]
    found = 0
    for number in range(400):
        bloom = bloom_of(f"http://{number}.example.org/feed/{feed}" for feed in range(feeds))
        found += sum(may_hold(bloom, bits) for bits in strangers)
    assert found / 400_000 == pytest.approx(claimed, rel=0.2)


def test_all_bits_are_used_alike() -> None:
    counts = [0] * BITS
    for number in range(20_000):
        bits = mask(str(number))
        while bits:
            counts[(bits & -bits).bit_length() - 1] += 1
            bits &= bits - 1
    expected = sum(counts) / BITS
    chi = sum((count - expected) ** 2 / expected for count in counts)
    assert abs(chi - (BITS - 1)) < 5 * (2 * (BITS - 1)) ** 0.5  # a chi-square of so many degrees of freedom
