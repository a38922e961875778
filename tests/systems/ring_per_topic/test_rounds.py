"""A ring per topic, SpiderCast's rival: the rings of those who are there, and each link once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from grapevine import Workload, simulate
from grapevine.sim.churn import mass_failure
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.sim.snapshot import links_of
from tests.spidercast_world import QUICK, workload_of


def test_rings_on_a_small_workload_are_those_drawn_by_hand() -> None:
    """Six nodes, named here by their places in the order of ids; 0-2 and 2-3 serve two rings and are there once."""
    at = np.argsort(Workload.from_pairs([0], [0], node_count=6, topic_count=1).node_ids).tolist()
    rings = {0: [0, 2, 3, 5], 1: [0, 2, 3], 2: [1, 4], 3: [1]}  # topic 4 has nobody
    nodes, topics = zip(*((at[place], topic) for topic, ring in rings.items() for place in ring), strict=True)
    workload = Workload.from_pairs(nodes, topics, node_count=6, topic_count=5)
    done = simulate("ring-per-topic", workload, rounds=2, run=QUICK)
    links = zip(done.links["source"].to_pylist(), done.links["target"].to_pylist(), strict=True)
    hand = {(0, 2), (2, 3), (3, 5), (5, 0), (3, 0), (1, 4), (4, 1)}
    assert sorted(links) == sorted((at[a], at[b]) for a, b in hand)
    degree = done.nodes["degree"].to_pylist()
    assert [degree[node] for node in at] == [3, 1, 2, 3, 1, 2]


def test_the_rings_of_those_who_are_there_and_no_other_links_make_the_overlay() -> None:
    workload = workload_of(80, 25, 3, 6)
    engine = Rounds(
        "ring-per-topic", workload, make_config("ring-per-topic", {}), schedule=mass_failure(80, share=0.3, round=2)
    )
    for _ in range(3):
        engine.step()
    expected: set[frozenset[int]] = set()
    for topic in range(25):
        there = [p for p in workload.subscribers_of(topic).tolist() if engine.network.alive[p]]
        ring = sorted(there, key=lambda p: int(workload.node_ids[p]))
        expected |= {frozenset(pair) for pair in pairwise([*ring, *ring[:1]]) if len(ring) > 1}
    links = links_of(engine)
    pairs = list(zip(links["source"].tolist(), links["target"].tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert {frozenset(pair) for pair in pairs} == expected
    assert engine.network.neighbours().sizes().sum() == 2 * len(expected)
