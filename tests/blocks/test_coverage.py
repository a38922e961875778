"""Greedy coverage against an obvious greedy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.candidates import new_candidates, offer_all, start_over
from grapevine.blocks.coverage import choose_greedily
from grapevine.blocks.profiles import make_profiles
from tests.naive import mix
from tests.worlds import node_number

interests = st.lists(st.sets(st.integers(0, 11), max_size=8), min_size=2, max_size=12)


@given(interests, st.integers(1, 3), st.integers(1, 12), st.integers(0, 2**63 - 1))
def test_each_pick_serves_most_of_what_is_still_needed(wants: list[set[int]], k: int, room: int, state: int) -> None:
    starts = np.cumsum([0, *map(len, wants)]).astype(np.int64)
    topics = np.array([topic for wanted in wants for topic in sorted(wanted)], np.int32)
    profiles = make_profiles(np.arange(len(wants), dtype=np.uint64), starts, topics, np.ones(12))
    pool = new_candidates(len(wants))
    start_over(pool, len(wants))
    others = np.arange(len(wants), dtype=np.int32)
    offer_all(pool, others, np.zeros(len(wants), np.int32), 0, 0)
    picks, need = np.empty(room, np.int32), np.zeros(12, np.int64)
    choose_greedily(node_number(0), k, np.uint64(state), pool, profiles, (need, np.empty(len(wants), np.int64)), picks)
    found = [int(pool.nodes[at]) for at in picks if at >= 0]

    open_topics = dict.fromkeys(wants[0], k)
    expected: list[int] = []
    left = set(range(1, len(wants)))

    def worth(node: int) -> tuple[int, int]:
        tie = mix(((state ^ node) + 0x9E3779B97F4A7C15) % 2**64) >> 33
        return sum(open_topics.get(topic, 0) > 0 for topic in wants[node]), tie

    while left and len(expected) < room and worth(best := max(left, key=worth))[0] > 0:
        expected.append(best)
        left.discard(best)
        for topic in wants[best] & wants[0]:
            open_topics[topic] -= 1
    assert found == expected
    assert not need.any()
