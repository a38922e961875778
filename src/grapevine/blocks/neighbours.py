"""Links as connections, usable both ways: the neighbours of every node, from the tables of links that nodes chose.

`Network.neighbours` calls this when links have changed. Every step is a counting sort or a merge, so the time grows
with the number of links, however unequally they are spread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit


@njit
def online_links(starts: Starts, links: Columns, alive: NDArray[np.bool_]) -> tuple[Starts, Columns]:
    """The links between online nodes, as rows by who chose them; `starts` and `links` are the tables of all nodes."""
    kept, out, count = np.zeros_like(starts), np.empty(len(links), np.int32), 0
    for p in range(len(starts) - 1):
        if alive[p]:
            for at in range(starts[p], starts[p + 1]):
                if links[at] != NOBODY and alive[links[at]]:
                    out[count] = links[at]
                    count += 1
        kept[p + 1] = count
    return kept, out[:count]


@njit
def both_ways(starts: Starts, links: Columns) -> tuple[Starts, Columns]:
    """Rows of distinct neighbours, ascending: whom a node links to, and who links to it.

    Turning rows round orders them, so those who link to a node are in order after the first time, and whom it links to
    after the second.
    """
    node_count = len(starts) - 1
    by_starts, linked_by = csr.transpose(starts, links, node_count)
    to_starts, linked_to = csr.transpose(by_starts, linked_by, node_count)
    rows, columns, count = np.zeros_like(starts), np.empty(2 * len(links), np.int32), 0
    for p in range(node_count):
        a, b, first = to_starts[p], by_starts[p], count
        while a < to_starts[p + 1] or b < by_starts[p + 1]:
            if b == by_starts[p + 1] or (a < to_starts[p + 1] and linked_to[a] < linked_by[b]):
                other = linked_to[a]
                a += 1
            else:
                other = linked_by[b]
                b += 1
            if count == first or columns[count - 1] != other:
                columns[count] = other
                count += 1
        rows[p + 1] = count
    return rows, columns[:count]
