from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.model.workload import Churn, Latency, Workload

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
    assert repr(workload) == (
        "Workload('tiny': 3 nodes, 1 topic, 2 subscriptions; 0.7 a node (at most 1), 2.0 a topic (at most 2))"
    )
    assert len(set(workload.node_ids)) == 3
    assert list(workload.node_names) == ["0", "1", "2"]


def facts(html: str) -> dict[str, str]:
    """The rows of a card, as a browser would read them."""
    cells = [[cell.text or "" for cell in row] for row in ElementTree.fromstring(html).iter("tr")]
    return {name: values[0] for name, *values in cells if values}


def test_it_shows_itself_in_a_notebook_with_shares_and_units() -> None:
    made = Workload.from_dict(
        {"ann": ["x", "y"], "bob": ["x"], "cid": []},
        rates={"x": 3, "idle": 0},
        publishers={"x": "bob"},
        name="<b>&",
    )
    assert facts(made._repr_html_()) == {
        "of a node": "1.0 in the mean, 2 at most",
        "of a topic": "1.0 in the mean, 2 at most",
        "nodes without any": "1 (33.33%)",
        "topics without any": "1 (33.33%)",
        "rates": "1.333 in the mean, 3 at most",
        "publishers": "of 1 topic (33.33%)",
    }
    assert "Workload &lt;b&gt;&amp;</b>" in made._repr_html_(), "names are no markup"


def test_it_tells_of_churn_and_latency_where_it_has_them() -> None:
    made = Workload.from_dict({"ann": ["x"], "bob": ["x"]})
    churn = Churn(np.array([0, 0, 1], np.int32), np.zeros(3), np.ones(3))
    latency = Latency(np.array([[[np.nan, 80.0], [120.0, np.nan]]], np.float32))
    told = {
        "churn": "3 sessions of 2 nodes",
        "latency": "round trips between 2 nodes in 1 slice, 100 ms in the median, 50.00% of pairs",
    }
    whole = replace(made, churn=churn, latency=latency)
    assert {name: value for name, value in facts(whole._repr_html_()).items() if name in told} == told
    assert all(f"; {name} {value}" in repr(whole) for name, value in told.items())
    assert "churn" not in repr(made) and "churn" not in made._repr_html_()
    assert "nothing known" in repr(replace(made, latency=Latency(np.full((1, 2, 2), np.nan, np.float32))))


def test_an_empty_one_has_a_card() -> None:
    assert "0 nodes, 0 topics, 0 subscriptions" in Workload.from_dict({})._repr_html_()


@pytest.mark.parametrize(("nodes", "topics"), [([3], [0]), ([-1], [0]), ([0], [1])])
def test_numbers_out_of_range_are_refused(nodes: list[int], topics: list[int]) -> None:
    with pytest.raises(UsageError, match="need to lie between"):
        Workload.from_pairs(nodes, topics, node_count=3, topic_count=1)


def relations(workload: Workload) -> set[tuple[str, str]]:
    return {
        (workload.node_names[node], workload.topic_names[topic])
        for node in range(workload.node_count)
        for topic in workload.topics_of(node)
    }


def test_a_dict_of_names_is_a_workload() -> None:
    made = Workload.from_dict(
        {"bob": ["news"], 10: ["jazz", "news", "jazz"], 9: []}, rates={"news": 2.5, "idle": 0}, publishers={"news": 9}
    )
    assert list(made.node_names) == ["9", "10", "bob"], "in natural order"
    assert list(made.topic_names) == ["idle", "jazz", "news"]
    assert relations(made) == {("bob", "news"), ("10", "jazz"), ("10", "news")}
    assert made.rates.tolist() == [0.0, 1.0, 2.5] and made.publishers.tolist() == [-1, -1, 0]
    assert made.node_ids.tolist() != Workload.from_dict({"a": [], "b": [], "c": []}).node_ids.tolist()
    empty = Workload.from_dict({})
    assert (empty.node_count, empty.topic_count) == (0, 0)


@pytest.mark.parametrize(
    ("wanted", "more", "expected"),
    [
        ([("ann", "news")], {}, "needs a dict from nodes to their topics"),
        ({"ann": "news"}, {}, r"wanted\['ann'\]='news': needs a list of topics"),
        ({"ann": 5}, {}, "needs a list of topics"),
        ({"": ["news"]}, {}, "node '': names need at least one character"),
        ({1: ["news"], "1": []}, {}, "node 1: is given as '1' and as 1"),
        ({"ann": ["x"]}, {"rates": {"x": -1}}, "needs a number, zero or more"),
        ({"ann": ["x"]}, {"publishers": {"x": "bob"}}, "publishers.*'bob': is no node"),
    ],
)
def test_names_that_cannot_be_are_one_sentence(wanted: object, more: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        Workload.from_dict(wanted, **more)  # type: ignore[arg-type]


def test_a_data_frame_is_a_workload() -> None:
    frame = pd.DataFrame({"who": ["ann", "bob", "ann"], "what": ["x", "x", "x"], "daily": [2.0, 2.0, 2.0]})
    made = Workload.from_pandas(frame, user="who", item="what", rate="daily")
    assert relations(made) == {("ann", "x"), ("bob", "x")} and made.rates.tolist() == [2.0]
    with pytest.raises(UsageError, match="the frame has no column user, item; it has who, what, daily"):
        Workload.from_pandas(frame)
    with pytest.raises(UsageError, match="column who: 1 values are missing"):
        Workload.from_pandas(pd.DataFrame({"who": ["a", None], "what": ["x", "y"]}), user="who", item="what")
    with pytest.raises(UsageError, match="has the rates 1 and 2"):
        Workload.from_pandas(pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "r": [1, 2]}), rate="r")


def test_a_graph_of_followers_is_a_workload() -> None:
    made = Workload.from_networkx(nx.DiGraph([("ann", "bob"), ("cid", "bob"), ("bob", "bob")]))
    assert relations(made) == {("ann", "bob"), ("cid", "bob")}
    assert [made.node_names[node] for node in made.publishers] == ["bob"]
    assert relations(Workload.from_networkx(nx.Graph([(1, 2)]))) == {("1", "2"), ("2", "1")}


def test_what_is_saved_is_loaded_as_it_was(tmp_path: Path) -> None:
    made = Workload.from_dict({"ann": ["x", "y"], "bob": []}, rates={"y": 3}, publishers={"x": "bob"})
    made.save(tmp_path / "w")
    loaded = Workload.load(tmp_path / "w")
    assert relations(loaded) == relations(made)
    assert (list(loaded.node_names), list(loaded.topic_names)) == (list(made.node_names), list(made.topic_names))
    assert (loaded.rates.tolist(), loaded.publishers.tolist()) == (made.rates.tolist(), made.publishers.tolist())
    with pytest.raises(UsageError, match="exists"):
        made.save(tmp_path / "w")
    Workload.from_dict({"eve": []}).save(str(tmp_path / "w"), force=True)
    assert list(Workload.load(tmp_path / "w").node_names) == ["eve"]
