"""OPT over arrays, round by round: links by greedy coverage, connections bounded at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange
from grapevine.blocks.candidates import new_candidates, offer_all, start_over
from grapevine.blocks.coverage import choose_greedily
from grapevine.blocks.exchange import Exchange, NewRows, Rules, Select
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import FRIEND_TIES, NOBODY
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import stream
from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import FloodingConfig, GossipConfig
from grapevine.systems.contracts.rounds import Delivery, GossipSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class OptConfig(GossipConfig, FloodingConfig):
    """OPT: an overlay per topic by coverage, with bounded or unbounded degree."""

    table_size: int | None = parameter(
        15,
        "connections that a node may have; none: as many as coverage wants",
        source="Vitis §IV-E",
        low=4,
        high=100_000,
    )
    coverage: int = parameter(
        3, "neighbours that shall share each topic (K)", source="SpiderCast §3.3: (3, 0); Vitis gives none", low=1
    )


@njit
def exchange_round(this: Exchange, rows: tuple[int, int], k: int, profiles: Profiles, out: NewRows) -> None:
    """One exchange of the rows first … last-1: gather, cover every topic k times as far as the table goes, hear."""
    views, heard_of = this.views, exchange.new_entries(rows, this)
    pool = new_candidates(len(heard_of.nodes))
    scratch = np.zeros(len(profiles.weights), np.int64), np.empty(len(pool.nodes), np.int64)
    for p in range(rows[0], rows[1]):
        node = views.nodes[p]
        exchange.stay_away(p, this, out)
        if not views.alive[node]:
            continue
        own = exchange.gather_links(p, this, heard_of.nodes, 0)
        count = exchange.gather(p, this, heard_of.nodes, own)
        count = exchange.with_room(node, heard_of.nodes, own, count, this.full)
        start_over(pool, count)
        offer_all(pool, heard_of.nodes[:count], heard_of.nodes[:count], 0, node)
        a = views.starts[p]
        picks = out.links[a : views.starts[p + 1]]
        choose_greedily(node, k, stream(this.seed, FRIEND_TIES, node), pool, profiles, scratch, picks)
        for slot in range(len(picks)):
            picks[slot] = pool.nodes[picks[slot]] if picks[slot] != NOBODY else NOBODY
        exchange.hear(p, this, out)


def prepare(config: OptConfig, profiles: Profiles, _: Mapping[str, Any], __: Mapping[str, Any]) -> Select:
    """The kernel of an exchange: it reads profiles alone."""
    return lambda rows, this, out: exchange_round(this, rows, config.coverage, profiles, out)


class Opt(GossipSystem):
    """OPT on a network: links by coverage, events over links between subscribers alone."""

    config_type = OptConfig
    config: OptConfig

    @classmethod
    def within(cls, links: int) -> dict[str, Any]:
        return {"table_size": links}

    def most_links(self) -> int | None:
        return self.config.table_size

    def row_sizes(self) -> NDArray[np.int64]:
        wanted = np.diff(self.network.profiles.starts) * self.config.coverage  # each pick serves one at least
        bound = self.network.size - 1 if self.config.table_size is None else self.config.table_size
        return np.asarray(np.minimum(wanted, bound), np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["coverage"] * size

    def rules(self) -> Rules:
        return Rules(prepare, self.config, {})

    def delivery(self) -> Delivery:
        return self.flooding()
