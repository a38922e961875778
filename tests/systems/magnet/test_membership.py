"""Interest-aware membership (Magnet §3.4): routes of a plain Chord, and samples that are those of the plain tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from grapevine.blocks.views import NOBODY
from grapevine.systems.magnet.membership import ControlRing, home_positions, next_position, sample_topics
from tests import naive_magnet
from tests.naive import WORD
from tests.naive_magnet import clockwise

ids = (
    st.integers(0, WORD - 1) | st.integers(0, 30) | st.integers(2**63 - 9, 2**63 + 9) | st.integers(WORD - 9, WORD - 1)
)
rings = st.sets(ids, min_size=1, max_size=14).map(sorted)


class World(NamedTuple):
    """A control ring of some nodes, the others are not there; topics and who wants them."""

    ring: list[int]
    place: dict[int, int]  # node → place on the ring
    homes: list[int]  # topic → place
    subscribers: list[list[int]]
    node_count: int


@st.composite
def worlds(draw: st.DrawFn) -> World:
    ring = draw(rings)
    size = len(ring) + draw(st.integers(0, 3))
    nodes = draw(st.permutations(range(size)))[: len(ring)]
    subscribers = draw(st.lists(st.sets(st.integers(0, size - 1)).map(sorted), min_size=1, max_size=4))
    homes = [draw(st.integers(0, len(ring) - 1)) for _ in subscribers]
    return World(ring, {node: place for place, node in enumerate(nodes)}, homes, subscribers, size)


def sampled(
    world: World, k: int, *, seed: int = 1, now: int = 1, chunks: Sequence[tuple[int, int]] | None = None
) -> list[list[int]]:
    """The samples of every topic by the kernel."""
    samples, size, _ = by_kernel(world, k, seed, now, chunks)
    return [row[:count].tolist() for row, count in zip(samples, size.tolist(), strict=True)]


def cost(world: World, k: int) -> tuple[int, int]:
    """Messages of a sampling of all topics, and the interests that they carry."""
    return by_kernel(world, k, 1, 1, None)[2]


def by_kernel(
    world: World, k: int, seed: int, sampling: int, chunks: Sequence[tuple[int, int]] | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[int, int]]:
    """Samples, how many, and what the last chunk cost."""
    place = np.full(world.node_count, NOBODY, np.int32)
    for node, at in world.place.items():
        place[node] = at
    topics = len(world.subscribers)
    starts = np.cumsum([0, *map(len, world.subscribers)]).astype(np.int64)
    columns = np.array([node for row in world.subscribers for node in row], np.int32)
    samples, size = np.full((topics, k), NOBODY, np.int32), np.full(topics, 99, np.int32)
    ring, homes = np.array(world.ring, np.uint64), np.array(world.homes, np.int64)
    cost = 0, 0
    for chunk in chunks or [(0, topics)]:
        cost = sample_topics(seed, sampling, chunk, ControlRing(ring, place, homes), (starts, columns), samples, size)
    return samples, size, cost


@given(rings, st.lists(ids, max_size=6))
def test_the_home_is_the_first_node_at_or_after_the_key(ring: list[int], keys: list[int]) -> None:
    """§3.1, by Chord's rule: the successor of the key."""
    found = home_positions(np.array(ring, np.uint64), np.array(keys, np.uint64))
    assert found.tolist() == [min(range(len(ring)), key=lambda i: clockwise(key, ring[i])) for key in keys]


@given(rings)
@example([0, 1])
@example([2**63 - 1, 2**63, 2**63 + 1])
@example([0, 2**63])
@example([5, WORD - 1])
def test_a_hop_is_that_of_a_plain_chord(ring: list[int]) -> None:
    at: NDArray[np.uint64] = np.array(ring, np.uint64)
    for here in range(len(ring)):
        for home in set(range(len(ring))) - {here}:
            assert next_position(here, home, at) == naive_magnet.next_place(here, home, ring)


