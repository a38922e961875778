"""The graph of one topic: its members and the links between them, numbered locally, in scratch that is reused.

Members keep their position in the topic's subscriber list, so a local number means the same from round to round. The
order of calls is: `open_topic` (or `room_for`, `enter`, `connect`), read the rows, `leave`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit

_0, _1 = np.uint64(0), np.uint64(1)


class Scratch(NamedTuple):
    """Room for the graph of one topic. `local` is -1 everywhere between topics."""

    local: NDArray[np.int32]  # node → local number; -1: no member, or not alive
    starts: NDArray[np.int64]  # local number → its row of edges
    edges: NDArray[np.int32]  # local numbers of neighbours


@njit
def new_scratch(node_count: int) -> Scratch:
    """Room for any topic, with no edges yet (`room_for` adds them)."""
    return Scratch(np.full(node_count, -1, np.int32), np.zeros(node_count + 1, np.int64), np.empty(64, np.int32))


@njit
def room_for(scratch: Scratch, edges: int) -> Scratch:
    """Scratch with room for so many directed edges: the given one, or one with the same `local` and `starts`.

    There is room for one more, which `connect` writes and does not count.
    """
    if len(scratch.edges) > edges:
        return scratch
    return Scratch(scratch.local, scratch.starts, np.empty(2 * edges + 1, np.int32))


@njit
def enter(members: Columns, alive: NDArray[np.bool_], scratch: Scratch) -> None:
    """Number the members that are alive by their position. `local` is -1 everywhere before."""
    for i in range(len(members)):
        if alive[members[i]]:
            scratch.local[members[i]] = i


@njit
def leave(members: Columns, scratch: Scratch) -> None:
    """Set `local` to -1 for the members, so that the next topic can be entered."""
    for member in members:
        scratch.local[member] = -1


@njit
def degree_sum(members: Columns, link_starts: Starts) -> int:
    """Links that end at these members: a bound on the edges of their graph."""
    total = 0
    for member in members:
        total += link_starts[member + 1] - link_starts[member]
    return total


@njit
def open_topic(members: Columns, links: tuple[Starts, Columns], alive: NDArray[np.bool_], scratch: Scratch) -> Scratch:
    """The graph of these members, in scratch that has room for it; `leave` forgets it."""
    scratch = room_for(scratch, degree_sum(members, links[0]))
    enter(members, alive, scratch)
    connect(members, links[0], links[1], scratch)
    return scratch


@njit
def connect(members: Columns, link_starts: Starts, links: Columns, scratch: Scratch) -> None:
    """Make a row of every member's neighbours that are members too; members that are not alive get an empty row.

    `enter` has numbered the members, and `edges` has room for `degree_sum`.
    """
    local, edges, count, size = scratch.local, scratch.edges, _0, np.uint32(len(members))
    for i in range(np.uint64(len(members))):
        scratch.starts[i] = count
        member = np.uint64(members[i])
        if local[member] >= 0:
            count = append_members(links[link_starts[member] : link_starts[member + _1]], size, local, edges, count)
    scratch.starts[len(members)] = count


@njit
def append_members(
    neighbours: Columns, size: np.uint32, local: NDArray[np.int32], edges: NDArray[np.int32], count: np.uint64
) -> np.uint64:
    """Write those of the neighbours whose local number is below `size` behind the first `count` edges; returns how many
    edges there are then.

    Half of the neighbours are members, in no order that a processor could foresee. So everybody is written, and only
    members are counted; that takes a third of the time. Unsigned numbers spare a test for negative indices, and -1 is
    not below any size.
    """
    for at in range(np.uint64(len(neighbours))):
        number = local[np.uint32(neighbours[at])]
        edges[count] = number
        count += _1 if np.uint32(number) < size else _0
    return count


@njit
def spread(root: int, graph: Scratch, hops: Columns, queue: Columns) -> tuple[int, int]:
    """Breadth-first search in the graph of a topic that marks `hops` (-1: not reached); returns how many were reached,
    whose numbers are in `queue`, and how far the last one is."""
    queue[0], hops[root] = root, 0
    head, tail = _0, _1
    while head < tail:
        i = np.uint32(queue[head])
        head += _1
        for at in range(np.uint64(graph.starts[i]), np.uint64(graph.starts[i + 1])):
            j = np.uint32(graph.edges[at])
            if hops[j] < 0:
                hops[j] = hops[i] + 1
                queue[tail] = j
                tail += _1
    return int(tail), int(hops[queue[tail - _1]])
