"""RVR over arrays, round by round: all links serve the ring; every subscriber is a gateway that looks its topic up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, ring_rows, small_world
from grapevine.blocks.exchange import Exchange, NewRows, Rules, Select
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.sights import is_news, new_sights, see
from grapevine.blocks.small_world import Ids
from grapevine.kernels.jit import njit
from grapevine.systems.contracts.configs import BoundedConfig, RingConfig
from grapevine.systems.contracts.rounds import Delivery, GossipSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class RvrConfig(RingConfig, BoundedConfig):
    """RVR: rendezvous routing over a bounded small-world table. It has no parameters of its own."""


@njit
def exchange_round(this: Exchange, rows: tuple[int, int], ids: Ids, out: NewRows) -> None:
    """One exchange of the rows first … last-1: gather, fill ring and long slots, hear."""
    views, heard_of = this.views, exchange.new_entries(rows, this)
    near = small_world.new_nearest(views.backups.shape[1])
    most = np.diff(views.starts).max()
    aims, sights, backups = np.empty(most, np.uint64), new_sights(most), np.empty_like(heard_of.nodes)
    for p in range(rows[0], rows[1]):
        node = views.nodes[p]
        if not (this.everyone or views.alive[node]):
            exchange.stay_away(p, this, out)
            continue
        if p + 1 < rows[1]:
            exchange.ask_for_views(p + 1, this)
        size = views.starts[p + 1] - views.starts[p]
        seen = ring_rows.look_out(p, this, ids, size, aims, sights)
        if seen > 0:
            count, more = exchange.gather_news(p, this, heard_of.nodes, backups)
            heard_of.nodes[count : count + more] = backups[:more]
            small_world.read_ids(heard_of, count + more, ids)
            near_by = see(heard_of, count + more, sights, seen, (backups, 0))
            if not is_news(p, (backups, near_by), views, ids, sights, seen):
                exchange.keep_row(p, this, out)
                exchange.note_meetings(p, this, out)
                continue
        some = ring_rows.gather_all(p, this, ids, heard_of)
        ring_rows.link_structured(p, this, ids, heard_of, some, size, aims, near, out)
        exchange.hear(p, this, out)
        exchange.remember(p, this, size, out)


def prepare(_: Any, profiles: Profiles, __: Mapping[str, Any], ___: Mapping[str, Any]) -> Select:
    """The kernel of an exchange: it reads ring ids alone."""
    return lambda rows, this, out: exchange_round(this, rows, profiles.ids, out)


class Rvr(GossipSystem):
    """RVR on a network: every subscriber looks its topics up, and events travel on the trees of these paths."""

    config_type = RvrConfig
    config: RvrConfig
    ring_slots = small_world.RING_SLOTS

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["successor", "predecessor"] + ["long"] * (size - small_world.RING_SLOTS)

    def rules(self) -> Rules:
        return Rules(prepare, self.config, {}, steady=True)

    def delivery(self) -> Delivery:
        """Lookup trees alone: no links between subscribers carry events, except where they are on a lookup's path."""
        return Delivery(floods=False, gateways=np.ones(len(self.network.topic_nodes.columns), np.bool_))
