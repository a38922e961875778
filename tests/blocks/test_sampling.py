"""Newscast: what a cache may hold, that it stays fresh, and that it forgets the dead."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.network import Network
from grapevine.synthetic import generate


def network_of(nodes: int, *, sample_size: int = 8, seed: int = 1) -> Network:
    workload = generate("vitis-random", nodes=nodes, topics=20, subscriptions_per_node=2)
    network = Network(workload, sample_size=sample_size, seed=seed)
    network.open_at_once(np.arange(nodes, dtype=np.int32))
    return network


def run(network: Network, rounds: int) -> None:
    for _ in range(rounds):
        network.now += 1
        network.sample()


@given(st.integers(2, 60), st.integers(1, 12), st.integers(0, 2**32))
def test_a_cache_holds_distinct_others_in_order_of_freshness(nodes: int, size: int, seed: int) -> None:
    network = network_of(nodes, sample_size=size, seed=seed)
    run(network, 6)
    for p in range(nodes):
        cache = network.views.cache[p][network.views.cache[p] >= 0].tolist()
        heard = network.views.cache_heard[p][: len(cache)].tolist()
        assert p not in cache
        assert len(set(cache)) == len(cache) <= size
        assert heard == sorted(heard, reverse=True)
        assert all(0 <= when <= network.now for when in heard)


def test_the_dead_are_forgotten_within_a_few_rounds() -> None:
    network = network_of(300, sample_size=20)
    run(network, 10)
    network.leave(np.arange(100, dtype=np.int32))
    run(network, 10)
    assert not np.isin(network.views.cache[100:], np.arange(100)).any()


def test_samples_spread_over_the_whole_network() -> None:
    """In-degrees of the random graph that Newscast keeps are balanced: nobody is unknown for long."""
    network = network_of(500, sample_size=20)
    known = np.zeros(500, np.int64)
    for _ in range(30):
        run(network, 1)
        known += np.bincount(network.views.cache.ravel(), minlength=500)
    assert known.min() > 0.5 * known.mean()
    assert known.max() < 2.0 * known.mean()
