"""Sights: the places on the ring where a stranger would change a row. Whoever is in none of them is passed over.

A choice that is steady (`meetings`) refuses nearly everybody by what the row held before: its farthest ring backups,
the distance of each long link from its aim. These bounds are known before anybody is looked at, so that eight strangers
are compared with each of them at once.

Invariant: if nobody that a node hears of is in sight but who is in its row, its ring links, ring backups and long links
stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grapevine.blocks.entries import Entries, Points
from grapevine.blocks.views import Views, is_among
from grapevine.kernels.bits import count_ones
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.lanes import LANES, compress, within


class Sights(NamedTuple):
    """Stretches of the ring: around each point, so far clockwise and so far counter-clockwise, ends excluded."""

    points: Points
    after: Points
    before: Points


@njit
def new_sights(most: int) -> Sights:
    """Room for so many stretches."""
    return Sights(np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, np.uint64))


@inlined
def look_at_eight(points: Points, at: int, sights: Sights, count: int) -> int:
    """Which of the eight points from `at` on are in one of so many sights, as a mask (`lanes`)."""
    seen = 0
    for k in range(np.uint64(count)):
        seen |= within(points, at, sights.points[k], sights.after[k], sights.before[k])
    return seen


@inlined
def see(entries: Entries, count: int, sights: Sights, stretches: int, out: tuple[Columns, int]) -> int:
    """Append those of the first `count` entries that are in one of so many stretches to a list of so many; returns
    how many it has then. There must be room for seven more entries."""
    (nodes, points), (seen, found) = entries, out
    for at in range(0, count, LANES):
        which = look_at_eight(points, at, sights, stretches) & up_to(count - at)
        if which != 0:
            compress(which, nodes, at, seen, found)
            found += int(np.int64(count_ones(np.uint64(which))))
    return found


@inlined
def is_news(p: int, seen: tuple[Columns, int], views: Views, ids: Points, sights: Sights, stretches: int) -> bool:
    """Whether one of so many nodes in sight may change the row p, which has these sights, the ring being the first.

    A link of the row has its place already. So has a backup, but on the ring alone: now it is heard of by others, and
    may become a long link.
    """
    nodes, count = seen
    for i in range(np.uint64(count)):
        if is_among(nodes[i], views.links, views.starts[p], views.starts[p + 1]):
            continue
        known, point = False, ids[nodes[i]]
        for k in range(np.uint64(views.backups.shape[1])):
            known |= views.backups[p, k] == nodes[i]
        for k in range(np.uint64(1), np.uint64(stretches)):
            middle = sights.points[k]
            known &= (point - middle >= sights.after[k]) & (middle - point >= sights.before[k])
        if not known:
            return True
    return False


@inlined
def up_to(count: int) -> int:
    """The mask of the first so many of eight, of all of them if there are more."""
    return (1 << min(count, LANES)) - 1
