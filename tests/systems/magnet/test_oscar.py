"""Oscar (Magnet §2.2): walks that sample, medians that halve, fingers that make skewed rings as short as even ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from grapevine.blocks.profiles import Profiles, make_profiles, mark, new_marks, utility
from grapevine.blocks.small_world import RING_SLOTS, hop_below
from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.csr import Columns, Starts, row_numbers
from grapevine.kernels.rng import stream
from grapevine.synthetic import generate
from grapevine.systems.magnet.oscar import MOST_PARTITIONS, Partitions, Walks, cut, mean_route, rewire, walk
from tests.naive import WORD
from tests.naive_magnet import clockwise, greedy_hop
from tests.worlds import both_ways, views_of

Links = tuple[Starts, Columns]
Ids = NDArray[np.uint64]
WALKS = Walks(5, 20, 1, np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0, np.int32))
FINGERS = 8


def over(ids: Ids, links: Links, walks: Walks = WALKS) -> Walks:
    """Walks over these links."""
    return walks._replace(ids=ids, starts=links[0], links=links[1])


def state(number: int) -> np.uint64:
    return np.uint64(stream(1, 1, number))


def even(count: int) -> Ids:
    return np.arange(count, dtype=np.uint64) * np.uint64(WORD // count)


def skewed(count: int) -> Ids:
    """Node i at 2^(20 + 43 i / count): the logarithms are even, half of the ids lie within 2^-22 of the ring."""
    places: Ids = np.exp2(20 + 43 * np.arange(count) / count).astype(np.uint64)
    places += np.arange(count, dtype=np.uint64)
    return places


KINDS: dict[str, Callable[[int], Ids]] = {"even ids": even, "skewed ids": skewed}


def ring_with_fingers(count: int, *, fingers: int = FINGERS, seed: int = 1) -> dict[int, list[int]]:
    """Node i between i - 1 and i + 1, with random others as fingers."""
    random = np.random.default_rng(seed)
    links = {}
    for i in range(count):
        ring = [(i + 1) % count, (i - 1) % count]
        others = np.setdiff1d(np.arange(count), [i, *ring])
        links[i] = ring + random.choice(others, fingers, replace=False).tolist()
    return links


def table(views: Views) -> dict[int, list[int]]:
    """Everybody's links, the free slots left out."""
    rows = np.split(views.links, views.starts[1:-1])
    return {p: [q for q in row.tolist() if q != NOBODY] for p, row in enumerate(rows)}


def rewired(
    ids: Ids,
    views: Views,
    *,
    walks: Walks = WALKS,
    profiles: Profiles | None = None,
    rounds: Sequence[int] = (1, 6, 11),
    seed: int = 1,
) -> Views:
    """The views after so many choices of fingers, each from the links that the one before has made."""
    count = len(ids)
    if profiles is None:
        profiles = make_profiles(ids, np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.ones(1))
    for now in rounds:
        out = views.links.copy(), views.heard.copy()
        rewire(seed, now, (0, count), over(ids, both_ways(table(views), count), walks), views, profiles, out)
        views = views._replace(links=out[0], heard=out[1])
    return views


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Ids, dict[int, list[int]]]:
    """A few nodes at any ids, linked at random."""
    at = draw(st.lists(st.integers(0, WORD - 1) | st.integers(0, 20), min_size=2, max_size=9, unique=True))
    other = st.integers(0, len(at) - 1)
    links = {p: sorted(draw(st.sets(other, max_size=4)) - {p}) for p in range(len(at))}
    return np.array(at, np.uint64), links


