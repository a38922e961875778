"""What a node knows of others, and the arrays in which Vitis' rules want it: a row per candidate, its own first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.exchange import Entries
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY, Views
from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.config import VitisRules
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.rules import select_neighbors, tie_state

# What the topics weigh that a node has in common with this one, and all that it has; of this node itself, its own.
Overlap = Callable[[Address], tuple[int, int]]

_OWN = 0


class Book:
    """Descriptors of known nodes, with the time at which somebody last heard of each.

    What a node knows is in four dictionaries with the same keys; `forget` removes it from all. `seed` is of this
    session's draws, `tie_seed` of the ties between equally good friends: the hash of a pair of addresses decides them,
    in every session alike, and as by rounds where both have the same seed and numbers of nodes.
    """

    def __init__(self, me: Descriptor, seed: int, tie_seed: int = 0) -> None:
        self.me, self._seed = me, seed
        address: Any = np.uint64(me.node)  # one type for all of them, or each half would compile its own
        self._ties = np.uint64(tie_state(tie_seed, address, False))
        self.known: dict[Address, Descriptor] = {}
        self.heard: dict[Address, float] = {}
        self.described_by: dict[Address, Address] = {}  # from whom the descriptors are
        self._began: dict[Address, float] = {}  # when their sessions began
        self._gone: dict[Address, float] = {}  # nodes that were dropped; what others heard of them before is old news

    def learn(self, now: float, descriptors: Iterable[Descriptor], sender: Address | None = None) -> None:
        """Take what others know, where it is fresher. What the sender says of itself counts in any case."""
        for found in descriptors:
            node, heard = found.node, now - max(found.age_s, 0.0)
            if node == self.me.node:
                continue
            if node != sender and heard <= max(self.heard.get(node, -np.inf), self._gone.get(node, -np.inf)):
                continue
            known = self.known.get(node)
            if known is None or found.version >= known.version or node == sender:
                self.known[node] = found
                self._began[node] = heard - found.up_s
                self.described_by[node] = node if sender is None else sender
            self.hear(node, heard)

    def hear(self, node: Address, when: float) -> None:
        """A sign of life of a node at this time; nothing happens if it is not known."""
        if node in self.known:
            self.heard[node] = max(when, self.heard.get(node, when))

    def note_version(self, node: Address, version: int) -> None:
        """The node itself said which version its profile has."""
        if node in self.known:
            self.known[node] = msgspec.structs.replace(self.known[node], version=version)

    def forget(self, node: Address, gone: float = -np.inf) -> None:
        """Drop a node; what others heard of it until `gone` does not bring it back."""
        if self.known.pop(node, None) is not None:
            del self.heard[node], self._began[node], self.described_by[node]
            if gone > -np.inf:
                self._gone[node] = gone

    def forget_older(self, when: float) -> None:
        """Drop those of whom nobody has heard since this time."""
        for node in [node for node, heard in self.heard.items() if heard < when]:
            self.forget(node)
        self._gone = {node: gone for node, gone in self._gone.items() if gone >= when}

    def trim(self, most: int, keep: Collection[Address]) -> None:
        """Of the others than those to keep, only the most recently heard of stay."""
        others = {node: heard for node, heard in self.heard.items() if node not in keep}
        for node in by_freshness(others, len(others))[most:]:
            self.forget(node)

    def descriptors_of(self, now: float, nodes: Iterable[Address]) -> tuple[Descriptor, ...]:
        """Descriptors to send, each with its age; those of nodes that are not known are left out."""
        heard, began = self.heard, self._began
        return tuple(
            Descriptor(d.node, d.ring_id, d.version, d.topic_count, heard[d.node] - began[d.node], now - heard[d.node])
            for d in (self.known[node] for node in nodes if node in self.known)
        )

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

    def __init__(self, book: Book, now: float, settle_s: float, nodes: list[Address], overlap: Overlap) -> None:
        size = len(nodes)
        known = [book.me, *(book.known[node] for node in nodes[1:])]
        ids = np.array([descriptor.ring_id for descriptor in known], np.uint64)
        self.settled = np.array([book.has_settled(node, now, settle_s) for node in nodes], np.bool_)
        weights, mass = np.array([overlap(node) for node in nodes], np.int64).T.copy()
        weights[_OWN] = 0
        topics = np.concatenate([np.arange(size), np.arange(1, size)]).astype(np.uint16)
        starts = np.concatenate([[0], np.arange(size, 2 * size)]).astype(np.int64)
        self.profiles = Profiles(ids, starts, topics, weights, mass)


def by_freshness(heard: Mapping[Address, float], most: int) -> list[Address]:
    """At most so many of these nodes, the most recently heard of first; ties go to the smaller address."""
    return sorted(heard, key=lambda node: (-heard[node], node))[:most]
