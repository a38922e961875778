"""Trellis over arrays: a round of heartbeats, offers, wishes and agreements.

Every step reads the state of its start, but for `agree`, which handles requests one by one on one thread.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY, group_contacts
from grapevine.kernels.csr import Columns, fill_rows
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import draw
from grapevine.systems.contracts.rounds import Delivery, RoundSystem, Sent, Ways
from grapevine.systems.trellis.agreement import KINDS, Links, add_roles, agree, drop_silent
from grapevine.systems.trellis.config import TrellisConfig
from grapevine.systems.trellis.hearing import Patience, hear
from grapevine.systems.trellis.offers import Offers, join_offers, no_offers, offer
from grapevine.systems.trellis.paths import Sought, Topics, find_ways
from grapevine.systems.trellis.rules import margin_now, next_interval
from grapevine.systems.trellis.state import (
    Flags,
    Labels,
    Memory,
    Overlay,
    Standing,
    begin,
    new_labels,
    new_memory,
    new_standing,
    where_entries_were,
)
from grapevine.systems.trellis.wishes import PHASE, TURN, Lists, Look, Taste, Wishes, choose_partners, wish


class Trellis(RoundSystem):
    """Trellis on a network. `labels` are what everybody tells, by (node, own topic)."""

    config_type = TrellisConfig
    config: TrellisConfig
    labels: Labels
    memory: Memory

    def __init__(self, config: TrellisConfig, network: Network) -> None:
        super().__init__(config, network)
        self.standing = new_standing(network.size)
        self._values = np.zeros((network.size, config.most_links))
        self._made = np.zeros((network.size, config.most_links), np.int32)
        self._prospects = np.full((network.size, config.prospects), NOBODY, np.int32)
        self._sent = np.zeros(len(KINDS), np.int64)
        self._make_entries()
        everybody = np.arange(network.size, dtype=np.int32)
        begin(everybody, network.now, network.profiles, self.labels, self.memory)

    @classmethod
    def within(cls, links: int) -> dict[str, Any]:
        return {"most_links": links}

    def most_links(self) -> int:
        return self.config.most_links

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.most_links, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["neighbour"] * size

    def _make_entries(self) -> None:
        profiles = self.network.profiles
        self._entries, entries = (profiles.starts, profiles.topics), len(profiles.topics)
        self.labels, self._other, self.memory = new_labels(entries), new_labels(entries), new_memory(entries)

    def _overlay(self) -> Overlay:
        network = self.network
        return Overlay(network.now, network.alive, network.joined, network.profiles, self._rows().links)

    def _rows(self) -> Links:
        shape, rows = self._values.shape, self.network.rows
        return Links(rows.links.reshape(shape), rows.heard.reshape(shape), self._values, self._made)

    def round(self) -> None:
        network, rows, alive = self.network, self._rows(), self.network.alive
        now, max_age, lost = network.now, self.config.max_age, self.standing.lost
        network.in_chunks(lambda a, b: drop_silent((a, b), (now, max_age), rows, alive, lost))
        find_losses(now, rows.links, self.standing)
        network.sample()
        overlay = self._overlay()
        self._hear(overlay)
        is_due = find_due(network.seed, now, self.config.calm_rounds, alive, self.standing)
        self._agree(overlay, rows, self._wish(overlay, is_due))
        rest(now, self.config.calm_rounds, self.config.most_interval, is_due, self.standing, rows.links)
        network.links_changed()

    def _hear(self, overlay: Overlay) -> None:
        """Offers, then heartbeats: new labels, and what links are worth."""
        network, config, before = self.network, self.config, self.labels
        offered = self._offers(overlay)
        patience = Patience(
            config.stall_rounds,
            config.linger_rounds,
            config.enough_neighbours,
            config.spare_value,
            config.surplus_value,
        )
        out = self._other, self._values, self._made

        def work(first: int, last: int) -> None:
            hear((first, last), overlay, patience, offered.bridge, before, self.memory, out)
            add_roles((first, last), overlay, config.bridge_value, offered.in_use, self._values)

        network.in_chunks(work)
        self.labels, self._other = self._other, before

    def _offers(self, overlay: Overlay) -> Offers:
        """Everybody's, joined: the best of several is the best of all, so it does not matter how they were split."""
        entries, shape, adding = len(self.labels.root), self._values.shape, Lock()
        total = no_offers(entries, shape)
        if not self.config.bridges:
            return total

        def work(first: int, last: int) -> None:
            some = total if (first, last) == (0, self.network.size) else no_offers(entries, shape)
            offer((first, last), overlay, self.labels, some)
            if some is not total:
                with adding:
                    join_offers(overlay.profiles, some, total)

        self.network.in_chunks(work)
        return total

    def _wish(self, overlay: Overlay, is_due: Flags) -> Wishes:
        network, config, rows = self.network, self.config, self.network.rows
        partner = np.empty(network.size, np.int32)
        look = Look(network.seed, is_due, partner, *group_contacts(partner[:0]), config.callers)
        network.in_chunks(lambda a, b: choose_partners((a, b), overlay, look, rows.cache))
        look = Look(network.seed, is_due, partner, *group_contacts(partner), config.callers)
        lists = Lists(rows.cache, rows.backups, self._prospects)
        new = Lists(rows.cache, np.empty_like(rows.backups), np.empty_like(self._prospects))
        friends = np.empty((network.size, config.requests), np.int32)
        out = Wishes(np.empty((network.size, 2), np.int32), friends, np.zeros(friends.shape), new)
        taste = self._taste()
        network.in_chunks(lambda a, b: wish((a, b), overlay, look, taste, lists, out))
        rows.backups, self._prospects = new.backups, new.prospects
        return out

    def _taste(self) -> Taste:
        config = self.config
        worth = config.enough_neighbours, config.spare_value, config.surplus_value
        return Taste(self.labels, self.memory, *worth, config.patience_rounds, config.calm_rounds)

    def _agree(self, overlay: Overlay, rows: Links, wanted: Wishes) -> None:
        network, config = self.network, self.config
        margins = find_margins(
            network.now, config.calm_rounds, (config.margin, config.stiffness, config.margin_after_loss), self.standing
        )
        order = random_order(network.seed, network.now, network.size)
        agree(order, overlay, rows, wanted, self._taste(), margins, (self.standing, self._sent))

    def forget(self, nodes: Columns) -> None:
        network, standing = self.network, self.standing
        begin(nodes[network.alive[nodes]], network.now, network.profiles, self.labels, self.memory)
        self._prospects[nodes] = NOBODY
        for each, fresh in zip(standing, new_standing(len(nodes)), strict=True):
            each[nodes] = fresh
        standing.quiet_since[nodes] = standing.freed[nodes] = network.now

    def interests_changed(self, nodes: Columns) -> None:
        """Labels and what is remembered of topics that a node still wants stay; in new ones it is its own root."""
        network, old, memory, rows = self.network, self.labels, self.memory, self._entries
        super().interests_changed(nodes)
        self._make_entries()
        everybody = np.arange(network.size, dtype=np.int32)
        begin(everybody, network.now, network.profiles, self.labels, self.memory)
        were = where_entries_were(rows, (network.profiles.starts, network.profiles.topics))
        kept = were != NOBODY
        for before, after in zip((*old, *memory), (*self.labels, *self.memory), strict=True):
            after[kept] = before[were[kept]]

    def messages(self) -> dict[str, Sent]:
        """Requests and their answers; a request and a refusal carry a descriptor."""
        carried = {"connect": 1, "refuse": 1}
        return {
            kind: Sent(count, carried.get(kind, 0) * count)
            for kind, count in zip(KINDS, self._sent.tolist(), strict=True)
        }

    def delivery(self) -> Delivery:
        return self.flooding()._replace(ways=self._ways())

    def _ways(self) -> Ways:
        """What joins the clusters of every topic now."""
        network, config, overlay = self.network, self.config, self._overlay()
        starts, nodes = network.topic_nodes.starts, network.topic_nodes.columns
        entries = fill_rows(network.profiles.topics.astype(np.int32), np.arange(len(nodes), dtype=np.int32), starts)
        wants, sought = Topics(network.topic_ids, starts, nodes, entries), Sought(config.bridges, config.probes)
        found: dict[int, tuple[NDArray[np.int64], Columns, Columns]] = {}

        def work(first: int, last: int) -> None:
            found[first] = find_ways((first, last), wants, overlay, self.labels, self.memory, sought)

        network.in_chunks(work, len(network.topic_ids), network.topic_nodes.sizes())
        parts = [found[first] for first in sorted(found)]
        counts = np.concatenate([[0], *(part[0] for part in parts)])
        sources, targets = (np.concatenate([part[i] for part in parts]).astype(np.int32) for i in (1, 2))
        return Ways(np.cumsum(counts).astype(np.int64), sources, targets)