@given(graphs(), st.integers(0, 999), st.integers(0, WORD - 1), st.data())
def test_a_walk_goes_over_links_and_never_leaves_its_span(
    world: tuple[Ids, dict[int, list[int]]], seed: int, origin: int, data: st.DataObject
) -> None:
    """Fig. 1: the half before the median is sampled from inside. A shorter walk is the beginning of a longer one."""
    ids, links = world
    away = [clockwise(origin, int(id)) for id in ids]
    start = data.draw(st.integers(0, len(ids) - 1))
    first = data.draw(st.integers(0, away[start]))
    last = data.draw(st.integers(away[start] + 1, WORD))
    span, rows = (np.uint64(first), np.uint64(min(last, WORD - 1))), both_ways(links, len(ids))
    if away[start] >= int(span[1]):
        return  # nobody starts outside
    near = {p: {p, *rows[1][rows[0][p] : rows[0][p + 1]].tolist()} for p in range(len(ids))}
    walks = [over(ids, rows, WALKS._replace(length=length)) for length in range(12)]
    ends = [walk(state(seed), np.uint64(origin), span, start, some) for some in walks]
    assert ends[0] == start
    assert all(int(span[0]) <= away[p] < int(span[1]) for p in ends)
    assert all(q in near[p] for p, q in pairwise(ends))


@pytest.mark.parametrize("span", [(0, 12), (3, 10)], ids=["all", "a part"])
def test_a_long_walk_ends_at_any_node_of_its_span_equally_often(span: tuple[int, int]) -> None:
    """The graph is a ring whose node 4 knows everybody: without the Metropolis rule it would be met most often."""
    ids = np.arange(12, dtype=np.uint64) * np.uint64(100)
    links = both_ways({p: [(p + 1) % 12, 4] if p != 4 else [5] for p in range(12)}, 12)
    inside, bounds = range(*span), (np.uint64(100 * span[0]), np.uint64(100 * span[1]))
    walks = over(ids, links, WALKS._replace(length=60))
    ends = Counter(walk(state(seed), np.uint64(0), bounds, 4, walks) for seed in range(6_000))
    assert set(ends) == set(inside)
    assert chisquare([ends[p] for p in inside]).pvalue > 1e-4


def test_a_walk_without_links_stays_where_it_is() -> None:
    rows = both_ways({1: [2]}, 3)
    ids = np.arange(3, dtype=np.uint64)
    assert walk(state(1), ids[0], (np.uint64(0), np.uint64(9)), 0, over(ids, rows)) == 0


