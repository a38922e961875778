"""Signatures refuse nobody who could win, and nearly everybody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.profiles import Profiles, make_profiles
from grapevine.blocks.sights import new_sights
from grapevine.kernels.jit import njit
from grapevine.synthetic import generate
from grapevine.systems.vitis.signatures import ID_WORD, bar_of, make_signatures, new_eight, sift


@njit
def passing(p: int, least: int, profiles: Profiles, signatures: Any, out: Any) -> int:
    count = len(profiles.mass)
    nodes = np.arange(count + 7).astype(np.int32)
    bar, none = bar_of(least), (new_sights(1), 0, out)
    return sift(p, (0, count), nodes, bar, signatures, profiles.starts, new_eight(), (out, 0), none)[0]


def profiles_of(interests: list[set[int]], rates: list[float]) -> Profiles:
    starts = np.concatenate([[0], np.cumsum([len(topics) for topics in interests])]).astype(np.int64)
    columns = np.array([topic for topics in interests for topic in sorted(topics)], np.int32)
    return make_profiles(np.arange(len(interests), dtype=np.uint64) << np.uint64(40), starts, columns, np.array(rates))


def key_of(p: int, q: int, profiles: Profiles, interests: list[set[int]], tie: int) -> int:
    """Eq. 1 as a preference, in whole numbers."""
    weights = [int(weight) for weight in profiles.weights]
    common = sum(weights[topic] for topic in interests[p] & interests[q])
    union = sum(weights[topic] for topic in interests[p] | interests[q])
    return int((common / union if union else 0.0) * 2147483648.0) << 31 | tie


TOPICS = 1_500  # four times the bits of a signature, so that topics share bits
interests = st.lists(st.sets(st.integers(0, TOPICS - 1), max_size=60), min_size=2, max_size=8)


@given(interests, st.booleans(), st.integers(0, 2**31 - 1), st.data())
def test_whoever_exceeds_the_bar_survives(wanted: list[set[int]], equal: bool, tie: int, data: st.DataObject) -> None:
    """The bar is the key of one of the candidates, a bit lower: the closest call there is."""
    rates = [1.0] * TOPICS if equal else [1.0 / (1 + topic % 97) for topic in range(TOPICS)]
    profiles = profiles_of(wanted, rates)
    signatures, out = make_signatures(profiles), np.empty(len(wanted) + 8, np.int32)
    worst = data.draw(st.integers(1, len(wanted) - 1))
    least = key_of(0, worst, profiles, wanted, tie) - 1
    found = set(out[: passing(0, least, profiles, signatures, out)].tolist())
    exceeding = {q for q in range(len(wanted)) if key_of(0, q, profiles, wanted, 2**31 - 1) > least}
    assert exceeding <= found


@pytest.mark.parametrize(("exponent", "most"), [(0.0, 0.25), (1.0, 0.6)], ids=["equal rates", "unequal rates"])
def test_most_others_are_refused(exponent: float, most: float) -> None:
    """Of unequal rates only the sum is known, so that the bound is looser."""
    workload = generate("vitis-high", nodes=400, topics=1_000, buckets=20, rate_exponent=exponent, seed=1)
    interests = [set(workload.topics_of(p).tolist()) for p in range(400)]
    profiles = make_profiles(
        workload.node_ids, workload.node_topics.starts, workload.node_topics.columns, workload.rates
    )
    signatures, out, passed = make_signatures(profiles), np.empty(408, np.int32), 0
    for p in range(20):
        twelfth = sorted((key_of(p, q, profiles, interests, 0) for q in range(400) if q != p), reverse=True)[11]
        passed += passing(p, twelfth, profiles, signatures, out)
    assert 20 * 12 <= passed < 20 * 400 * most


def test_a_line_has_the_ring_id_and_begins_a_cache_line() -> None:
    profiles = profiles_of([{1}, {12, 34}, set()], [1.0] * TOPICS)
    lines = make_signatures(profiles).lines
    assert lines.ctypes.data % 64 == 0
    assert lines[ID_WORD::8].tolist() == profiles.ids.tolist()
    assert [int(line[7]) for line in lines.reshape(-1, 8)] == [1 << 20, 2 << 20 | 1, 0]  # these two share a bit
