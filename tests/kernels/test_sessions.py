"""Sessions that alternate: their order, their lengths, and their share of the time."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine.kernels.sessions import alternate

UP, DOWN, DURATION = 30.0, 10.0, 4_000.0


def test_sessions_of_a_node_follow_each_other_and_only_the_last_has_no_end() -> None:
    nodes, joined, left = alternate(3, 5, 25, UP, DOWN, DURATION)
    assert sorted(set(nodes.tolist())) == list(range(5, 25))
    for node in range(5, 25):
        begin, end = joined[nodes == node], left[nodes == node]
        assert np.all(end[:-1] < begin[1:]) and np.all(begin[:-1] < end[:-1])
        assert not np.isnan(end[:-1]).any() and (np.isnan(end[-1]) or end[-1] < DURATION)


def test_a_nodes_sessions_do_not_depend_on_the_others() -> None:
    whole, part = alternate(3, 0, 20, UP, DOWN, DURATION), alternate(3, 12, 13, UP, DOWN, DURATION)
    mine = whole[0] == 12
    assert part[0].tolist() == [12] * int(mine.sum())
    assert np.array_equal(whole[1][mine], part[1])
    assert np.array_equal(whole[2][mine], part[2], equal_nan=True)


def test_a_node_is_there_for_its_share_of_the_time_from_the_start_on() -> None:
    nodes, joined, left = alternate(1, 0, 2_000, UP, DOWN, DURATION)
    there = np.where(np.isnan(left), DURATION, left) - joined
    assert there.sum() / (2_000 * DURATION) == pytest.approx(UP / (UP + DOWN), abs=0.005)
    assert len(set(nodes[joined == 0.0].tolist())) / 2_000 == pytest.approx(0.75, abs=0.03)
