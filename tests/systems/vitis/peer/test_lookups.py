"""Next hops of many keys are those of the rule, and relay paths are soft and bounded."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.ids import distance
from grapevine.systems.gossip.interests import array_of
from grapevine.systems.vitis.peer.book import VitisBook
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.peer.relays import Relays

WORDS = st.integers(0, 2**64 - 1)


@given(
    WORDS, st.booleans(), st.lists(st.tuples(WORDS, st.booleans()), max_size=12, unique_by=lambda x: x[0]),
    st.lists(WORDS, min_size=1, max_size=20),
)  # fmt: skip
def test_next_hops_are_the_nearest_settled_links_that_are_nearer(
    mine: int, settled: bool, others: list[tuple[int, bool]], keys: list[int]
) -> None:
    book = VitisBook(Descriptor(2**64 - 1, mine, 1, 0, 50.0 if settled else 0.0), 1)
    links = [1 << 63 | i for i in range(len(others))]
    news = [Descriptor(node, other, 1, 0, 50.0 * old) for node, (other, old) in zip(links, others, strict=True)]
    book.learn(100.0, news)
    found = dict.fromkeys(range(len(keys)))
    for hop, which in book.next_hops(100.0, 10.0, np.array(keys, np.uint64), links):
        found |= dict.fromkeys(which.tolist(), hop)
    for i, key in enumerate(keys):
        options = [(distance(other, key), at) for at, (other, old) in enumerate(others) if old]
        nearest = min(options, default=None)
        if nearest is None or (settled and nearest[0] >= distance(mine, key)):
            assert found[i] is None
        else:
            assert found[i] == links[nearest[1]]


def relays(most: int = 100) -> Relays:
    return Relays(lambda topics: topics + np.uint64(1), most)


def test_a_path_is_extended_once_for_gateways_that_ask_in_the_same_moment() -> None:
    paths = relays()
    topics, ring_ids = paths.join(1, array_of([5, 7]), until=10.0, recent=9.0)
    assert (topics.tolist(), ring_ids.tolist()) == ([5, 7], [6, 8])
    topics, _ = paths.join(2, array_of([3, 5]), until=10.5, recent=9.5)
    assert topics.tolist() == [3]
    topics, ring_ids = paths.join(1, array_of([5]), until=14.0, recent=13.0)
    assert (topics.tolist(), ring_ids.tolist()) == ([5], [6])
    assert paths.of(0.0, 5) == [1, 2] and paths.of(0.0, 3) == [2] and paths.of(0.0, 4) == []
    assert paths.of(12.0, 5) == [1] and paths.topics(12.0) == {5}
    paths.expire(12.0)
    assert paths.topics(0.0) == {5}
    paths.drop(1)
    assert paths.topics(0.0) == set()


def test_a_neighbour_cannot_have_more_carried_than_the_most() -> None:
    paths = relays(most=3)
    assert paths.join(1, array_of([4, 6]), 10.0, 9.0)[0].tolist() == [4, 6]
    assert paths.join(1, array_of([1, 2, 4, 9]), 10.0, 9.0)[0].tolist() == [1, 4]
    assert paths.join(1, array_of([2, 9]), 10.0, 9.0)[0].tolist() == []
    assert paths.join(2, array_of([2, 9]), 10.0, 9.0)[0].tolist() == [2, 9]


def ask(paths: Relays, hop: int, topics: list[int], origin: int | None) -> list[int]:
    wanted = array_of(topics)
    return paths.ask(hop, wanted, wanted, 10.0, origin).tolist()


def test_what_a_neighbour_asks_for_leaves_room_for_what_it_is_asked_for() -> None:
    paths = relays(most=3)
    paths.join(1, array_of([1, 2, 3]), 10.0, 9.0)
    assert ask(paths, 1, [4, 5, 6], None) == [4, 5, 6] and not paths.exceeds(1, array_of([1]))
    assert paths.of(0.0, 5) == [1] and paths.topics(0.0) == {1, 2, 3, 4, 5, 6}


def test_a_flood_of_one_neighbour_leaves_room_at_the_next_hop_for_others_and_for_the_own_paths() -> None:
    paths = relays(most=100)
    assert len(ask(paths, 9, list(range(100)), origin=1)) == 50
    assert len(ask(paths, 9, list(range(100, 200)), origin=2)) == 25
    assert ask(paths, 9, [500], origin=3) == [] and ask(paths, 9, [7], origin=2) == [7]  # renewed, as it is there
    assert ask(paths, 9, [1_000, 1_001], None) == [1_000, 1_001]
    assert len(ask(paths, 8, list(range(100)), origin=1)) == 50, "another hop has a budget of its own"


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 20)), st.integers(1, 9)), max_size=20))
def test_paths_are_kept_as_a_dictionary_would(asked: list[tuple[int, set[int], int]]) -> None:
    paths, naive = relays(), dict[tuple[int, int], float]()
    for at, (node, topics, lasts) in enumerate(asked):
        now, until = float(at), float(at + lasts)
        paths.join(node, array_of(topics), until, until)
        naive |= {(node, topic): until for topic in topics}
        paths.expire(now)
        naive = {key: end for key, end in naive.items() if end > now}
        assert paths.topics(now) == {topic for _, topic in naive}
        for topic in range(21):
            assert set(paths.of(now, topic)) == {n for n, t in naive if t == topic}
