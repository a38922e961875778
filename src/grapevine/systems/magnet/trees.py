"""What the tree joins of Magnet cost (§3.3, Algorithm 2), and how large trees are.

Theory. A topic's tree is made of the greedy routes from its home to its subscribers, so it follows from the links
(`sim/event_graph` builds it anew for every event). Whoever has another parent than before has joined the tree again.
It asks a subscriber that it knows; the request climbs from there to the first node that is on the greedy route from the
home to the newcomer, and follows this route down. Who knows nobody asks the home, over the control ring.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.small_world import Ids, hop_below
from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.systems.magnet.membership import ControlRing, route_length


class Overlay(NamedTuple):
    """What trees are made of, and whom a newcomer may ask."""

    homes: Columns  # topic → node; NOBODY: nobody is online
    starts: Starts  # topic → its subscribers in `nodes`
    nodes: Columns
    samples: NDArray[np.int32]  # topic → subscribers that others know of; no columns: nobody knows any
    known: Columns  # how many of them
    control: ControlRing
    fresh: int  # links last heard before this round are not used
    ids: Ids
    views: Views


@njit
def join_trees(topics: tuple[int, int], overlay: Overlay, parents: Columns) -> tuple[int, int]:
    """Let subscribers of the topics first … last-1 join the trees of the moment; returns the edges of these trees, and
    the messages of all who join.

    `parents` has everybody's parent in the order of `overlay.nodes`, NOBODY for who is not in the tree or its home. It
    is read and overwritten: who still has the same parent does not join.
    """
    alive, size = overlay.views.alive, len(overlay.ids)
    up, depth, tree = np.full(size, NOBODY, np.int32), np.zeros(size, np.int32), np.empty(size, np.int32)
    edges, messages = 0, 0
    for topic in range(topics[0], topics[1]):
        home, count = overlay.homes[topic], 0
        if home == NOBODY:
            continue
        depth[home] = 0
        for i in range(overlay.starts[topic], overlay.starts[topic + 1]):
            if alive[overlay.nodes[i]]:
                count = _grow(home, overlay.nodes[i], overlay, up, depth, tree, count)
        edges += count
        for i in range(overlay.starts[topic], overlay.starts[topic + 1]):
            p = overlay.nodes[i]
            if up[p] != NOBODY and up[p] != parents[i]:
                messages += _request(p, i, topic, overlay, up, depth)
            parents[i] = up[p]
        for i in range(count):
            up[tree[i]] = NOBODY
    return edges, messages


@njit
def _grow(home: int, p: int, overlay: Overlay, up: Columns, depth: Columns, tree: Columns, count: int) -> int:
    """Add the route from the home to p, as far as it leads; returns how many nodes the tree has besides the home."""
    at = home
    while at != p:
        q = hop_below(at, p, overlay.fresh, overlay.ids, overlay.views)
        if q == NOBODY or not overlay.views.alive[q]:
            break
        if up[q] == NOBODY:
            up[q], depth[q], tree[count] = at, depth[at] + 1, q
            count += 1
        at = q
    return count


@njit
def _request(p: int, i: int, topic: int, overlay: Overlay, up: Columns, depth: Columns) -> int:
    """Messages of one join: the question, its way up, and its way down to p. Newcomers ask those who are known in
    turn."""
    home = overlay.homes[topic]
    if overlay.known[topic] > 0:
        asked = overlay.samples[topic, i % overlay.known[topic]]
        if asked != p and (asked == home or up[asked] != NOBODY):
            return 1 + _steps_between(int(asked), int(p), up, depth)
    control = overlay.control
    return route_length(int(control.position[p]), int(control.position[home]), control.ids) + int(depth[p])


@njit
def _steps_between(a: int, b: int, up: Columns, depth: Columns) -> int:
    """Steps in the tree from a up to where the way to b branches off, and down to b."""
    steps = 0
    while a != b:
        if depth[a] >= depth[b]:
            a = int(up[a])
        else:
            b = int(up[b])
        steps += 1
    return steps
