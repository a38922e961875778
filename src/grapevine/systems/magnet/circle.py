"""Identifiers that are chosen: nodes in a circle, each between two others (Magnet Algorithm 1, line 3).

A newcomer takes the mean of the ids of its two neighbours, so ids have no meaning but their order. Next to a popular
node the gaps halve with every newcomer: after 63 of them there is no room left. Then the nodes behind it move apart:
the shortest stretch, of twice as many nodes at every try, that gives each of them room enough is spread evenly. Order
and links stay; a node tells its new id with its next heartbeat.

Invariants: `after` and `before` are inverse to each other, and going round by `after` the ids ascend clockwise, all
different.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise

SPACING = np.uint64(2**20)  # room for twenty newcomers in every gap of a stretch that was spread
_TWO, _ALL = np.uint64(2), np.uint64(2**64 - 1)


class Circle(NamedTuple):
    """All nodes of a network; those in the circle are linked to the next in both directions, a node alone to itself."""

    ids: Ids  # of a node that is not in the circle: whatever it had last
    after: Columns  # clockwise; NOBODY: the node is not in the circle
    before: Columns  # counter-clockwise; likewise


def close(nodes: Columns, circle: Circle) -> None:
    """Make a circle of these nodes, the first ones: they have their ids already and are given in the order of these."""
    circle.after[nodes], circle.before[nodes] = np.roll(nodes, -1), np.roll(nodes, 1)


@njit
def gap_after(node: int, circle: Circle) -> np.uint64:
    """Steps from a node to the next; the whole ring but one when it is alone."""
    after = circle.after[node]
    return _ALL if after == node else clockwise(circle.ids[node], circle.ids[after])


@njit
def insert_after(node: int, newcomer: int, circle: Circle) -> None:
    """Put a newcomer between a node and the next, at the mean of their ids; others move apart when there is no room."""
    if gap_after(node, circle) < _TWO:
        _make_room(node, circle)
    circle.ids[newcomer] = circle.ids[node] + gap_after(node, circle) // _TWO
    _link(node, newcomer, circle)


@njit
def insert_at(id: np.uint64, newcomer: int, start: int, circle: Circle) -> None:
    """Put a newcomer into the circle at a given id; if somebody has it already, behind that one.

    The search begins at the node `start`, which is in the circle, and takes a step per node; NOBODY: the circle is
    empty.
    """
    if start == NOBODY:
        circle.ids[newcomer], circle.after[newcomer], circle.before[newcomer] = id, newcomer, newcomer
        return
    node = start
    while circle.after[node] != start and clockwise(circle.ids[node], id) >= gap_after(node, circle):
        node = int(circle.after[node])
    if circle.ids[node] == id:
        insert_after(node, newcomer, circle)
    else:
        circle.ids[newcomer] = id
        _link(node, newcomer, circle)


@njit
def remove(node: int, circle: Circle) -> None:
    """Take a node out of the circle: the two around it are next to each other. Nothing happens if it is not in it."""
    after, before = circle.after[node], circle.before[node]
    if after != NOBODY:
        circle.after[before], circle.before[after] = after, before
        circle.after[node] = circle.before[node] = NOBODY


@njit
def _link(node: int, newcomer: int, circle: Circle) -> None:
    after = circle.after[node]
    circle.after[node], circle.before[newcomer] = newcomer, node
    circle.after[newcomer], circle.before[after] = after, newcomer


@njit
def _make_room(node: int, circle: Circle) -> None:
    """Spread the shortest stretch behind the node in which everybody gets SPACING; the whole circle at worst."""
    end, count, span = circle.after[node], np.uint64(1), gap_after(node, circle)
    target = np.uint64(2)
    while span // count < SPACING:
        while count < target and circle.after[end] != node:
            end = circle.after[end]
            count += np.uint64(1)
            span = clockwise(circle.ids[node], circle.ids[end])
        if circle.after[end] == node:  # round the whole circle: `node` stays where it is
            span, end, count = _ALL, np.int32(node), count + np.uint64(1)
            break
        target *= _TWO
    step, at, id = span // count, circle.after[node], circle.ids[node]
    while at != end:
        id += step
        circle.ids[at] = id
        at = circle.after[at]
