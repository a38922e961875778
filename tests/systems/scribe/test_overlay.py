"""Pastry below Scribe: who is in the tables that all nodes share."""

from __future__ import annotations

import numpy as np

from grapevine.systems.scribe.overlay import Overlay
from grapevine.systems.scribe.pastry import Pastry

IDS = [0, 1 << 62, 2 << 62, 3 << 62]


def overlay_of(*nodes: int) -> Overlay:
    """These are there since 0 s; silence is forgiven for 45 s."""
    overlay = Overlay(Pastry(IDS, lambda node, others: np.ones(len(others))), patience_s=45.0)
    for node in nodes:
        overlay.here(0.0, node)
    return overlay


def test_a_route_ends_at_the_node_nearest_to_the_key() -> None:
    overlay = overlay_of(0, 1, 3)
    assert overlay.next_hop(1.0, 0, IDS[1] + 5, ()) == 1
    assert overlay.next_hop(1.0, 1, IDS[1] + 5, ()) is None


def test_who_is_to_be_avoided_is_on_no_route() -> None:
    overlay = overlay_of(0, 1, 2)
    assert overlay.next_hop(1.0, 0, IDS[1] + 5, [1]) == 2


def test_a_node_that_is_silent_for_longer_than_the_patience_is_in_no_table() -> None:
    overlay = overlay_of(0, 1, 2)
    overlay.here(30.0, 0)
    overlay.here(30.0, 2)
    before = overlay.changes(45.0)
    assert overlay.next_hop(45.0, 0, IDS[1] + 5, ()) == 1
    assert overlay.changes(45.1) == before + 1
    assert overlay.next_hop(45.1, 0, IDS[1] + 5, ()) == 2


def test_a_sign_of_life_of_a_node_in_the_tables_changes_no_route() -> None:
    overlay = overlay_of(0, 1)
    before = overlay.changes(1.0)
    overlay.here(1.0, 0)
    assert overlay.changes(1.0) == before
    overlay.gone(0)
    assert overlay.changes(1.0) == before + 1
    overlay.here(2.0, 0)
    assert overlay.changes(2.0) == before + 2
