from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels.topk import largest


@given(st.lists(st.integers(-3, 40), max_size=60), st.integers(0, 20))
def test_largest_is_a_stable_sort_cut_short(keys: list[int], k: int) -> None:
    out = np.empty(max(k, 1), np.int32)
    found = largest(np.array(keys, np.int64), k, out)
    expected = sorted((at for at, key in enumerate(keys) if key >= 0), key=lambda at: -keys[at])[:k]
    assert out[:found].tolist() == expected
