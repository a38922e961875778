"""Similar interests, against what can be seen at once."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine.metrics.similarity import coverage_by_subscriptions, mean_top_intersection, share_covered
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


def test_coverage_is_told_by_the_number_of_topics() -> None:
    """Rappel Fig. 1b: three users of five topics, of whom one shares four with nobody; two of ten, alike."""
    few, many = [{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 5, 6, 7, 8}], [set(range(20, 30))] * 2
    found = coverage_by_subscriptions(workload_of([*few, *many], 30), 1)
    assert found == {5: pytest.approx((1 + 1 + 0.2) / 3), 10: 1.0}


def test_the_seed_chooses_who_is_asked() -> None:
    """Of twenty users one is asked: ten have a twin, ten have nobody."""
    twins = [set(range(5 * (i // 2), 5 * (i // 2) + 5)) for i in range(10)]
    loners = [set(range(100 + 5 * i, 105 + 5 * i)) for i in range(10)]
    workload = workload_of([*twins, *loners], 150)
    assert {share_covered(workload, 1, nodes=1, seed=seed) for seed in range(20)} == {0.0, 1.0}