def partitions(u: int, ids: Ids, links: Links, walks: Walks = WALKS) -> tuple[list[int], list[int]]:
    found = Partitions(np.empty(MOST_PARTITIONS, np.uint64), np.empty(MOST_PARTITIONS, np.int32))
    count = cut(u, state(u), over(ids, links, walks), found)
    return found.borders[:count].tolist(), found.known[:count].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_lie_within_each_other_and_each_knows_one_of_its_nodes(kind: str) -> None:
    ids, links = KINDS[kind](512), both_ways(ring_with_fingers(512), 512)
    for u in range(0, 512, 7):
        borders, known = partitions(u, ids, links)
        assert len(borders) > 1
        assert all(inner < outer for outer, inner in pairwise([WORD, *borders]))
        away = [clockwise(int(ids[u]), int(ids[q])) for q in known]
        assert all(0 < low <= at < high for low, at, high in zip(borders, away, [WORD, *borders[:-1]], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_each_partition_holds_half_of_the_nodes_that_are_left(kind: str) -> None:
    """§2.2: p_1 estimates the median of all, p_2 that of the half before it, …; however ids are spread. Later borders
    come a little early: walks that begin at u have not forgotten it."""
    ids = KINDS[kind](512)
    links = both_ways(table(rewired(ids, views_of(ring_with_fingers(512, fingers=17), 512))), 512)
    ranks: list[list[float]] = [[] for _ in range(5)]
    for u in range(512):
        for i, q in enumerate(partitions(u, ids, links)[1][:5]):
            ranks[i].append(np.log2((q - u) % 512))
    for i, found in enumerate(ranks):
        assert len(found) > 480
        assert np.median(found) == pytest.approx(8 - i, abs=0.75)


def test_two_nodes_have_one_partition_and_a_single_one_none() -> None:
    ids = np.array([7, 3], np.uint64)
    odd = WALKS._replace(length=21)  # an even walk between two nodes ends where it began
    assert partitions(0, ids, both_ways({0: [1]}, 2), odd) == ([WORD - 4], [1])
    assert partitions(0, ids, both_ways({}, 2), odd) == ([], [])


@given(st.integers(2, 40), st.integers(0, 20), st.integers(1, 3), st.integers(0, 99), st.data())
def test_fingers_name_others_once_and_not_the_neighbours_on_the_ring(
    count: int, fingers: int, choices: int, seed: int, data: st.DataObject
) -> None:
    """Also where the ring is too small for so many fingers, and where nodes are down."""
    ids = np.sort(np.random.default_rng(seed).integers(0, WORD - 1, count, np.uint64))
    down = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    up = [p for p in range(count) if p not in down]
    ring = {p: [up[(i + 1) % len(up)], up[i - 1]] for i, p in enumerate(up)}
    links = {p: [*dict.fromkeys(q for q in row if q != p)] for p, row in ring.items()}
    links = {p: row + [NOBODY] * (RING_SLOTS + fingers - len(row)) for p, row in links.items()}
    views = rewired(
        ids, views_of(links, count, dead=sorted(down)), walks=WALKS._replace(choices=choices), rounds=(1, 6), seed=seed
    )
    for p, row in table(views).items():
        assert len(row) == len(set(row))
        assert not {p, *down} & set(row)
        if p in links:
            start = views.starts[p]
            assert views.links[start : start + RING_SLOTS].tolist() == links[p][:RING_SLOTS]
            heard = views.heard[start + RING_SLOTS : views.starts[p + 1]]
            taken = views.links[start + RING_SLOTS : views.starts[p + 1]] != NOBODY
            assert (heard[taken] >= 1).all()


def test_nodes_are_rewired_in_chunks_of_any_size_alike() -> None:
    ids, links = skewed(64), ring_with_fingers(64)
    views, rows = views_of(links, 64), both_ways(links, 64)
    profiles = make_profiles(ids, np.arange(65, dtype=np.int64), (np.arange(64) % 5).astype(np.int32), np.ones(5))
    found = []
    for bounds in ([0, 64], [0, 1, 17, 40, 64]):
        out = views.links.copy(), views.heard.copy()
        for chunk in pairwise(bounds):
            rewire(3, 6, chunk, over(ids, rows, WALKS._replace(choices=2)), views, profiles, out)
        found.append(out)
    assert (found[0][0] == found[1][0]).all() and (found[0][1] == found[1][1]).all()
    assert (found[0][0] != views.links).any()


def finger_utility(views: Views, profiles: Profiles) -> float:
    marks = new_marks(profiles)
    found = []
    for p, row in table(views).items():
        mark(p, profiles, marks)
        found += [utility(p, q, profiles, marks) for q in row[RING_SLOTS:]]
    return float(np.mean(found))


def test_of_two_choices_fingers_take_the_closer_interests() -> None:
    """§2.2: the power of two choices biases the fingers towards closer interests; four do it more."""
    workload = generate("vitis-high", nodes=300, topics=200, subscriptions_per_node=20, buckets=10, seed=2)
    rows = workload.node_topics
    ids = even(300)
    profiles = make_profiles(ids, rows.starts, rows.columns, workload.rates)
    views = views_of(ring_with_fingers(300), 300)
    one, two, four = (
        finger_utility(rewired(ids, views, walks=WALKS._replace(choices=n), profiles=profiles, rounds=(1,)), profiles)
        for n in (1, 2, 4)
    )
    assert one * 1.2 < two < four


def test_fingers_lie_in_every_partition_equally_often() -> None:
    """§2.2 d: a random peer of a random partition, so the logarithm of its steps on the ring is even; a little larger,
    as the nearest partitions have fewer nodes than there are fingers for them. Of random peers the median is 0.9."""
    views = rewired(skewed(1_000), views_of(ring_with_fingers(1_000), 1_000))
    links = table(views)
    ranks = np.array([(q - p) % 1_000 for p, row in links.items() for q in row[RING_SLOTS:]])
    assert len(ranks) > 0.8 * FINGERS * 1_000
    quantiles = np.quantile(np.log(ranks) / np.log(1_000), [0.1, 0.25, 0.5, 0.75, 0.9])
    assert quantiles == pytest.approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.17)


@given(graphs(), st.data())
def test_a_hop_is_the_link_nearest_to_the_target_from_below(
    world: tuple[Ids, dict[int, list[int]]], data: st.DataObject
) -> None:
    """§3.3; links that were silent too long are as if they were not there."""
    ids, links = world
    views = views_of(links, len(ids))
    views.heard[:] = data.draw(st.lists(st.integers(0, 3), min_size=len(views.heard), max_size=len(views.heard)))
    fresh, plain = data.draw(st.integers(0, 3)), [int(id) for id in ids]
    owner = row_numbers(views.starts)
    usable = {p: views.links[(owner == p) & (views.heard >= fresh) & (views.links != NOBODY)].tolist() for p in links}
    for p in links:
        for target in links:
            found = hop_below(p, target, fresh, ids, views)
            assert (None if found == NOBODY else found) == greedy_hop(p, target, plain, usable)


def converged(kind: str, count: int, *, seed: int = 1) -> tuple[Ids, Views]:
    ids = KINDS[kind](count)
    return ids, rewired(ids, views_of(ring_with_fingers(count, seed=seed), count), seed=seed)


@pytest.mark.parametrize("kind", KINDS)
def test_routes_between_all_pairs_arrive_and_are_never_longer_than_the_ring(kind: str) -> None:
    ids, views = converged(kind, 72)
    hops = {(p, target): hop_below(p, target, 0, ids, views) for p in range(72) for target in range(72)}
    for p in range(72):
        for target in range(72):
            route = [p]
            while route[-1] != target:
                route.append(hops[route[-1], target])
                assert (route[-1] - p) % 72 <= (target - p) % 72
            assert len(set(route)) == len(route) <= (target - p) % 72 + 1


def test_fingers_depend_on_the_order_of_ids_and_not_on_their_distances() -> None:
    """§2.2: fingers follow the distribution of ids, "which can be arbitrarily skewed"."""
    (_, one), (_, other) = converged("even ids", 400), converged("skewed ids", 400)
    assert (one.links == other.links).all()


def test_routes_on_skewed_ids_are_as_short_as_on_even_ones() -> None:
    """§2.2: O(log² n / k) hops on any distribution of ids; log₂² 1000 / 8 = 12. The two rings have other seeds."""
    found, everyone = {}, np.arange(1_000, dtype=np.int32)
    for seed, kind in enumerate(KINDS, 1):
        ids, views = converged(kind, 1_000, seed=seed)
        found[kind] = mean_route(1, 4_000, 0, everyone, ids, views)
    assert found["skewed ids"] < 1.3 * found["even ids"]
    assert max(found.values()) < 12


def test_a_mean_route_counts_the_hops_of_routes_that_arrive() -> None:
    """On a bare ring of seven, routes to a random node take 0 … 6 hops: 3 on average; not those that end nowhere."""
    ids, everyone = even(7), np.arange(7, dtype=np.int32)
    views = views_of({p: [(p + 1) % 7] for p in range(7)}, 7)
    assert mean_route(1, 20_000, 0, everyone, ids, views) == pytest.approx(3, abs=0.1)
    assert mean_route(1, 100, 1, everyone, ids, views) == 0  # nothing was heard since round 1
    assert np.isnan(mean_route(1, 0, 0, everyone, ids, views))
