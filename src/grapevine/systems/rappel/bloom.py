"""Bloom filters (1970) as whole numbers, so that `&`, `|` and `bit_count` are all the arithmetic there is.

Rappel §2.2: 1,024 bits, three hash functions. Numbers of this length cost 50 – 100 ns an operation in Python, less than
handing them to compiled code would.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

BITS = 1_024
HASHES = 3
BYTES = BITS // 8


def mask(key: str) -> int:
    """The bits that stand for a key."""
    digest = blake2b(key.encode(), digest_size=2 * HASHES).digest()
    found = 0
    for i in range(HASHES):
        found |= 1 << int.from_bytes(digest[2 * i : 2 * i + 2], "big") % BITS
    return found


def bloom_of(keys: Iterable[str]) -> int:
    """The filter that holds these keys."""
    bloom = 0
    for key in keys:
        bloom |= mask(key)
    return bloom


def may_hold(bloom: int, bits: int) -> bool:
    """Whether a key with these bits is in the filter, or seems to be."""
    return bloom & bits == bits


def to_bytes(bloom: int) -> bytes:
    """The filter as it travels in a `Profile`."""
    return bloom.to_bytes(BYTES, "big")


def from_bytes(content: bytes) -> int:
    """The filter in a `Profile` that came; bytes of any length make one, since strangers may send anything."""
    return int.from_bytes(content, "big")


def false_positive_rate(keys: int, probes: int, *, name: str, per_filter: int = 500) -> float:
    """How often filters of so many keys seem to hold one that they do not; measured, with a new filter now and then."""
    wrong, bloom = 0, 0
    for probe in range(probes):
        if probe % per_filter == 0:
            bloom = bloom_of(f"{name} {probe} {key}" for key in range(keys))
        wrong += may_hold(bloom, mask(f"{name} {probe} other"))
    return wrong / probes
