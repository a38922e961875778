import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload

pairs = st.sets(st.tuples(st.integers(0, 19), st.integers(0, 9)), max_size=100)


@given(pairs, st.randoms())
def test_both_directions_hold_the_same_pairs_whatever_their_order(wanted: set[tuple[int, int]], random: object) -> None:
    shuffled = list(wanted)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    nodes, topics = [n for n, _ in shuffled], [t for _, t in shuffled]
    workload = Workload.from_pairs(nodes, topics, node_count=20, topic_count=10)
    by_node = {(n, int(t)) for n in range(20) for t in workload.topics_of(n)}
    by_topic = {(int(n), t) for t in range(10) for n in workload.subscribers_of(t)}
    assert by_node == by_topic == wanted
    assert all(np.all(np.diff(workload.topics_of(n)) > 0) for n in range(20))
    assert all(np.all(np.diff(workload.subscribers_of(t)) > 0) for t in range(10))


@given(pairs)
def test_rows_make_the_same_workload_as_their_pairs(wanted: set[tuple[int, int]]) -> None:
    nodes, topics = [n for n, _ in wanted], [t for _, t in wanted]
    by_pairs = Workload.from_pairs(nodes, topics, node_count=20, topic_count=10, publishers=range(10))
    by_rows = Workload.from_rows(by_pairs.node_topics, topic_count=10, publishers=range(10))
    assert (by_rows.node_count, by_rows.topic_count) == (20, 10)
    assert by_rows.topic_nodes.starts.tolist() == by_pairs.topic_nodes.starts.tolist()
    assert by_rows.topic_nodes.columns.tolist() == by_pairs.topic_nodes.columns.tolist()
    assert by_rows.rates.tolist() == [1.0] * 10 and by_rows.publishers.tolist() == list(range(10))


def test_it_says_what_it_is() -> None:
    workload = Workload.from_pairs([0, 1], [0, 0], node_count=3, topic_count=1, name="tiny")
    assert repr(workload) == "Workload('tiny': 3 nodes, 1 topics, 2 subscriptions)"
    assert len(set(workload.node_ids)) == 3
    assert list(workload.node_names) == ["0", "1", "2"]


@pytest.mark.parametrize(("nodes", "topics"), [([3], [0]), ([-1], [0]), ([0], [1])])
def test_numbers_out_of_range_are_refused(nodes: list[int], topics: list[int]) -> None:
    with pytest.raises(UsageError, match="need to lie between"):
        Workload.from_pairs(nodes, topics, node_count=3, topic_count=1)
