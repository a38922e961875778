"""One node's view of the network: whom it believes, links to, and forgets."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.peer.overlay import Overlay

CONFIG = VitisPeerConfig(table_size=4, sample_size=3, ring_backups=1, sample_rounds=3)  # hearsay counts for 15 s


def overlay(**more: Any) -> Overlay:
    """Node 1, of which the session has lasted for long."""
    return Overlay(described(1), CONFIG, Random(1), lambda node: (0, 0), **more)


def described(node: int, *, age_s: float = 0.0, up_s: float = 100.0, ring_id: int | None = None) -> Descriptor:
    return Descriptor(node, node if ring_id is None else ring_id, 1, 1, up_s, age_s)


def test_links_go_to_the_neighbours_on_the_ring_first() -> None:
    view = overlay()
    view.merge_view(10.0, 5, tuple(described(node) for node in (5, 2**20, 2**40, 2**63 + 9, 2**64 - 7)))
    view.select(10.0)
    assert view.table[:2] == [5, 2**64 - 7]


def test_a_link_that_is_silent_is_dropped_and_old_news_do_not_bring_it_back() -> None:
    """Algorithm 7."""
    view = overlay()
    view.merge_view(10.0, 5, (described(5),))
    view.select(10.0)
    assert view.neighbours() == [5]
    view.forget_silent(10.0 + CONFIG.silence_s + 0.1)
    assert view.neighbours() == []
    view.learn(15.2, 6, [described(5, age_s=5.3)])
    assert 5 not in view.book.known
    view.learn(15.2, 5, [described(5)])
    assert 5 in view.book.known, "it says itself that it is there"


def test_who_has_this_node_in_its_table_is_a_neighbour_as_long_as_it_says_so() -> None:
    view = overlay()
    view.learn(1.0, 8, [described(8)])
    assert view.link(1.0, 8, True) and not view.link(2.0, 8, True)
    assert view.neighbours() == [8]
    assert view.link(3.0, 8, False)
    assert view.neighbours() == []
    assert not view.link(3.0, 99, True), "nobody that is not known is a link"


def test_the_cache_keeps_the_freshest_of_both() -> None:
    view = overlay()
    view.merge_sample(10.0, 2, tuple(described(node, age_s=age) for node, age in ((2, 0.0), (3, 3.0), (4, 1.0))))
    view.merge_sample(10.0, 5, tuple(described(node, age_s=age) for node, age in ((5, 0.5), (6, 4.0))))
    assert set(view.cache) == {2, 4, 5}
    assert view.sample(10.0)[0].node == 1, "a node describes itself first"


@pytest.mark.parametrize(
    "wrong",
    [described(9, age_s=-1.0), described(9, age_s=math.nan), described(9, up_s=math.inf), described(2**64, ring_id=0)],
)
def test_what_cannot_be_is_not_believed(wrong: Descriptor) -> None:
    view = overlay()
    view.merge_view(10.0, 5, (wrong, described(6)))
    assert set(view.book.known) == {6}


def test_where_ring_ids_follow_from_addresses_nobody_can_choose_its_own() -> None:
    view = overlay(ring_id_of=lambda address: address)
    view.merge_view(10.0, 5, (described(7, ring_id=8), described(9)))
    assert set(view.book.known) == {9}


def test_lookups_avoid_links_that_were_silent_in_the_last_two_rounds() -> None:
    view = overlay()
    view.merge_view(10.0, 5, (described(5), described(2**40)))
    view.select(10.0)
    view.book.hear(5, 12.5)
    assert set(view.usable_links(11.0)) == {5, 2**40}
    assert view.usable_links(12.5) == [5]
