"""What Trellis promises of a whole network: the bound, one root a cluster, ways that fall, no relay without need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine import Workload, simulate
from grapevine.blocks.views import NOBODY
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.sim.snapshot import draw_topic
from grapevine.synthetic import generate
from grapevine.systems.trellis.rounds import Trellis
from grapevine.systems.trellis.rules import rank_of

NODES, K = 60, 6


def workload_of(seed: int = 1) -> Workload:
    return generate(
        "vitis-low", nodes=NODES, topics=40, subscriptions_per_node=8, buckets=10, buckets_per_node=4, seed=seed
    )


def grown(rounds: int = 60, schedule: Schedule | None = None, seed: int = 1, **parameters: Any) -> Rounds:
    engine = Rounds(
        "trellis", workload_of(seed), make_config("trellis", {"most_links": K, **parameters}), schedule=schedule
    )
    for _ in range(rounds):
        engine.step()
    return engine


def trellis_of(engine: Rounds) -> Trellis:
    assert isinstance(engine.system, Trellis)
    return engine.system


def rows_of(engine: Rounds) -> list[list[int]]:
    rows = engine.network.rows.links.reshape(engine.network.size, -1).tolist()
    return [[q for q in row if q != NOBODY] for row in rows]


def overlay_of(engine: Rounds) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(engine.network.alive).tolist())
    alive = engine.network.alive
    graph.add_edges_from((p, q) for p, row in enumerate(rows_of(engine)) for q in row if alive[p] and alive[q])
    return graph


def entries(engine: Rounds) -> Iterator[tuple[int, int, int]]:
    """Entry, node and topic of everybody who is there."""
    profiles = engine.network.profiles
    for p in np.flatnonzero(engine.network.alive).tolist():
        for e in range(profiles.starts[p], profiles.starts[p + 1]):
            yield e, p, int(profiles.topics[e])


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Who comes, leaves and crashes in twenty rounds, with sessions as short as a round."""
    here = set(draw(st.sets(st.integers(0, NODES - 1), min_size=20)))
    first, changes = np.array(sorted(here), np.int32), {}
    for now in sorted(draw(st.sets(st.integers(2, 20), max_size=6))):
        gone = draw(st.sets(st.sampled_from(sorted(here)), max_size=len(here) // 2))
        come = draw(st.sets(st.sampled_from(sorted(set(range(NODES)) - here) or [-1]), max_size=20)) - {-1}
        leaves = {p for p in gone if p % 2}
        here = here - gone | come
        parts = (np.array(sorted(some), np.int32) for some in (come, leaves, gone - leaves))
        changes[now] = Change(*parts)
    return Schedule(first, changes)


@settings(max_examples=40, deadline=None)
@given(schedules(), st.integers(5, 7))
def test_nobody_ever_has_more_links_than_the_bound_and_links_are_in_both_rows(schedule: Schedule, k: int) -> None:
    engine = grown(0, schedule, most_links=k)
    for _ in range(22):
        engine.step()
        rows, alive = rows_of(engine), engine.network.alive
        for p, row in enumerate(rows):
            assert len(row) == len(set(row)) <= k and p not in row
            assert not row or alive[p]
            assert all(p in rows[q] for q in row if alive[q])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_labels_at_rest_have_the_lowest_root_of_the_cluster_and_the_fewest_hops(seed: int) -> None:
    """Judged by networkx, once links have not changed for a while."""
    engine = grown(60, seed=seed)
    before = rows_of(engine)
    for _ in range(25):
        engine.step()
    assert rows_of(engine) == before, "links were to be at rest"
    overlay, labels = overlay_of(engine), trellis_of(engine).labels
    entry = {(p, t): e for e, p, t in entries(engine)}
    for t in range(40):
        members = [p for p, topic in entry if topic == t]
        for cluster in nx.connected_components(overlay.subgraph(members)):
            root = min(cluster, key=lambda p: int(rank_of(t, p)))
            hops = nx.single_source_shortest_path_length(overlay.subgraph(cluster), root)
            for p in cluster:
                e = entry[p, t]
                assert (labels.root[e], labels.hops[e], labels.rank[e]) == (root, hops[p], rank_of(t, root))
                parent = int(labels.parent[e])
                assert parent == NOBODY if p == root else hops[parent] == hops[p] - 1


def test_a_bridge_leads_to_a_lower_rank_and_its_node_does_not_want_the_topic() -> None:
    engine = grown(85)
    overlay, labels = overlay_of(engine), trellis_of(engine).labels
    rank, chosen = {(p, t): int(labels.rank[e]) for e, p, t in entries(engine)}, 0
    for e, p, t in entries(engine):
        bridge = int(labels.choice_bridge[e])
        if labels.choice_member[e] == p and bridge != NOBODY:
            chosen += 1
            assert (bridge, t) not in rank and overlay.has_edge(p, bridge)
            assert min(rank[q, t] for q in overlay[bridge] if (q, t) in rank) < rank[p, t]
    assert chosen > 0


@pytest.mark.parametrize("parameters", [{}, {"bridges": False}, {"bridges": False, "probes": False}])
def test_every_subscriber_is_reached_once_and_every_relay_is_between_two_others(parameters: dict[str, Any]) -> None:
    engine = grown(85, **parameters)
    events = engine.publish(np.arange(40, dtype=np.int32)).events
    assert events["reached"].tolist() == events["subscribers"].tolist()
    assert events["duplicate"].sum() == 0 and events["unwanted"].tolist() == events["relays"].tolist()
    assert events["payloads"].tolist() == (events["wanted"] + events["relays"]).tolist()
    for t in range(40):
        nodes, links = draw_topic(engine, t)
        tree = nx.Graph(zip(links["source"], links["target"], strict=True))
        assert nx.is_tree(tree)
        relays = [n for n, role in zip(nodes["node"], nodes["role"], strict=True) if role != "subscriber"]
        assert all(tree.degree(n) >= 2 for n in relays)
        assert all(nx.number_connected_components(tree.subgraph(set(tree) - {n})) >= 2 for n in relays)


def test_interests_may_change_in_every_round() -> None:
    engine = grown(20)
    random = np.random.default_rng(4)
    for _ in range(15):
        for node, topic in random.integers([NODES, 40], size=(5, 2)).tolist():
            (engine.subscribe if random.random() < 0.5 else engine.unsubscribe)(node, topic)
        engine.step()
        assert len(trellis_of(engine).labels.root) == len(engine.network.profiles.topics)
    for _ in range(50):
        engine.step()
    events = engine.publish(np.arange(40, dtype=np.int32)).events
    assert events["reached"].tolist() == events["subscribers"].tolist()


@pytest.mark.parametrize("system", ["vitis", "opt", "omen", "spidercast", "trellis"])
def test_a_tree_reaches_whom_a_flood_reaches_with_fewer_payloads(system: str) -> None:
    """Of every system whose graphs have more edges than an event needs; ids are counted apart."""
    flood, tree = (simulate(system, workload_of(), rounds=30, dissemination=way) for way in ("flood", "tree"))
    assert tree.events["reached"].equals(flood.events["reached"]) and tree.links.equals(flood.links)
    ids, payloads, relays = (tree.events[name].to_numpy() for name in ("ids", "payloads", "relays"))
    assert tree.events["duplicate"].to_numpy().sum() == 0 < ids.sum()
    assert (payloads == tree.events["wanted"].to_numpy() + relays).all()
    assert (relays <= flood.events["relays"].to_numpy()).all()
    heard = sum(flood.events[name].to_numpy() for name in ("wanted", "duplicate", "unwanted"))
    assert (flood.events["ids"].to_numpy() == heard).all()
