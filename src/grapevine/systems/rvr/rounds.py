"""RVR over arrays, round by round: all links serve the ring; every subscriber is a gateway that looks its topic up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, small_world
from grapevine.blocks.candidates import new_candidates, start_over, store
from grapevine.blocks.exchange import Exchange
from grapevine.blocks.network import NewRows
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import NOBODY
from grapevine.kernels.jit import njit
from grapevine.systems.contracts.rounds import Delivery, GossipSystem, RingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RvrConfig(RingConfig):
    """RVR: rendezvous routing over a bounded small-world table. It has no parameters of its own."""


@njit
def exchange_round(this: Exchange, nodes: tuple[int, int], ids: Ids, out: NewRows) -> None:
    """One exchange of the nodes first … last-1: gather, fill ring and long slots, store."""
    first, last = nodes
    links, heard, backups = out
    views = this.views
    pool = new_candidates(exchange.most_candidates(nodes, this))
    for p in range(first, last):
        a, b = views.starts[p], views.starts[p + 1]
        picks = np.full(b - a, NOBODY, np.int32)
        backups[p] = NOBODY
        if views.alive[p]:
            start_over(pool, exchange.bound(p, this))
            exchange.gather(p, this, pool)
            small_world.fill_ring(p, this, ids, pool, picks, backups[p])
            small_world.choose_long(this.seed, p, ids, pool, (small_world.RING_SLOTS, len(picks)), picks)
        store(picks, pool, links[a:b], heard[a:b])


class Rvr(GossipSystem):
    """RVR on a network: every subscriber looks its topics up, and events travel on the trees of these paths."""

    config_type = RvrConfig
    config: RvrConfig
    ring_slots = small_world.RING_SLOTS

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["successor", "predecessor"] + ["long"] * (size - small_world.RING_SLOTS)

    def exchange(self) -> None:
        ids = self.network.ids

        def select(nodes: tuple[int, int], this: Exchange, out: NewRows) -> None:
            exchange_round(this, nodes, ids, out)

        self.network.exchange(select, ring_slots=self.ring_slots, max_age=self.config.max_age)

    def delivery(self) -> Delivery:
        """Lookup trees alone: no links between subscribers carry events, except where they are on a lookup's path."""
        return Delivery(floods=False, gateways=np.ones(len(self.network.topic_nodes.columns), np.bool_))
