"""Newscast: what a cache may hold, that it stays fresh, and that it forgets the dead."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.network import Network
from grapevine.blocks.rows import empty_rows
from grapevine.blocks.sampling import sample_round
from grapevine.blocks.views import NOBODY, SAMPLE_TIES, group_contacts
from grapevine.kernels.rng import absorb, draw
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


# Nodes whose last bits are alike have the same stamp in a merge: more of them than of others.
numbers = st.sampled_from([4096 * i + j for i in range(8) for j in range(3)] + list(range(3, 40)))
entries = st.lists(st.tuples(numbers, st.integers(0, 9)), unique_by=lambda entry: entry[0], max_size=24)


@given(st.integers(0, 24), st.lists(entries, min_size=2, max_size=9), st.data())
def test_the_freshest_of_all_caches_stay_and_lots_decide_in_the_last_age(
    size: int, caches: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Against plain lists: any caches, whoever calls whom."""
    count, now, seed = len(caches), 10, 3
    nodes = data.draw(st.lists(numbers, min_size=count, max_size=count, unique=True))
    partner = data.draw(st.lists(st.integers(NOBODY, count - 1), min_size=count, max_size=count))
    partner = [NOBODY if q == p else q for p, q in enumerate(partner)]
    caches = [sorted(cache, key=lambda entry: -entry[1])[:size] for cache in caches]
    rows = empty_rows(np.zeros(count, np.int64), size, 0, {})
    for p, cache in enumerate(caches):
        for i, (node, heard) in enumerate(cache):
            rows.cache[p, i], rows.cache_heard[p, i] = node, heard
    alive = np.ones(max(nodes) + 1, np.bool_)
    views, contacts = rows.views(np.array(nodes, np.int32), alive, alive), np.array(partner, np.int32)
    out = np.full((count, size), 77, np.int32), np.zeros((count, size), np.int32)
    sample_round(seed, now, (0, count), views, contacts, group_contacts(contacts), out)
    for p in range(count):
        met = [q for q in (partner[p], *(q for q in range(count) if partner[q] == p)) if q != NOBODY]
        expected = freshest(nodes[p], [nodes[q] for q in met], [caches[q] for q in (p, *met)], size, (seed, now))
        kept = [entry for entry in zip(out[0][p].tolist(), out[1][p].tolist(), strict=True) if entry[0] != NOBODY]
        assert kept == expected
        assert (out[0][p][len(kept) :] == NOBODY).all()


def freshest(
    me: int, met: list[int], caches: list[list[tuple[int, int]]], size: int, draws: tuple[int, int]
) -> list[tuple[int, int]]:
    """Those just met, then age by age in the order of caches; in the age that does not fit the largest hashes."""
    (seed, now), kept = draws, dict[int, int]()
    offers = [(node, now) for node in met] + [entry for cache in caches for entry in cache]
    for age in range(now, -1, -1):
        new = list(dict.fromkeys(node for node, heard in offers if heard == age and node != me and node not in kept))
        if len(kept) + len(new) > size:
            state = np.uint64(draw(seed, now, me, SAMPLE_TIES))
            lots = {node: int(absorb(state, np.uint64(node))) >> 33 for node in new}
            new = sorted(new, key=lambda node: -lots[node])[: size - len(kept)]
        kept |= dict.fromkeys(new, age)
        if len(kept) == size:
            break
    return list(kept.items())
