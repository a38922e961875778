"""The ring, Symphony's long links and greedy lookup."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.small_world import lookup
from grapevine.model.ids import distance
from grapevine.sim.rounds import Rounds
from grapevine.synthetic import generate
from grapevine.systems.rvr.rounds import RvrConfig
from tests.worlds import node_number, views_of


@given(st.sets(st.integers(0, 2**64 - 1), min_size=3, max_size=25), st.integers(0, 2**64 - 1), st.data())
def test_on_a_true_ring_every_lookup_ends_at_the_nearest_node(ids: set[int], key: int, data: st.DataObject) -> None:
    ring = sorted(ids)
    size = len(ring)
    extra = st.integers(0, size - 1)
    links = {i: sorted({(i + 1) % size, (i - 1) % size, data.draw(extra)} - {i}) for i in range(size)}
    nearest = min(distance(node, key) for node in ring)
    path = np.empty(size + 1, np.int32)
    for start in range(size):
        count = lookup(node_number(start), np.uint64(key), 0, np.array(ring, np.uint64), views_of(links, size), path)
        away = [distance(ring[node], key) for node in path[:count]]
        assert away[-1] == nearest
        assert all(a > b for a, b in pairwise(away))


def test_a_dead_node_swallows_a_lookup_and_a_suspect_is_passed_by() -> None:
    ids = np.array([0, 100, 200, 300], np.uint64)
    views = views_of({3: [2], 2: [1], 1: [0]}, 4, dead=[1])
    path = np.empty(5, np.int32)
    assert lookup(node_number(3), np.uint64(0), 0, ids, views, path) == -3
    assert lookup(node_number(3), np.uint64(0), 1, ids, views, path) == 1  # nothing was heard since round 1


@pytest.fixture(scope="module")
def ring() -> Rounds:
    workload = generate("vitis-random", nodes=1500, topics=50, subscriptions_per_node=2)
    rounds = Rounds("rvr", workload, RvrConfig(table_size=12), seed=2)
    for _ in range(60):
        rounds.step()
    return rounds


def test_gossip_makes_an_exact_ring(ring: Rounds) -> None:
    assert ring.ring_correctness() == 1.0


def test_long_links_are_harmonic(ring: Rounds) -> None:
    """Symphony §3: log-distances are uniform between the node spacing and half the ring, to both sides alike."""
    network = ring.network
    table = network.views.links.reshape(1500, 12)[:, 2:]
    steps = (network.ids[table] - network.ids[:, None]).astype(np.uint64)
    back = (np.uint64(0) - steps).astype(np.uint64)
    away = np.minimum(steps, back).astype(np.float64) / 2.0**64
    share = np.log(away * 1500) / np.log(1500 / 2)
    quantiles = np.quantile(share, [0.1, 0.25, 0.5, 0.75, 0.9])
    assert quantiles == pytest.approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.08)
    assert (steps < back).mean() == pytest.approx(0.5, abs=0.03)


def test_lookups_are_short(ring: Rounds) -> None:
    """§III-A1: O(log² N / k); here log₂² 1500 / 10 = 11."""
    found = ring.lookup_hops()
    assert found is not None and found < 11


def test_backups_are_the_true_next_nodes(ring: Rounds) -> None:
    network = ring.network
    order = np.argsort(network.ids)
    place = np.empty(1500, np.int64)
    place[order] = np.arange(1500)
    backups = network.views.backups
    for p in range(0, 1500, 50):
        assert backups[p, :4].tolist() == order[(place[p] + np.arange(1, 5)) % 1500].tolist()
        assert backups[p, 4:].tolist() == order[(place[p] - np.arange(1, 5)) % 1500].tolist()
