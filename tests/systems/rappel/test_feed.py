"""One feed at one node (§4): Algorithm 2 against its listing, the choice of ancestors, and the cache against a log."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.feed import Accept, Child, Feed, Forward, Parent
from grapevine.systems.rappel.messages import Pull, Update

Place = tuple[float, float]
ME, PARENT, PUBLISHER = 50, 60, 70
ORIGIN: Place = (0.0, 0.0)


def feed_of(children: dict[Address, Place], *, publisher: Place = ORIGIN, root: bool = False) -> Feed:
    feed = Feed(0, ME if root else PUBLISHER, root, publisher)
    feed.parent = None if root else Parent(PARENT, 1)
    feed.children = {node: Child(position, 1, 0.0) for node, position in children.items()}
    return feed


def plain_receive_join(
    me: Place, publisher: Place, children: dict[Address, Place], node: Address, at: Place, most: int, *, root: bool
) -> Accept | Forward:
    """Algorithm 2 from top to bottom. As its text has it, ties go by address, and the victim is who is sent away."""

    def closer(a: Address, at_a: Place, b: Address, at_b: Place) -> bool:
        return (math.dist(at_a, publisher), a) < (math.dist(at_b, publisher), b)

    if not root and closer(node, at, ME, me):
        return Forward(PARENT)
    if node in children or len(children) < most:
        return Accept()
    nearer = {child for child, place in children.items() if closer(child, place, node, at)}
    if len(nearer) == len(children):
        return Forward(sorted(nearer, key=lambda child: (math.dist(children[child], at), child))[0])
    victim = next(a for a in children if all(a == b or closer(b, children[b], a, children[a]) for b in children))
    after = {child: place for child, place in children.items() if child != victim} | {node: at}
    return Accept(victim, sorted(after, key=lambda child: (math.dist(after[child], children[victim]), child))[0])


place = st.tuples(st.integers(-6, 6).map(float), st.integers(-6, 6).map(float))  # a grid: ties are common


@given(
    st.integers(1, 5).flatmap(
        lambda most: st.tuples(st.just(most), st.dictionaries(st.integers(0, 40), place, max_size=most))
    ),
    place,
    place,
    st.integers(0, 90).filter(lambda node: node not in (ME, PARENT, PUBLISHER)),
    place,
    st.booleans(),
)
def test_a_join_is_answered_as_in_algorithm_2(
    tree: tuple[int, dict[Address, Place]], me: Place, publisher: Place, node: Address, at: Place, root: bool
) -> None:
    most, children = tree
    feed = feed_of(children, publisher=publisher, root=root)
    expected = plain_receive_join(me, publisher, children, node, at, most, root=root)
    assert feed.receive_join(ME, me, node, at, most) == expected


NEAR, FAR, FARTHER = (1.0, 0.0), (5.0, 0.0), (9.0, 0.0)


def test_a_newcomer_closer_to_the_publisher_is_sent_to_the_parent() -> None:
    """Fig. 4a."""
    assert feed_of({}).receive_join(ME, FAR, 1, NEAR, most=3) == Forward(PARENT)


def test_a_newcomer_farther_away_is_taken_where_there_is_room() -> None:
    """Fig. 4b."""
    assert feed_of({2: FAR, 3: FAR}).receive_join(ME, NEAR, 1, FARTHER, most=3) == Accept()


def test_a_newcomer_farther_away_than_all_children_is_sent_to_the_one_nearest_to_it() -> None:
    """Fig. 4c."""
    feed = feed_of({2: (-5.0, 0.0), 3: (0.0, 5.0), 4: FAR})
    assert feed.receive_join(ME, NEAR, 1, FARTHER, most=3) == Forward(4)


def test_a_newcomer_closer_than_some_child_evicts_the_farthest_to_the_child_nearest_to_that() -> None:
    """Fig. 4d; the newcomer may be this child."""
    assert feed_of({2: (-2.0, 0.0), 3: FARTHER}).receive_join(ME, NEAR, 1, FAR, most=2) == Accept(3, 1)
    assert feed_of({2: (8.0, 0.0), 3: FARTHER}).receive_join(ME, NEAR, 1, (0.0, 6.0), most=2) == Accept(3, 2)


def test_of_two_nodes_at_one_distance_the_smaller_address_is_closer() -> None:
    """Footnote 2."""
    assert feed_of({}).receive_join(ME, FAR, ME - 1, FAR, most=1) == Forward(PARENT)
    assert feed_of({}).receive_join(ME, FAR, ME + 1, FAR, most=1) == Accept()
    assert feed_of({80: FARTHER}).receive_join(ME, FAR, 79, FARTHER, most=1) == Accept(80, 79)
    assert feed_of({80: FARTHER}).receive_join(ME, FAR, 81, FARTHER, most=1) == Forward(80)


def test_nobody_is_closer_than_the_publisher() -> None:
    assert feed_of({}, root=True).receive_join(ME, ORIGIN, 1, ORIGIN, most=1) == Accept()


def test_a_node_without_a_parent_sends_newcomers_to_the_publisher() -> None:
    orphan = feed_of({})
    orphan.parent = None
    assert orphan.receive_join(ME, FAR, 1, NEAR, most=3) == Forward(PUBLISHER)
    orphan.publisher_position = None  # it has never had one
    assert orphan.receive_join(ME, NEAR, 1, FAR, most=3) == Forward(PUBLISHER)


# Rejoins


@pytest.mark.parametrize("fan_out", [2, 3, 5])
@pytest.mark.parametrize("height", [2, 3, 4])
def test_an_ancestor_is_chosen_the_less_often_the_farther_it_is(fan_out: int, height: int) -> None:
    """§4.3: β^-(h_j - h_a) over the sum of all of them, parents aside."""
    feed, random, draws = feed_of({}), Random(f"{fan_out} {height}"), 4_000
    feed.ancestors = tuple(range(100, 100 + height))
    chosen = [feed.ancestor_for_rejoin(fan_out, random) for _ in range(draws)]
    weights = [fan_out**-steps for steps in range(2, height + 1)]
    counts = [chosen.count(ancestor) for ancestor in feed.ancestors[1:]]
    assert sum(counts) == draws
    assert chisquare(counts, [draws * weight / sum(weights) for weight in weights]).pvalue > 1e-4 or height == 2


@pytest.mark.parametrize("chain", [(), (PUBLISHER,)])
def test_a_child_of_the_publisher_has_nobody_to_rejoin_at(chain: tuple[Address, ...]) -> None:
    feed = feed_of({})
    feed.ancestors = chain
    assert feed.ancestor_for_rejoin(5, Random(1)) is None


# Updates


def update(sequence: int) -> Update:
    return Update(0, sequence, b"%d" % sequence)


@given(st.lists(st.one_of(st.integers(1, 40), st.tuples(st.integers(1, 40))), max_size=60), st.integers(1, 12))
def test_the_cache_is_the_last_few_updates_that_came(happens: list[int | tuple[int]], window: int) -> None:
    """Numbers are updates, tuples what the parent knows of (§4.1)."""
    feed, seen, last = feed_of({}), set[int](), 0
    for event in happens:
        if isinstance(event, tuple):
            last = max(last, event[0])
            feed.last = max(feed.last, event[0])
        else:
            new = event not in seen and event > last - window
            assert feed.keep(update(event), window) == new
            seen |= {event} if new else set()
            last = max(last, event)
        recent = range(max(1, last - window + 1), last + 1)
        assert set(recent) & seen <= set(feed.cache) <= seen
        assert len(feed.cache) <= window
        assert feed.missing(window) == tuple(n for n in recent if n not in seen)
        assert feed.pull(window) == Pull(0, last, feed.missing(window))


@given(st.sets(st.integers(1, 20)), st.sets(st.integers(1, 20)), st.integers(0, 20))
def test_a_pull_brings_what_is_there_and_missed_or_new(held: set[int], missing: set[int], after: int) -> None:
    feed = feed_of({})
    feed.cache = {sequence: update(sequence) for sequence in sorted(held, reverse=True)}
    answer = feed.answer(Pull(0, after, tuple(missing)))
    assert [sent.sequence for sent in answer] == sorted(n for n in held if n in missing or n > after)
    assert all(sent.pulled and sent.payload == b"%d" % sent.sequence for sent in answer)


@given(st.lists(st.integers(1, 30), max_size=30), st.lists(st.integers(1, 30), max_size=30), st.integers(1, 12))
def test_after_a_pull_nothing_is_missing_that_the_other_has(mine: list[int], theirs: list[int], window: int) -> None:
    feed, other = feed_of({}), feed_of({})
    for sequence in mine:
        feed.keep(update(sequence), window)
    for sequence in theirs:
        other.keep(update(sequence), window)
    for sent in other.answer(feed.pull(window)):
        feed.keep(sent, window)
    assert not set(feed.missing(window)) & set(other.cache)
