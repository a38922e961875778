"""A system whose overlay is designed by somebody who knows everything (the baselines of OMen, DEBS 2016).

A centre with full knowledge adds edges until every topic is connected; nodes only obey. The rules, and what each is
good for, are in `blocks/overlay_design`. Under churn the centre sees who is there at once, and either designs anew
(LowODA-Re) or keeps the edges among those who stay and adds what is missing (LowODA-Inc).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.overlay_design import Edges, design
from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns
from grapevine.metrics.catalogue import Metric
from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import FloodingConfig
from grapevine.systems.contracts.rounds import Delivery, RoundSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignConfig(FloodingConfig):
    """Parameters of a design from full knowledge."""

    repair: str = parameter(
        "rebuild",
        "after churn: design anew, or keep the edges among those who stay and add what is missing",
        source="OMen Table 3: LowODA-Re, LowODA-Inc",
        choices=("rebuild", "mend"),
    )


REPAIR_MS = Metric(
    "repair_ms", "repair, mean", "Processor time that the repair after a change takes.", "ms", better="low"
)

REPAIR_MS_JOIN = Metric(
    "repair_ms_join",
    "repair after a join, mean",
    "Processor time that the repair after a join takes.",
    "ms",
    better="low",
)
REPAIR_MS_LEAVE = Metric(
    "repair_ms_leave",
    "repair after a leave, mean",
    "Processor time that the repair after a leave or crash takes.",
    "ms",
    better="low",
)

NO_EDGES: Edges = np.empty(0, np.int32), np.empty(0, np.int32)


def design_overlay(network: Network, rule: int, rho: float, existing: Edges) -> Edges:
    """Edges that connect every topic among the online nodes: the existing ones, which are between these, and new ones.

    The rules number online nodes from 0; arguments and answer have the numbers of the network.
    """
    online = np.flatnonzero(network.alive).astype(np.int32)
    position = np.full(network.size, NOBODY, np.int32)
    position[online] = np.arange(len(online))
    profiles = network.profiles
    rows = csr.row_numbers(profiles.starts)
    wanted = network.alive[rows]
    starts = csr.count_rows(position[rows[wanted]], len(online))
    topics = profiles.topics[wanted].astype(np.int32)
    kept = position[existing[0]], position[existing[1]]
    low, high = design(network.seed, rule, rho, (starts, topics), len(network.topic_ids), kept)
    return online[low], online[high]


class DesignedSystem(RoundSystem):
    """A centre that designs the overlay whenever who is there, or what they want, has changed; nodes send nothing."""

    config: DesignConfig
    needs = "a centre that knows everybody's subscriptions, at every change"
    own_findings = (REPAIR_MS, REPAIR_MS_JOIN, REPAIR_MS_LEAVE)
    rule: ClassVar[int]  # GM, MINMAX_ODA or LOW_ODA

    def __init__(self, config: DesignConfig, network: Network) -> None:
        self._edges = NO_EDGES
        self._repair_s: list[float] = []  # CPU seconds of designs after churn
        self._alone_s: dict[Metric, list[float]] = {}  # of those after joins alone, and after leaves alone
        # Who was online at the last design; where it differs from who is online now, a new design is due.
        self._designed_for = np.zeros(network.size, np.bool_)
        super().__init__(config, network)

    @property
    def rho(self) -> float:
        """ρ of LowODA; the other rules do not look at it."""
        return 1.0

    def row_sizes(self) -> NDArray[np.int64]:
        return np.bincount(np.concatenate(self._edges), minlength=self.network.size).astype(np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["designed"] * size

    def round(self) -> None:
        if not np.array_equal(self._designed_for, self.network.alive):
            self._design()

    def forget(self, nodes: Columns) -> None:
        """Edges of nodes that left, or came back, are gone; the next round designs anew."""
        gone = np.zeros(self.network.size, np.bool_)
        gone[nodes] = True
        keep = ~(gone[self._edges[0]] | gone[self._edges[1]])
        self._edges = self._edges[0][keep], self._edges[1][keep]
        self._designed_for[nodes] = ~self.network.alive[nodes]

    def interests_changed(self, nodes: Columns) -> None:
        """The next round designs anew."""
        self._designed_for[:] = False

    def _design(self) -> None:
        """A new design for those who are online, and its edges into the tables."""
        began, first = time.thread_time(), not self._designed_for.any()
        existing = self._edges if self.config.repair == "mend" else NO_EDGES
        self._edges = design_overlay(self.network, self.rule, self.rho, existing)
        if not first:
            self._note_time(time.thread_time() - began)
        self._designed_for = self.network.alive.copy()
        self._store()

    def _note_time(self, seconds: float) -> None:
        """What the design took; where both came and went since the last one, it belongs to neither."""
        self._repair_s.append(seconds)
        came, went = self.network.alive & ~self._designed_for, self._designed_for & ~self.network.alive
        if came.any() != went.any():
            self._alone_s.setdefault(REPAIR_MS_JOIN if came.any() else REPAIR_MS_LEAVE, []).append(seconds)

    def _store(self) -> None:
        """Every edge into the tables of both ends."""
        network = self.network
        network.set_room(self.row_sizes())
        ends, others = np.concatenate(self._edges), np.concatenate(self._edges[::-1])
        network.views.links[:] = others[np.argsort(ends, kind="stable")]
        network.views.heard[:] = network.now
        network.links_changed()

    def delivery(self) -> Delivery:
        return self.flooding()

    def findings(self) -> dict[str, float]:
        times = {REPAIR_MS: self._repair_s, **self._alone_s}
        return {metric.name: 1000 * float(np.mean(seconds)) for metric, seconds in times.items() if seconds}
