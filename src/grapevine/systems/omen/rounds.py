"""OMen on a network, round by round."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.overlay_design import LOW_ODA, SIGHTS, Edges, mend
from grapevine.blocks.views import BACKUP_TOPICS, NOBODY, REPAIR_TIES
from grapevine.kernels.csr import Columns
from grapevine.kernels.rng import draw
from grapevine.systems.contracts.designs import NO_EDGES, design_overlay
from grapevine.systems.contracts.rounds import Delivery, RoundSystem, Sent
from grapevine.systems.omen.backups import RULES, build_backups
from grapevine.systems.omen.config import OmenConfig
from grapevine.systems.omen.link_table import LinkTable
from grapevine.systems.omen.local_views import LocalViews

JOIN, LEAVE, CHANGE, MEET = "join", "leave", "change", "meet"


@dataclass(eq=False, slots=True)
class ChurnEvent:
    """A simple churn event (§3.3)."""

    kind: str
    node: int
    began: int
    topics: Columns  # that have to be connected again
    neighbours: frozenset[int] = frozenset()  # of a node that left, when it did
    detected: int = 0  # the round in which others know of it


@dataclass(slots=True)
class Desk:
    """What a node has to do (Algorithm 5): its own events in order of arrival, and those that it stands by for."""

    exe_q: list[ChurnEvent] = field(default_factory=list)
    standby: dict[ChurnEvent, tuple[int, int]] = field(default_factory=dict)  # → (deadline, coordinator)


class Omen(RoundSystem):
    """OMen on a network."""

    config_type = OmenConfig
    config: OmenConfig

    def __init__(self, config: OmenConfig, network: Network) -> None:
        self.local, self.links = LocalViews(network, config.resilience), LinkTable(network)
        self._settled = np.zeros(network.size, np.bool_)  # joined and linked, so that it can be a backup
        self._lonely: dict[int, dict[int, set[int]]] = {}  # newcomer → topics nobody sure was known for → met since
        self._begun = False
        self._departed: dict[int, ChurnEvent] = {}  # left, not yet handled
        self._open: list[ChurnEvent] = []  # known to somebody, not yet handled
        self._newcomers: list[int] = []
        self._changed: list[ChurnEvent] = []
        self._desks: dict[int, Desk] = {}
        self._sent: Counter[str] = Counter()
        self._carried: Counter[str] = Counter()
        self._repairs: list[dict[str, Any]] = []
        self._cpu: list[float] = []
        super().__init__(config, network)
        self._make_room_for_backups()

    # The local view layer (§4.3)

    def _make_room_for_backups(self) -> None:
        self._interests = self.network.profiles.starts, self.network.profiles.topics
        self.local.make_room(self._search if self.config.view == "partial" else 0)

    @property
    def _search(self) -> int:
        """Lonely newcomers look for so many: of L, one at least is no newcomer itself, and stays."""
        return max(self.config.coverage, self.config.resilience)

    def _ring_changed(self) -> None:
        self.local.ring_changed([event.node for event in self._open])

    def _wanted(self) -> Columns:
        """λ; at least one for nodes that have yet to be linked to somebody."""
        wanted = np.full(self.network.size, self.config.coverage, np.int32)
        wanted[self.local.present & ~self._settled] = max(self.config.coverage, 1)
        wanted[list(self._lonely)] = self._search
        return wanted

    def _exchange_views(self) -> None:
        usable = self.network.alive & self._settled
        self._count("gossip", *self.local.exchange(self._wanted(), usable, RULES[self.config.backups]))

    def _is_ready(self, node: int, subject: int) -> bool:
        return self.config.view == "global" or self.local.is_ready(node, subject, self.config.patience)

    def _backups_of(self, subject: int, node: int) -> Columns:
        """v.B(v'), or what OMen-G builds from full knowledge when it is needed."""
        return self._global_backups(subject) if self.config.view == "global" else self.local.backups_of(subject, node)

    def _global_backups(self, subject: int) -> Columns:
        network = self.network
        topics = self._topics(subject)
        if len(topics) == 0:
            return np.empty(0, np.int32)
        others = np.unique(np.concatenate([network.topic_nodes.row(topic) for topic in topics]))
        wanted = int(self._wanted()[subject])
        out = np.empty(max(wanted, 1) * len(topics), np.int32)
        made = build_backups(
            subject,
            wanted,
            RULES[self.config.backups],
            np.uint64(draw(network.seed, network.now, subject, BACKUP_TOPICS)),
            others,
            network.alive & self._settled,
            network.profiles,
            np.zeros(len(network.topic_ids), np.int32),
            out,
        )
        return out[: made.size]

    # A round

    def round(self) -> None:
        self.network.sample()
        if not (self._settled & self.network.alive).any():
            self._begin()
        for event in self._detect():
            self._announce(event)
        for node in sorted(self._desks):
            self._process_standby(node)
            self._process_exe_q(node)
        self._drop_lost()
        if self.config.view == "partial":
            self._exchange_views()
            self._link_lonely()

    def _begin(self) -> None:
        """The first overlay, or the first after everybody had left, is LowODA's (§6.5)."""
        network, self._begun = self.network, True
        for record in (self._newcomers, self._changed, self._open, self._departed, self._desks, self._lonely):
            record.clear()
        self.local.present[:] = self._settled[:] = network.alive
        self._drop_links(np.flatnonzero(~network.alive).astype(np.int32))
        self._add_edges(*design_overlay(network, LOW_ODA, self.config.rho, NO_EDGES))
        self._ring_changed()
        nothing = np.empty(0, np.int32)
        self._mend(ChurnEvent(LEAVE, 0, network.now, nothing), nothing)  # so that no repair waits for compiled code

    def say_goodbye(self, nodes: Columns) -> None:
        """A graceful leave: the others know at once."""
        if self._begun:
            for node in nodes.tolist():
                self._depart(node, detected=self.network.now)
        super().say_goodbye(nodes)

    def forget(self, nodes: Columns) -> None:
        """Crashes and joins. A crash is found out by silence, or when the node comes back with nothing."""
        if not self._begun:
            return
        network = self.network
        for node in nodes.tolist():
            left_now = node in self._departed and self._departed[node].began == network.now  # and said goodbye
            if self.local.present[node] and not left_now:
                back = bool(network.alive[node])
                self._depart(node, detected=network.now + (0 if back else self.config.max_age))
            self._desks.pop(node, None)
            self._lonely.pop(node, None)
            if network.alive[node]:
                self._newcomers.append(node)

    def _depart(self, node: int, *, detected: int) -> None:
        """What its successors know of it when it goes: they hear of changed links in the round of the change."""
        network, (starts, topics) = self.network, self._interests
        others = self._neighbours_known(node)
        mine = topics[starts[node] : starts[node + 1]].astype(np.int32)
        for event in self._unhandled(node):  # came back and went again, or changed its interests and went
            others |= event.neighbours
            mine = np.union1d(mine, event.topics).astype(np.int32)
        self._departed[node] = ChurnEvent(LEAVE, node, network.now, mine, others, detected)

    def _neighbours_known(self, node: int) -> frozenset[int]:
        """Its links, and those to nodes whose departure is not handled yet."""
        gone = {other for other, event in self._departed.items() if node in event.neighbours}
        return frozenset(self.links.known[node] | gone)

    def _unhandled(self, node: int) -> list[ChurnEvent]:
        """What has happened to the node and is not mended yet."""
        changes = [event for event in (*self._open, *self._changed) if event.kind == CHANGE and event.node == node]
        return [*changes, self._departed[node]] if node in self._departed else changes

    def _detect(self) -> list[ChurnEvent]:
        """The events that become known in this round; the ring and the links are adjusted to them."""
        network, now = self.network, self.network.now
        self.local.forget(self._newcomers)
        gone = [event for event in self._departed.values() if event.detected == now]
        lost = [event for event in gone if not any(network.alive[v] for v in self.local.keepers(event.node))]
        nodes = np.array([event.node for event in gone], np.int32)
        if len(nodes):
            self._drop_links(nodes)
            self.local.present[nodes] = self._settled[nodes] = False
        come = [self._joining(node) for node in self._newcomers if network.alive[node]]
        self._newcomers.clear()
        self.local.present[[event.node for event in come]] = True
        for event in lost:  # nobody who knew its neighbours is left: more than L events at once
            self._close(event, None, 0, 0)
        known = [event for event in gone if event not in lost] + come + self._changed
        self._changed = []
        self._open += known
        if known or lost:
            self._ring_changed()
        return known

    def _joining(self, node: int) -> ChurnEvent:
        now = self.network.now
        self._settled[node] = False
        return ChurnEvent(JOIN, node, now, self._topics(node).astype(np.int32), detected=now)

    def interests_changed(self, nodes: Columns) -> None:
        """What these had to do with their old topics is handled like a leave, the new ones like a join."""
        network, (starts, topics) = self.network, self._interests
        self._make_room_for_backups()
        if not self._begun:
            return
        for node in nodes[self.local.present[nodes] & network.alive[nodes]].tolist():
            both = np.union1d(topics[starts[node] : starts[node + 1]], self._topics(node)).astype(np.int32)
            near = self._neighbours_known(node)
            self._changed.append(ChurnEvent(CHANGE, node, network.now, both, near, detected=network.now))

    # Handling churn events (§5, Algorithm 5)

    def _announce(self, event: ChurnEvent) -> None:
        """Who notices it tells the L successors of the node; those who live take note."""
        asked = self.local.keepers(event.node)
        reached = [node for node in asked if self.network.alive[node]]
        self._count("join", int(event.kind == JOIN))
        self._count("notify", max(len(reached) - 1, 0))
        for node in reached:
            self._handle_churn_event(node, event)
        if not asked and event.kind != LEAVE:  # alone in the network
            self._settle(event, [])
            self._close(event, event.node, 1, 0)

    def _handle_churn_event(self, node: int, event: ChurnEvent) -> None:
        desk = self._desks.setdefault(node, Desk())
        if self.local.is_coordinator(node, event.node):
            if event.kind == LEAVE:
                unassigned = [other for other, (_, who) in desk.standby.items() if who == event.node]
                for other in unassigned:
                    del desk.standby[other]
                desk.exe_q += unassigned
            desk.exe_q.append(event)
        else:
            self._stand_by(desk, event)

    def _stand_by(self, desk: Desk, event: ChurnEvent) -> None:
        coordinator = next(iter(self.local.keepers(event.node)), NOBODY)
        desk.standby[event] = self.network.now + self.config.timeout, coordinator

    def _process_exe_q(self, node: int) -> None:
        """One by one, in the order of arrival; an event whose backup set is not ready holds up those behind it."""
        desk = self._desks[node]
        while desk.exe_q:
            event = desk.exe_q[0]
            if not self.local.is_in_pred_range(node, event.node):
                self._stand_by(desk, desk.exe_q.pop(0))
            elif self._is_ready(node, event.node):
                desk.exe_q.pop(0)
                self._repair(node, event)
                self._notify_succ_range(event)
            else:
                break

    def _process_standby(self, node: int) -> None:
        """Whose time is up is handled here, if it still is in range; if not, it is the business of others."""
        desk = self._desks[node]
        for event, (deadline, _) in list(desk.standby.items()):
            if deadline <= self.network.now:
                del desk.standby[event]
                if self.local.is_in_pred_range(node, event.node):
                    desk.exe_q.append(event)

    def _notify_succ_range(self, event: ChurnEvent) -> None:
        """Tell the L successors that it is done: they drop the event and what they kept for it (gcChurnEvent)."""
        for node in self.local.keepers(event.node):
            self._count("done", 1)
            desk = self._desks.get(node)
            if desk is not None:
                desk.standby.pop(event, None)
                desk.exe_q = [other for other in desk.exe_q if other is not event]
        self._ring_changed()

    def _drop_lost(self) -> None:
        """Events that nobody knows of any more: there were more than L at once."""
        known = {event for desk in self._desks.values() for event in (*desk.exe_q, *desk.standby)}
        unknown = [event for event in self._open if event not in known]
        for event in unknown:
            if self.network.alive[event.node] and event.kind != LEAVE:
                self._announce(event)  # the node itself asks again
            else:
                self._close(event, None, 0, 0)
        if unknown:
            self._ring_changed()
        self._desks = {node: desk for node, desk in self._desks.items() if desk.exe_q or desk.standby}

    def _close(self, event: ChurnEvent, coordinator: int | None, shadow: int, added: int) -> None:
        if event in self._open:
            self._open.remove(event)
        if event.kind == LEAVE and self._departed.get(event.node) is event:
            del self._departed[event.node]
        self._repairs.append(
            {
                "round": event.began,
                "node": event.node,
                "kind": event.kind,
                "coordinator": coordinator,
                "finished": None if coordinator is None else self.network.now,
                "shadow": shadow,
                "added": added,
            }
        )

    # Mending (§4.1, Algorithm 1)

    def _repair(self, coordinator: int, event: ChurnEvent) -> None:
        """repairTcoOnChurn, on the shadow set: backups and neighbours, or backups and the node itself (§3.2)."""
        network, began = self.network, time.thread_time()
        shadow = {int(u) for u in self._backups_of(event.node, coordinator) if network.alive[u] and self._settled[u]}
        if event.kind == LEAVE:
            shadow |= self._living(event.neighbours)
            shadow.discard(event.node)
        elif not network.alive[event.node] or not self.local.present[event.node]:
            self._close(event, coordinator, 0, 0)  # came and went; its leave is an event of its own
            return
        else:
            shadow.add(event.node)
            if event.kind == CHANGE:
                shadow |= self._living({*self.links.of(event.node), *event.neighbours})
        members = np.array(sorted(shadow), np.int32)
        edges = self._mend(event, members)
        self._cpu.append(time.thread_time() - began)
        self._add_edges(*edges)
        self._settle(event, members.tolist())
        others = len(members) - (coordinator in shadow)
        self._count("collect", 2 * others, others)
        self._count(
            "connect", int((edges[0] != coordinator).sum() + (edges[1] != coordinator).sum()), 2 * len(edges[0])
        )
        self._close(event, coordinator, len(members), len(edges[0]))

    def _mend(self, event: ChurnEvent, shadow: Columns) -> Edges:
        network, views = self.network, self.network.views
        ties = int(draw(network.seed, network.now, event.node, REPAIR_TIES) >> np.uint64(1))
        return mend(
            ties,
            self.config.rho,
            SIGHTS[self.config.sight],
            shadow,
            event.topics,
            network.profiles,
            (views.starts, views.links),
            self.links.degree,
        )

    def _living(self, nodes: Iterable[int]) -> set[int]:
        """Those who answer. For those who do not, their own successors tell who their neighbours were."""
        living, asked, waiting = set(), set(), list(nodes)
        while waiting:
            node = waiting.pop()
            if node in asked:
                continue
            asked.add(node)
            if self.network.alive[node]:
                living.add(node)
            for event in self._unhandled(node):
                self._count("collect", 2, len(event.neighbours))
                waiting += event.neighbours
        return living

    def _settle(self, event: ChurnEvent, shadow: list[int]) -> None:
        """A newcomer is part of the overlay now; for some of its topics perhaps nobody else was known."""
        if event.kind == LEAVE:
            return
        node = event.node
        others = {u: set(self._topics(u).tolist()) for u in {*shadow, *self.links.of(node)} if u != node}
        if event.kind == MEET:
            alone = self._lonely.get(node, {})
            for topic in event.topics.tolist():
                if topic in alone:
                    alone[topic] |= {u for u, theirs in others.items() if topic in theirs}
            self._lonely[node] = {t: met for t, met in alone.items() if len(met) < self._search}
        else:
            self._settled[node] = True
            sure = [theirs - self._lonely.get(u, {}).keys() for u, theirs in others.items()]
            self._lonely[node] = {
                t: {u for u, theirs in others.items() if t in theirs}
                for t in set(self._topics(node).tolist()).difference(*sure)
            }
        if not self._lonely[node]:
            del self._lonely[node]

    def _link_lonely(self) -> None:
        """Newcomers' topics for which nobody was known: whoever is found for them is linked, up to λ or L."""
        network, busy = self.network, {event.node for event in self._open}
        for node, alone in list(self._lonely.items()):
            keepers = self.local.keepers(node)
            if node in busy or not keepers or not network.alive[keepers[0]]:
                continue
            more = set()
            for u in self._backups_of(node, keepers[0]).tolist():
                more |= {t for t in self._topics(u).tolist() if t in alone and u not in alone[t]}
            if more:
                event = ChurnEvent(MEET, node, network.now, np.array(sorted(more), np.int32), detected=network.now)
                self._open.append(event)
                self._announce(event)

    def _topics(self, node: int) -> NDArray[Any]:
        profiles = self.network.profiles
        return profiles.topics[profiles.starts[node] : profiles.starts[node + 1]]

    # Links

    def _add_edges(self, sources: Columns, targets: Columns) -> None:
        """Both ends take the link, and tell their successors."""
        self.links.add(sources, targets)
        self._count("neighbours", 2 * self.config.resilience * len(sources), 2 * len(sources))

    def _drop_links(self, nodes: Columns) -> None:
        """These are gone: neighbours drop the links to them, and tell their successors."""
        dropped = self.links.drop(nodes)
        self._count("neighbours", self.config.resilience * dropped, dropped)

    def row_sizes(self) -> NDArray[np.int64]:
        return self.links.room

    def slot_kinds(self, size: int) -> list[str]:
        return ["neighbour"] * size

    def delivery(self) -> Delivery:
        return self.flooding()

    # What is measured

    def _count(self, kind: str, messages: int, descriptors: int = 0) -> None:
        self._sent[kind] += messages
        self._carried[kind] += descriptors

    def messages(self) -> dict[str, Sent]:
        return {kind: Sent(self._sent[kind], self._carried[kind]) for kind in sorted(self._sent)}

    def repairs(self) -> list[dict[str, Any]]:
        return self._repairs

    def node_views(self) -> dict[str, NDArray[np.int64]]:
        """The size of each node's view, of its backup set as its successor keeps it, and in how many it serves."""
        network, size = self.network, self.network.size
        sets = [self._first_set(node) if network.alive[node] else np.empty(0, np.int32) for node in range(size)]
        view = self.local.sizes() if self.config.view == "partial" else network.alive * network.alive.sum()
        serves = np.bincount(np.concatenate(sets), minlength=size) if size else view
        return {"view": view, "backups": np.array([len(found) for found in sets], np.int64), "backup_of": serves}

    def _first_set(self, node: int) -> Columns:
        keepers = self.local.keepers(node)
        return self._backups_of(node, keepers[0]) if keepers else np.empty(0, np.int32)

    def findings(self) -> dict[str, float]:
        milliseconds = 1000 * np.array(self._cpu)
        done = [repair for repair in self._repairs if repair["coordinator"] is not None]
        found = (
            {"repair_ms": milliseconds.mean(), "repair_ms_p95": np.quantile(milliseconds, 0.95)} if self._cpu else {}
        )
        return {"lost_events": float(len(self._repairs) - len(done))} | {key: float(x) for key, x in found.items()}
