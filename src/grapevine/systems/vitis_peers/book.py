"""What a node knows of others, and the arrays in which Vitis' rules want it: a row per known node, its own first.

Rules break ties by row numbers, so a node keeps its row as long as it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.candidates import Candidates, new_candidates, offer_all, start_over
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY, Views
from grapevine.systems.peer import Address
from grapevine.systems.vitis import VitisConfig, select_neighbors
from grapevine.systems.vitis_peers.messages import Descriptor

_ROWS = 512  # room at first
_OWN = 0


class Book:
    """Descriptors of known nodes, with the time at which somebody last heard of each."""

    def __init__(self, me: Descriptor, seed: int) -> None:
        self.me, self._seed = me, seed
        self.known: dict[Address, Descriptor] = {}
        self.heard: dict[Address, float] = {}
        self._since: dict[Address, float] = {}  # when their sessions began
        self._rows: dict[Address, int] = {me.node: _OWN}
        self._free: list[int] = []

    def learn(self, now: float, news: Iterable[Descriptor]) -> None:
        """Take what others know, where it is fresher."""
        for told in news:
            heard = now - max(told.age_s, 0.0)
            if told.node != self.me.node and heard > self.heard.get(told.node, -np.inf):
                known = self.known.get(told.node)
                if known is None or told.version >= known.version:
                    self.known[told.node] = told
                    self._since[told.node] = heard - told.up_s
                self.hear(told.node, heard)

    def hear(self, node: Address, when: float) -> None:
        """A sign of life of a known node."""
        if node in self.known:
            self.heard[node] = max(when, self.heard.get(node, when))
            if node not in self._rows:
                self._rows[node] = self._free.pop() if self._free else len(self._rows)

    def forget(self, node: Address) -> None:
        """It is gone."""
        if self.known.pop(node, None) is not None:
            del self.heard[node], self._since[node]
            self._free.append(self._rows.pop(node))

    def forget_older(self, when: float) -> None:
        """Nobody has heard of these since."""
        for node in [node for node, heard in self.heard.items() if heard < when]:
            self.forget(node)

    def told(self, now: float, nodes: Iterable[Address]) -> tuple[Descriptor, ...]:
        """Descriptors to send, each with its age."""
        heard, since = self.heard, self._since
        return tuple(
            Descriptor(d.node, d.ring_id, d.version, d.topics, heard[d.node] - since[d.node], now - heard[d.node])
            for d in (self.known[node] for node in nodes if node in self.known)
        )

    def has_settled(self, node: Address, now: float, settle_s: float) -> bool:
        """Whether the node has been there for so long."""
        began = now - self.me.up_s if node == self.me.node else self._since[node]
        return now - began >= settle_s

    def select(
        self, now: float, config: VitisConfig, settle_s: float, candidates: Iterable[Address], backups: list[Address]
    ) -> tuple[list[Address], list[Address]]:
        """Algorithm 4: a new table from the candidates, and new ring backups from these and the old ones."""
        arrays = Arrays(self, now, settle_s)
        pool = arrays.pool(candidates)
        picks = np.full(config.table_size, NOBODY, np.int32)
        end = pool.size[0]
        kept = np.full(2 * config.ring_backups, NOBODY, np.int32)
        arrays.offer(pool, backups)  # the backups serve the ring alone (small_world.fill_ring)
        if len(kept):
            small_world.keep_backups(_OWN, arrays.profiles.ids, arrays.views.alive, pool, kept)
        small_world.choose_ring(_OWN, arrays.profiles.ids, arrays.views, pool, picks)
        ring = [int(pool.nodes[at]) if at >= 0 else NOBODY for at in picks[: small_world.RING_SLOTS]]
        pool.size[0] = end
        scratch = np.zeros_like(arrays.profiles.weights), np.empty(len(pool.nodes), np.int64)
        select_neighbors(self._seed, _OWN, pool, arrays.profiles, config.ring_and_long_links, scratch, picks)
        rows = [*ring, *(int(pool.nodes[at]) if at >= 0 else NOBODY for at in picks[small_world.RING_SLOTS :])]
        node_of = {row: node for node, row in self._rows.items()}
        return [node_of.get(row, NOBODY) for row in rows], [node_of[row] for row in kept.tolist() if row != NOBODY]

    def next_hop(self, now: float, settle_s: float, key: int, table: list[Address], fresh: float) -> Address | None:
        """Greedy lookup over the table; links that were silent since `fresh` are not used."""
        arrays = Arrays(self, now, settle_s)
        links = [self._rows[node] for node in table if node in self._rows and self.heard[node] >= fresh]
        views = arrays.views._replace(
            starts=np.array([0, len(links)], np.int64),
            links=np.array(links, np.int32),
            heard=np.zeros(len(links), np.int32),
        )
        row = small_world.next_hop(_OWN, np.uint64(key), 0, arrays.profiles.ids, views)
        return next((node for node, number in self._rows.items() if number == row), None)


class Arrays:
    """The book as rules read it. Topics are numbered by this node's own; all others are one number without weight."""

    def __init__(self, book: Book, now: float, settle_s: float) -> None:
        self._rows = book._rows
        size = max(self._rows.values()) + 1
        own = {topic: i for i, topic in enumerate(book.me.topics)}
        ids, settled = np.zeros(size, np.uint64), np.zeros(size, np.bool_)
        mass, topics = np.zeros(size, np.int64), [np.empty(0, np.int32)] * size
        for node, row in self._rows.items():
            known = book.me if row == _OWN else book.known[node]
            ids[row] = known.ring_id
            mass[row] = len(known.topics)
            topics[row] = np.array([own[t] for t in known.topics if t in own], np.int32)
            settled[row] = book.has_settled(node, now, settle_s)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in topics])]).astype(np.int64)
        weights = np.ones(max(len(own), 1), np.int32)
        self.profiles = Profiles(ids, starts, np.concatenate(topics).astype(np.uint16), weights, mass)
        nothing, empty = np.empty(0, np.int32), np.empty((0, 0), np.int32)
        self.views = Views(
            np.zeros(2, np.int64), nothing, nothing, empty, empty, empty, np.ones(size, np.bool_), settled
        )

    def pool(self, nodes: Iterable[Address]) -> Candidates:
        """A buffer of candidates, with room for some more."""
        rows = self._of(nodes)
        made = new_candidates(len(rows) + _ROWS)
        start_over(made, len(rows) + _ROWS)
        offer_all(made, rows, np.zeros(len(rows), np.int32), 0, _OWN)
        return made

    def offer(self, pool: Candidates, nodes: Iterable[Address]) -> None:
        """Add these."""
        rows = self._of(nodes)
        offer_all(pool, rows, np.zeros(len(rows), np.int32), 0, _OWN)

    def _of(self, nodes: Iterable[Address]) -> NDArray[np.int32]:
        return np.array([self._rows[node] for node in nodes if node in self._rows], np.int32)


def by_freshness(heard: Mapping[Address, float], most: int) -> list[Address]:
    """The most recently heard of first."""
    return sorted(heard, key=lambda node: (-heard[node], node))[:most]