def test_routes_take_at_most_a_hop_for_every_bit() -> None:
    """Stoica et al. 2001, Theorem 2: every hop halves what is left; log₂ 500 = 9 hops in all, with high probability."""
    ring = np.sort(np.random.default_rng(1).integers(0, WORD - 1, 500, np.uint64))
    hops = []
    for start in range(0, 500, 11):
        for home in range(0, 500, 13):
            at, taken = start, 0
            while at != home:
                before, at = at, next_position(at, home, ring)
                left = [clockwise(int(ring[p]), int(ring[home])) for p in (before, at)]
                assert left[1] < left[0] // 2 + 1
                taken += 1
            hops.append(taken)
    assert max(hops) <= 2 * np.log2(500)
    assert np.mean(hops) == pytest.approx(np.log2(500) / 2, abs=1)


@given(worlds(), st.integers(1, 5), st.integers(0, 99), st.integers(0, 9))
def test_samples_are_those_of_the_plain_tree(world: World, k: int, seed: int, now: int) -> None:
    assert sampled(world, k, seed=seed, now=now) == [
        naive_magnet.sample_topic(seed, now, topic, world.ring, world.place, home, k, members)
        for topic, (home, members) in enumerate(zip(world.homes, world.subscribers, strict=True))
    ]


@given(worlds(), st.integers(1, 5), st.integers(0, 99))
def test_a_sample_holds_as_many_different_subscribers_as_it_may(world: World, k: int, seed: int) -> None:
    for members, found in zip(world.subscribers, sampled(world, k, seed=seed), strict=True):
        there = set(members) & set(world.place)
        assert set(found) <= there
        assert len(set(found)) == len(found) == min(k, len(there))


@given(worlds(), st.integers(1, 5))
def test_samples_go_up_and_down_every_edge_of_the_trees(world: World, k: int) -> None:
    """§3.4: propagated bottom-up, and the result downstream."""
    edges = set()
    for topic, (home, members) in enumerate(zip(world.homes, world.subscribers, strict=True)):
        for at in (world.place[node] for node in members if node in world.place):
            while at != home:
                up = naive_magnet.next_place(at, home, world.ring)
                edges.add((topic, at, up))
                at = up
    messages, interests = cost(world, k)
    assert messages == 2 * len(edges)
    assert len(edges) <= interests <= 2 * k * len(edges)


@given(worlds(), st.integers(1, 3))
def test_topics_are_sampled_in_chunks_of_any_size_alike(world: World, k: int) -> None:
    one_by_one = [(topic, topic + 1) for topic in range(len(world.subscribers))]
    assert sampled(world, k) == sampled(world, k, chunks=one_by_one)


def test_nobody_is_sampled_where_nobody_is_there() -> None:
    world = World([10, 20, 30], {0: 0, 1: 1, 2: 2}, [0, 1, 2], [[], [3], [2]], 4)  # node 3 is not on the ring
    assert sampled(world, 2) == [[], [], [2]]


def test_every_subscriber_is_kept_equally_often() -> None:
    """§3.4: k interests uniformly at random. All twelve subscribers are one hop from the home, which is one of them."""
    ring = sorted((2**63 - steps) % WORD for steps in (0, *(2**j for j in range(11))))
    place = {node: node for node in range(12)}
    for node in range(11):
        assert naive_magnet.next_place(node, 11, ring) == 11
    topics = 3_000
    world = World(ring, place, [11] * topics, [list(range(12))] * topics, 12)
    kept = Counter(node for found in sampled(world, 4) for node in found)
    assert chisquare([kept[node] for node in range(12)]).pvalue > 1e-4
    assert sampled(world, 4, now=2) != sampled(world, 4, now=1)


def test_what_many_hops_leave_over_is_still_spread_over_all_subscribers() -> None:
    """k of 200 subscribers, most of them many hops from home: nobody is kept always, and nobody never."""
    random = np.random.default_rng(2)
    ring = np.sort(random.integers(0, WORD - 1, 200, np.uint64)).tolist()
    place, topics = {node: int(at) for node, at in enumerate(random.permutation(200))}, 2_000
    world = World(ring, place, random.integers(0, 200, topics).tolist(), [list(range(200))] * topics, 200)
    kept = Counter(node for found in sampled(world, 10) for node in found)
    assert len(kept) == 200
    assert max(kept.values()) < 5 * topics * 10 / 200
