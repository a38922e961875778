"""Links that are made for nodes by others: both ends have them in their tables, which grow as needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit

SLACK = 4  # free places that a table gets when it has become too small


class LinkTable:
    """The links of a network, and what others know of each node's links.

    The table of a node that is gone is empty, but those who were told of its links (`known`) still know them.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.room = np.zeros(network.size, np.int64)
        self.degree = np.zeros(network.size, np.int32)
        self.known: list[set[int]] = [set() for _ in range(network.size)]

    def of(self, node: int) -> list[int]:
        """Whom the node is linked to."""
        views = self.network.views
        row = views.links[views.starts[node] : views.starts[node + 1]]
        return [int(u) for u in row[row != NOBODY]]

    def add(self, sources: Columns, targets: Columns) -> None:
        """Both ends take each link."""
        network = self.network
        self.degree += np.bincount(np.concatenate([sources, targets]), minlength=network.size).astype(np.int32)
        if (self.degree > self.room).any():
            self.room = np.where(self.degree > self.room, self.degree + SLACK, self.room)
            network.set_room(self.room)
        _place(sources, targets, network.views.starts, network.views.links)
        for p, q in zip(sources.tolist(), targets.tolist(), strict=True):
            self.known[p].add(q)
            self.known[q].add(p)
        network.links_changed()

    def drop(self, nodes: Columns) -> int:
        """Nobody is linked to these any more; returns how many online ends lost a link, whether they drop it now or
        did so already, because the other said goodbye."""
        network, links, gone = self.network, self.network.views.links, set(nodes.tolist())
        links[np.isin(links, nodes)] = NOBODY
        lost = 0
        for node in gone:
            for other in self.known[node]:
                self.known[other].discard(node)
                lost += bool(network.alive[other]) and other not in gone
            self.known[node].clear()
        self.degree = _count(network.views.starts, links)
        network.links_changed()
        return lost


@njit
def _place(sources: Columns, targets: Columns, starts: Starts, links: NDArray[np.int32]) -> None:
    """Each link into the first free place at both ends; there is room."""
    for i in range(len(sources)):
        for node, other in ((sources[i], targets[i]), (targets[i], sources[i])):
            at = starts[node]
            while links[at] != NOBODY:
                at += 1
            links[at] = other


@njit
def _count(starts: Starts, links: NDArray[np.int32]) -> Columns:
    out = np.zeros(len(starts) - 1, np.int32)
    for node in range(len(out)):
        for at in range(starts[node], starts[node + 1]):
            out[node] += links[at] != NOBODY
    return out
