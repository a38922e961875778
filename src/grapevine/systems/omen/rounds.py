"""OMen on a network, round by round: what becomes known, what coordinators do, and the gossip of local views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.overlay_design import LOW_ODA
from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.designs import (
    NO_EDGES,
    REPAIR_MS,
    REPAIR_MS_JOIN,
    REPAIR_MS_LEAVE,
    design_overlay,
)
from grapevine.systems.contracts.rounds import Delivery, RoundSystem, Sent
from grapevine.systems.omen.churn import CHANGE, JOIN, LEAVE, Churn, ChurnEvent
from grapevine.systems.omen.config import OmenConfig
from grapevine.systems.omen.desks import Desks
from grapevine.systems.omen.link_table import LinkTable
from grapevine.systems.omen.local_views import LocalViews
from grapevine.systems.omen.measures import BACKUP_SETS, BACKUP_VIEWS, LOST_EVENTS, MENDING, REPAIR_MS_P95, REPAIRS
from grapevine.systems.omen.mending import Mender
from grapevine.systems.omen.upkeep import Upkeep


class Omen(RoundSystem):
    """OMen on a network: what happened (`churn`), whose desk it is on (`desks`), and how it is mended (`mender`)."""

    config_type = OmenConfig
    config: OmenConfig
    needs = "a centre that knows everybody's subscriptions, for the first overlay"
    own_tables = (MENDING, BACKUP_VIEWS)
    own_findings = (LOST_EVENTS, REPAIR_MS, REPAIR_MS_P95, REPAIR_MS_JOIN, REPAIR_MS_LEAVE)

    def __init__(self, config: OmenConfig, network: Network) -> None:
        self.local, self.links = LocalViews(network, config.resilience), LinkTable(network)
        self.churn, self.upkeep = Churn(), Upkeep()
        self.mender = Mender(config, network, self.local, self.links, self.churn, self.upkeep)
        self.desks = Desks(network, self.local, self.churn, self.mender, self.upkeep, config.timeout)
        self._begun = False
        super().__init__(config, network)
        self._make_room_for_backups()

    # A round

    def round(self) -> None:
        self.network.sample()
        if not (self.mender.settled & self.network.alive).any():
            self._begin()
        for event in self._detect():
            self.desks.announce(event)
        self.desks.work()
        if self.config.view == "partial":
            self._exchange_views()
            for event in self.mender.meetings():
                self.desks.announce(event)

    def _begin(self) -> None:
        """The first overlay, or the first after everybody had left, is LowODA's (§6.5)."""
        network, self._begun = self.network, True
        for record in (self.churn, self.desks.of, self.mender.lonely):
            record.clear()
        self.local.present[:] = self.mender.settled[:] = network.alive
        self.links.drop(np.flatnonzero(~network.alive).astype(np.int32))
        self.mender.add_edges(*design_overlay(network, LOW_ODA, self.config.rho, NO_EDGES))
        self.local.ring_changed(())  # its first successors have just been told each node's links
        self.mender.compile()

    def _exchange_views(self) -> None:
        """One round of the local view layer (§4.3). Who has become a backup is asked for its topics, and answers."""
        messages, descriptors, asked = self.local.exchange(self.mender.search_now())
        self.upkeep.count("gossip", messages, descriptors)
        self.upkeep.count("ask", 2 * asked, asked)

    def _make_room_for_backups(self) -> None:
        self._interests = self.network.profiles.starts, self.network.profiles.topics
        self.local.make_room(self.mender.company if self.config.view == "partial" else 0)

    # What happens to nodes

    def say_goodbye(self, nodes: Columns) -> None:
        """A graceful leave: neighbours and the immediate successor are told, so that the others know at once."""
        if self._begun:
            for node in nodes.tolist():
                self.upkeep.count("leave", len(self.links.of(node)) + 1)
                self._depart(node, detected=self.network.now)
        super().say_goodbye(nodes)

    def forget(self, nodes: Columns) -> None:
        """Crashes and joins. A crash is found out by silence, or when the node comes back with nothing."""
        if not self._begun:
            return
        network, departed = self.network, self.churn.departed
        for node in nodes.tolist():
            left_now = node in departed and departed[node].began == network.now  # and said goodbye
            if self.local.present[node] and not left_now:
                back = bool(network.alive[node])
                self._depart(node, detected=network.now + (0 if back else self.config.max_age))
            self.desks.clear_of(node)
            self.mender.lonely.pop(node, None)
            if network.alive[node]:
                self.churn.newcomers.append(node)

    def _depart(self, node: int, *, detected: int) -> None:
        """What its successors know of it when it goes: they hear of changed links in the round of the change."""
        network, (starts, topics) = self.network, self._interests
        others = self.churn.neighbours_known(node, self.links)
        mine = topics[starts[node] : starts[node + 1]].astype(np.int32)
        for event in self.churn.unhandled(node):  # came back and went again, or changed its interests and went
            others |= event.neighbours
            mine = np.union1d(mine, event.topics).astype(np.int32)
        self.churn.departed[node] = ChurnEvent(LEAVE, node, network.now, mine, others, detected)

    def interests_changed(self, nodes: Columns) -> None:
        """What these had to do with their old topics is handled like a leave, the new ones like a join."""
        network, (starts, topics) = self.network, self._interests
        self._make_room_for_backups()
        if not self._begun:
            return
        for node in nodes[self.local.present[nodes] & network.alive[nodes]].tolist():
            before, after = topics[starts[node] : starts[node + 1]], self.mender.topics_of(node)
            both = np.union1d(before, after).astype(np.int32)
            near = self.churn.neighbours_known(node, self.links)
            self.churn.changed.append(ChurnEvent(CHANGE, node, network.now, both, near, detected=network.now))

    def _detect(self) -> list[ChurnEvent]:
        """The events that become known in this round; the ring and the links are adjusted to them."""
        network, now, churn = self.network, self.network.now, self.churn
        self.local.forget(churn.newcomers)
        gone = [event for event in churn.departed.values() if event.detected == now]
        lost = [event for event in gone if not any(network.alive[v] for v in self.local.keepers(event.node))]
        nodes = np.array([event.node for event in gone], np.int32)
        if len(nodes):
            self._drop_links(nodes)
            self.local.present[nodes] = self.mender.settled[nodes] = False
        come = [self._joining(node) for node in churn.newcomers if network.alive[node]]
        churn.newcomers.clear()
        self.local.present[[event.node for event in come]] = True
        for event in lost:  # nobody who knew its neighbours is left: more than L events at once
            self.mender.close(event, None, 0, 0)
        known = [event for event in gone if event not in lost] + come + churn.changed
        churn.changed = []
        churn.open += known
        if known or lost:
            self.desks.ring_changed()
        return known

    def _joining(self, node: int) -> ChurnEvent:
        now = self.network.now
        self.mender.settled[node] = False
        return ChurnEvent(JOIN, node, now, self.mender.topics_of(node).astype(np.int32), detected=now)

    # Links

    def _drop_links(self, nodes: Columns) -> None:
        """These are gone: neighbours drop the links to them, and tell their successors."""
        dropped = self.links.drop(nodes)
        self.upkeep.count("neighbours", self.config.resilience * dropped, dropped)

    def row_sizes(self) -> NDArray[np.int64]:
        return self.links.room

    def slot_kinds(self, size: int) -> list[str]:
        return ["neighbour"] * size

    def delivery(self) -> Delivery:
        return self.flooding()

    # What is measured

    def messages(self) -> dict[str, Sent]:
        return self.upkeep.totals()

    def own_rows(self) -> dict[str, list[dict[str, Any]]]:
        return {REPAIRS.name: self.mender.repairs, BACKUP_SETS.name: self._backup_rows()}

    def _backup_rows(self) -> list[dict[str, Any]]:
        """The size of each node's view, of its backup set as its successor keeps it, and in how many it serves."""
        network, size = self.network, self.network.size
        sets = [self._first_set(node) if network.alive[node] else np.empty(0, np.int32) for node in range(size)]
        view = self.local.sizes() if self.config.view == "partial" else network.alive * network.alive.sum()
        serves = np.bincount(np.concatenate(sets), minlength=size) if size else view
        columns = range(size), network.alive.tolist(), view.tolist(), map(len, sets), serves.tolist()
        return [dict(zip(BACKUP_SETS.column_names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _first_set(self, node: int) -> Columns:
        keepers = self.local.keepers(node)
        return self.mender.backups_of(node, keepers[0]) if keepers else np.empty(0, np.int32)

    def findings(self) -> dict[str, float]:
        by_kind = {kind: 1000 * np.array(seconds) for kind, seconds in self.mender.cpu_s.items()}
        milliseconds = np.concatenate([np.empty(0), *by_kind.values()])
        lost = sum(repair["coordinator"] is None for repair in self.mender.repairs)
        found = {LOST_EVENTS.name: float(lost)}
        if len(milliseconds):
            found[REPAIR_MS.name] = float(milliseconds.mean())
            found[REPAIR_MS_P95.name] = float(np.quantile(milliseconds, 0.95))
        for metric, kind in ((REPAIR_MS_JOIN, JOIN), (REPAIR_MS_LEAVE, LEAVE)):
            if kind in by_kind:
                found[metric.name] = float(by_kind[kind].mean())
        return found
