"""The ring of 64-bit ids: kernels against whole numbers without end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels.ring import clockwise, ring_distance
from grapevine.model import ids

places = st.integers(0, 2**64 - 1)


@given(places, places)
def test_ways_round_the_ring_are_those_of_plain_numbers(a: int, b: int) -> None:
    assert int(clockwise(np.uint64(a), np.uint64(b))) == (b - a) % 2**64 == ids.clockwise(a, b)
    assert int(ring_distance(np.uint64(a), np.uint64(b))) == ids.distance(a, b) <= 2**63