@njit
def find_losses(now: int, links: NDArray[np.int32], standing: Standing) -> None:
    """Who has fewer links than at the end of the last round has lost some, by silence, a goodbye or a new session of
    the other end: it looks for friends in every round again."""
    for p in range(len(standing.degree)):
        if degree_of(p, links) < standing.degree[p]:
            standing.freed[p], standing.interval[p], standing.quiet_since[p] = now, 1, now


@njit
def degree_of(p: int, links: NDArray[np.int32]) -> int:
    """The links of p."""
    count = 0
    for s in range(links.shape[1]):
        count += links[p, s] != NOBODY
    return count


@njit
def find_due(seed: int, now: int, calm_rounds: int, alive: Flags, standing: Standing) -> Flags:
    """Who looks for friends in this round: everybody in a round of its own among those of its interval, and in every
    round for a while after a link was lost, however."""
    out = np.zeros(len(alive), np.bool_)
    for p in range(len(alive)):
        interval = int(standing.interval[p])
        phase = np.int64(draw(seed, PHASE, p, 0) >> np.uint64(32)) % interval
        out[p] = alive[p] and (now % interval == phase or now - standing.freed[p] < calm_rounds)
    return out


@njit
def rest(
    now: int, calm_rounds: int, most_interval: int, is_due: Flags, standing: Standing, links: NDArray[np.int32]
) -> None:
    """Whoever has looked waits longer for the next time, if it has lost nobody for a while."""
    for p in range(len(is_due)):
        standing.degree[p] = degree_of(p, links)
        if is_due[p]:
            interval, since = int(standing.interval[p]), int(standing.quiet_since[p])
            standing.interval[p] = next_interval(interval, now, since, calm_rounds, most_interval)


@njit
def find_margins(
    now: int, calm_rounds: int, margins: tuple[float, float, float], standing: Standing
) -> NDArray[np.float64]:
    """By how much a friend must be better, by node: `margin`, `stiffness` and `margin_after_loss` of the config."""
    margin, stiffness, after_loss = margins
    out = np.empty(len(standing.lost))
    for p in range(len(out)):
        out[p] = margin_now(margin, stiffness, int(standing.interval[p]))
        if now - standing.lost[p] < calm_rounds:
            out[p] = after_loss
    return out


@njit
def random_order(seed: int, now: int, size: int) -> Columns:
    """All nodes in random order, another one in every round."""
    keys = np.empty(size, np.uint64)
    for p in range(size):
        keys[p] = draw(seed, now, p, TURN)
    return np.argsort(keys).astype(np.int32)
