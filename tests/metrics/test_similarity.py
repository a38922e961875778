"""Similar interests, against what can be seen at once."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine.metrics.similarity import mean_top_intersection, share_covered
from grapevine.model.workload import Workload
from tests import naive


def workload_of(wanted: list[set[int]], topics: int) -> Workload:
    pairs = [(node, topic) for node, some in enumerate(wanted) for topic in some]
    nodes, columns = np.array(pairs).T
    return Workload.from_pairs(nodes, columns, node_count=len(wanted), topic_count=topics)


def test_the_mean_intersection_is_that_of_the_plain_measure() -> None:
    random = np.random.default_rng(5)
    wanted = [set(random.choice(12, 4, replace=False).tolist()) for _ in range(20)]
    expected = np.mean([naive.tdi(wanted, node, 8) for node in range(20)])
    assert mean_top_intersection(workload_of(wanted, 12), 100) == pytest.approx(expected)


def test_twins_cover_each_other_and_loners_are_covered_by_nobody() -> None:
    twins, loner = [{0, 1, 2, 3, 4}] * 3, {5, 6, 7, 8, 9}
    assert share_covered(workload_of([*twins, loner], 10), 1) == 0.75
    assert share_covered(workload_of(twins, 5), 1) == 1.0


def test_who_has_few_topics_is_not_asked() -> None:
    workload = workload_of([{0, 1}, {0, 1}, {2}], 3)
    assert share_covered(workload, 1) is None
    assert share_covered(workload, 1, least=2) == 1.0
