"""What a node knows of others, and the arrays in which Vitis' rules want it: a row per candidate, its own first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.entries import Entries
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY, Views
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.book import Book
from grapevine.systems.vitis.config import VitisRules
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.rules import select_neighbors, tie_state

# What the topics weigh that a node has in common with this one, and all that it has; of this node itself, its own.
Overlap = Callable[[Address], tuple[int, int]]

_OWN = 0


class VitisBook(Book[Descriptor]):
    """The book of a Vitis node: it also remembers since when sessions last, and chooses among nodes.

    `seed` is of this session's draws, `tie_seed` of the ties between equally good friends: the hash of a pair of
    addresses decides them, in every session alike, and as by rounds where both have the same seed and numbers of nodes.
    """

    def __init__(self, me: Descriptor, seed: int, tie_seed: int = 0) -> None:
        super().__init__(me)
        self._seed = seed
        address: Any = np.uint64(me.node)  # one type for all of them, or each half would compile its own
        self._ties = np.uint64(tie_state(tie_seed, address, False))
        self._began: dict[Address, float] = {}  # when their sessions began

    def describe(self, now: float, node: Address) -> Descriptor:
        known, heard = self.known[node], self.heard[node]
        up_s, age_s = heard - self._began[node], now - heard
        return Descriptor(node, known.ring_id, known.version, known.topic_count, up_s, age_s)

    def _note(self, node: Address, found: Descriptor, heard: float) -> None:
        super()._note(node, found, heard)
        self._began[node] = heard - found.up_s

    def forget(self, node: Address, gone: float = -np.inf) -> None:
        super().forget(node, gone)
        self._began.pop(node, None)

    def has_settled(self, node: Address, now: float, settle_s: float) -> bool:
        """Whether the session of a known node, or of this one, has lasted for so long."""
        began = now - self.me.up_s if node == self.me.node else self._began[node]
        return now - began >= settle_s

    def select(
        self,
        now: float,
        config: VitisRules,
        settle_s: float,
        candidates: Iterable[Address],
        backups: list[Address],
        overlap: Overlap,
    ) -> tuple[list[Address], list[Address]]:
        """Algorithm 4: a new table from the candidates, and new ring backups from these and the old ones.

        Ring links are taken among nodes that have been there for `settle_s`. Free slots of the table are NOBODY.
        """
        near = [node for node in backups if node in self.known]  # these serve the ring alone
        others = [node for node in candidates if node in self.known]
        nodes = list(dict.fromkeys([self.me.node, *near, *others]))
        row_of = {node: row for row, node in enumerate(nodes)}
        arrays = _Arrays(self, now, settle_s, nodes, overlap)
        rows = np.array([row_of[node] for node in [*near, *others]], np.int32)
        table = np.full(config.table_size, NOBODY, np.int32)
        kept = np.full(2 * config.ring_backups, NOBODY, np.int32)
        select_neighbors(
            (self._seed, _OWN),
            Entries(rows, np.empty(len(rows), np.uint64)),
            len(near),
            (np.ones_like(arrays.settled), arrays.settled),
            arrays.profiles,
            (self._ties, np.array(nodes, np.uint64)),
            config.ring_and_long_links,
            (table, kept),
        )
        return (
            [NOBODY if row == NOBODY else nodes[row] for row in table.tolist()],
            [nodes[row] for row in kept.tolist() if row != NOBODY],
        )

    def next_hops(
        self, now: float, settle_s: float, keys: NDArray[np.uint64], links: list[Address]
    ) -> list[tuple[Address, NDArray[np.int64]]]:
        """Greedy lookup over the links: by next hop, the indices of the keys that it is for.

        A key is left out if no link has settled for `settle_s`, or this node has and none of those is nearer to it.
        """
        nodes = [self.me.node, *links]
        ids = np.array([self.me.ring_id, *(self.known[node].ring_id for node in links)], np.uint64)
        settled = np.array([self.has_settled(node, now, settle_s) for node in nodes], np.bool_)
        rows = np.arange(1, len(nodes), dtype=np.int32)
        out = np.empty(len(keys), np.int32)
        small_world.next_hops(_OWN, keys, 0, ids, _views(settled, rows), out)
        return [(nodes[row], np.flatnonzero(out == row)) for row in np.unique(out[out != NOBODY]).tolist()]


def _views(settled: NDArray[np.bool_], links: NDArray[np.int32]) -> Views:
    """A table of links, and nothing else, as rules read it."""
    empty, own = np.empty((0, 0), np.int32), np.array([_OWN], np.int32)
    starts, heard = np.array([0, len(links)], np.int64), np.zeros(len(links), np.int32)
    return Views(own, starts, links, heard, empty, empty, empty, np.ones(len(settled), np.bool_), settled)


class _Arrays:
    """Some nodes of the book, this one first, as rules read them.

    The rule of friends adds the weights of common topics up. Their sum is known, so there is one topic per row that
    weighs as much, and this node has them all: the sums are the same, whatever the number of topics.
    """

    def __init__(self, book: VitisBook, now: float, settle_s: float, nodes: list[Address], overlap: Overlap) -> None:
        size = len(nodes)
        known = [book.me, *(book.known[node] for node in nodes[1:])]
        ids = np.array([descriptor.ring_id for descriptor in known], np.uint64)
        self.settled = np.array([book.has_settled(node, now, settle_s) for node in nodes], np.bool_)
        weights, mass = np.array([overlap(node) for node in nodes], np.int64).T.copy()
        weights[_OWN] = 0
        topics = np.concatenate([np.arange(size), np.arange(1, size)]).astype(np.uint16)
        starts = np.concatenate([[0], np.arange(size, 2 * size)]).astype(np.int64)
        self.profiles = Profiles(ids, starts, topics, weights, mass)
