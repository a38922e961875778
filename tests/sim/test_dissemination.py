"""Events on hand-made overlays of five nodes, counted by hand, and on random graphs, judged by networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.ids import distance
from tests.worlds import medium_of, publish

IDS = [0, 100, 200, 300, 400]  # node i at 100 i; the topic's id is 0, so node 0 is its rendezvous


def test_a_flooded_triangle_and_a_tail() -> None:
    #  0 - 1, 1 - 2, 2 - 0, 2 - 3; node 4 is not interested and not asked
    event, load = publish(medium_of({0: [1], 1: [2], 2: [0, 3], 4: [0]}, [0, 1, 2, 3], ids=IDS), 0)
    assert event["subscribers"] == event["reached"] == event["wanted"] == 3
    assert event["duplicate"] == 2  # 1 and 2 tell each other what both know
    assert event["unwanted"] == event["relays"] == 0
    assert (event["hops_sum"], event["hops_p50"], event["hops_max"]) == (1 + 1 + 2, 1, 2)
    assert load.tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_a_tree_of_lookups_without_flooding() -> None:
    #  4 → 2 → 1 → 0 and 3 → 1: subscribers 3 and 4 meet at 1, which is on both paths; 0 is the rendezvous
    links = {4: [2], 2: [1], 1: [0], 3: [1]}
    event, load = publish(medium_of(links, [3, 4], ids=IDS, gateways=[3, 4], floods=False), 4)
    assert (event["subscribers"], event["reached"], event["hops_sum"]) == (1, 1, 3)  # 4 - 2 - 1 - 3
    assert (event["wanted"], event["duplicate"], event["unwanted"], event["relays"]) == (1, 0, 3, 3)
    assert load[:, 2].tolist() == [1, 1, 1, 0, 0]


def test_two_clusters_joined_by_their_gateways() -> None:
    #  clusters {3, 4} and {2}; 3 and 2 are gateways and reach the rendezvous 0, the former through 1
    links = {3: [4, 1], 1: [0], 2: [0]}
    event, _ = publish(medium_of(links, [2, 3, 4], ids=IDS, gateways=[2, 3]), 4)
    assert (event["reached"], event["subscribers"]) == (2, 2)
    assert event["hops_sum"] == 1 + 4  # 4 - 3, and 4 - 3 - 1 - 0 - 2
    assert (event["relays"], event["unwanted"]) == (2, 2)


def test_a_path_between_members_is_not_paid_twice() -> None:
    #  gateway 2 looks up over its link to member 1: the link floods anyway
    event, _ = publish(medium_of({2: [1], 1: [0]}, [1, 2], ids=IDS, gateways=[2]), 2)
    assert (event["wanted"], event["duplicate"], event["unwanted"]) == (1, 0, 1)


def test_a_dead_node_swallows_what_is_sent_through_it() -> None:
    links = {4: [2], 2: [1], 1: [0], 3: [1]}
    event, _ = publish(medium_of(links, [3, 4], ids=IDS, gateways=[3, 4], floods=False, dead=[1]), 4)
    assert (event["subscribers"], event["reached"], event["unwanted"]) == (1, 0, 1)  # only 2 heard of it


def test_an_owner_that_does_not_subscribe_publishes_by_its_own_lookup() -> None:
    event, _ = publish(medium_of({4: [2], 2: [1], 1: [0]}, [1], ids=IDS, gateways=[1]), 4)
    assert (event["subscribers"], event["reached"], event["hops_sum"], event["relays"]) == (1, 1, 2, 2)


def test_newcomers_receive_but_do_not_count() -> None:
    counted = [True, True, False, True, True]
    event, _ = publish(medium_of({0: [1, 2]}, [0, 1, 2], ids=IDS), 0, counted=counted)
    assert (event["subscribers"], event["reached"], event["wanted"]) == (1, 1, 2)


@given(st.integers(2, 12), st.floats(0.05, 0.6), st.integers(0, 2**32 - 1))
def test_floods_agree_with_networkx(size: int, density: float, seed: int) -> None:
    graph = nx.gnp_random_graph(size, density, seed=seed)
    links = {node: [other for other in graph[node] if other > node] for node in graph}
    subscribers = [node for node in graph if (seed >> node) & 1 or node == 0]
    event, load = publish(medium_of(links, subscribers, ids=list(range(size))), 0)
    topic = graph.subgraph(subscribers)
    hops = nx.single_source_shortest_path_length(topic, 0)
    reached = topic.subgraph(hops)
    assert event["reached"] == len(hops) - 1
    assert event["subscribers"] == len(subscribers) - 1
    assert event["hops_sum"] == sum(hops.values())
    assert event["hops_max"] == max(hops.values())
    assert event["wanted"] + event["duplicate"] == 2 * reached.number_of_edges() - (len(hops) - 1)
    assert load.sum() == event["wanted"] + event["duplicate"]


@given(st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_lookup_trees_agree_with_networkx(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.unique(rng.integers(2**63, size=size)).tolist()
    links = {i: sorted({(i + 1) % size, (i - 1) % size, int(rng.integers(size))} - {i}) for i in range(size)}
    topic_id = int(rng.integers(2**63))
    subscribers = sorted(set(rng.integers(size, size=4).tolist()))

    def away(node: int) -> int:
        return distance(ids[node], topic_id)

    tree: nx.Graph[int] = nx.Graph()
    for node in subscribers:
        tree.add_node(node)
        while away(best := min(links[node], key=away)) < away(node):
            tree.add_edge(node, best)
            node = best
    publisher = subscribers[0]
    medium = medium_of(links, subscribers, ids=ids, topic_id=topic_id, gateways=subscribers, floods=False)
    event, load = publish(medium, publisher)
    hops = nx.single_source_shortest_path_length(tree, publisher)
    assert nx.is_tree(tree)
    assert event["reached"] == event["subscribers"] == len(subscribers) - 1
    assert event["hops_sum"] == sum(hops[node] for node in subscribers)
    assert event["relays"] == event["unwanted"] == len(tree) - len(subscribers)
    assert load.sum() == tree.number_of_edges()
