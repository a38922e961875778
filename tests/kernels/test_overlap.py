from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels import overlap
from grapevine.model.workload import Workload
from tests import naive

interests = st.lists(st.sets(st.integers(0, 11), min_size=1, max_size=8), min_size=2, max_size=15)


def build(wanted: list[set[int]]) -> Workload:
    pairs = [(node, topic) for node, topics in enumerate(wanted) for topic in topics]
    return Workload.from_pairs(*zip(*pairs, strict=True), node_count=len(wanted), topic_count=12)


def arrays(workload: Workload) -> overlap.Interests:
    by_node, by_topic = workload.node_topics, workload.topic_nodes
    return overlap.Interests.of(by_node.starts, by_node.columns, by_topic.starts, by_topic.columns)


@given(interests, st.integers(1, 6))
def test_tdi_is_the_mean_of_the_largest_intersections(wanted: list[set[int]], d: int) -> None:
    built = arrays(build(wanted))
    for node in range(len(wanted)):
        assert overlap.top_intersection(node, d, built) == pytest.approx(naive.tdi(wanted, node, d))
        assert not built.shared.any(), "scratch is left clean"


@given(interests)
def test_friends_cover_greedily(wanted: list[set[int]]) -> None:
    built = arrays(build(wanted))
    covered = np.empty(4, np.int64)
    for node in range(len(wanted)):
        coverable = overlap.cover_by_friends(7, node, built, covered)
        expected = naive.covered_by_friends(wanted, node, 4, partial(naive.draw, 7, 0, node))
        assert covered.tolist() == expected
        assert coverable == len(wanted[node] & set().union(*(w for i, w in enumerate(wanted) if i != node)))
        assert not built.shared.any(), "scratch is left clean"


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_jaccard_is_common_over_all(a: set[int], b: set[int]) -> None:
    fast = overlap.jaccard(np.array(sorted(a), np.int32), np.array(sorted(b), np.int32))
    assert fast == pytest.approx(len(a & b) / len(a | b) if a | b else 0.0)
