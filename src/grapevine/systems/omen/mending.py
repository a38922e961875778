"""Mending the overlay after one churn event (OMen §4.1, Algorithm 1), by its coordinator.

Theory. A coordinator does not see the network. It runs LowODA on the *shadow set*: the backups that it keeps for the
node, and the node's neighbours if it left, or the node itself if it came. The backups want every topic of the node λ
times, so each topic that the node held together passes through somebody in the shadow set, and edges inside it are
enough to connect the topics again.

Invariants:
1. a repair adds edges and drops none, so a topic that is connected stays so;
2. nobody serves as a backup before it is *settled*, joined and linked, or two newcomers might hold each other's topics
   together and nobody else's;
3. a newcomer for whose topic nobody sure was known stays *lonely* in it, until enough others have been met.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.overlay_design import SIGHTS, mend
from grapevine.blocks.views import BACKUP_TOPICS, REPAIR_TIES
from grapevine.kernels.csr import Columns
from grapevine.kernels.rng import draw
from grapevine.systems.omen.churn import CHANGE, LEAVE, MEET, Churn, ChurnEvent
from grapevine.systems.omen.config import OmenConfig
from grapevine.systems.omen.link_table import LinkTable
from grapevine.systems.omen.local_views import LocalViews
from grapevine.systems.omen.set_cover import GAIN_PER_LOAD, RULES, Search, build_backups
from grapevine.systems.omen.upkeep import Upkeep


class Mender:
    """Repairs, and who is settled. `Desks` calls it for a coordinator; the round driver for newcomers."""

    def __init__(
        self, config: OmenConfig, network: Network, local: LocalViews, links: LinkTable, churn: Churn, upkeep: Upkeep
    ) -> None:
        self._config, self._network, self._local, self._links = config, network, local, links
        self._churn, self._upkeep = churn, upkeep
        self.settled = np.zeros(network.size, np.bool_)  # joined and linked, so that it can be a backup
        self.lonely: dict[int, dict[int, set[int]]] = {}  # newcomer → topics nobody sure was known for → met since
        self.repairs: list[dict[str, Any]] = []  # rows of the table `repairs`
        self.cpu_s: dict[str, list[float]] = {}  # of each repair, by the kind of its event
        self._load = np.zeros(network.size, np.int32)  # OMen-G: by node, the sets in `_sets` that it is in
        self._sets: dict[int, Columns] = {}  # OMen-G: by subject, the set that was built for it last

    # Whom it can use

    @property
    def company(self) -> int:
        """Lonely newcomers look for so many: of L, one at least is no newcomer itself, and stays."""
        return max(self._config.coverage, self._config.resilience)

    def wanted(self) -> Columns:
        """By node, how often its topics shall be covered: λ; once at least for nodes that have yet to be linked."""
        wanted = np.full(self._network.size, self._config.coverage, np.int32)
        wanted[self._local.present & ~self.settled] = max(self._config.coverage, 1)
        wanted[list(self.lonely)] = self.company
        return wanted

    def search_now(self) -> Search:
        """What backup sets are looked for in this round."""
        network = self._network
        rule, usable = RULES[self._config.backups], network.alive & self.settled
        load = self._load
        if rule == GAIN_PER_LOAD and self._config.view == "partial":
            load = self._local.load()
        return Search(self.wanted(), rule, usable, load, network.profiles)

    def is_ready(self, node: int, subject: int) -> bool:
        """Whether the node can mend what happened to the subject; OMen-G always can."""
        return self._config.view == "global" or self._local.is_ready(node, subject, self._config.patience)

    def backups_of(self, subject: int, node: int) -> Columns:
        """v.B(v'), or what OMen-G builds from full knowledge when it is needed."""
        if self._config.view == "global":
            return self.global_backups(subject)
        return self._local.backups_of(subject, node)

    def global_backups(self, subject: int) -> Columns:
        """The backup set that full knowledge gives the subject."""
        network = self._network
        topics = self.topics_of(subject)
        if len(topics) == 0:
            return np.empty(0, np.int32)
        others = np.unique(np.concatenate([network.topic_nodes.row(topic) for topic in topics]))
        search = self.search_now()
        out = np.empty(max(int(search.wanted[subject]), 1) * len(topics), np.int32)
        state = np.uint64(draw(network.seed, network.now, subject, BACKUP_TOPICS))
        np.subtract.at(self._load, self._sets.get(subject, out[:0]), 1)
        made = build_backups(subject, state, others, search, np.zeros(len(network.topic_ids), np.int32), out)
        self._sets[subject] = out[: made.size]
        np.add.at(self._load, self._sets[subject], 1)
        return self._sets[subject]

    def neighbours_of(self, node: int) -> frozenset[int]:
        """v.N(v'), as the successors of the node keep it, while it is there and until its departure is handled."""
        if node in self._churn.departed:
            return self._churn.departed[node].neighbours
        return frozenset(self._links.known[node])

    def topics_of(self, node: int) -> NDArray[Any]:
        """What the node wants now, ascending."""
        profiles = self._network.profiles
        return profiles.topics[profiles.starts[node] : profiles.starts[node + 1]]

    # One repair

    def repair(self, coordinator: int, event: ChurnEvent) -> None:
        """repairTcoOnChurn, on the shadow set: backups and neighbours, or backups and the node itself (§3.2)."""
        network, began = self._network, time.thread_time()
        shadow = {int(u) for u in self.backups_of(event.node, coordinator) if network.alive[u] and self.settled[u]}
        if event.kind == LEAVE:
            shadow |= self._living(event.neighbours)
            shadow.discard(event.node)
        elif not network.alive[event.node] or not self._local.present[event.node]:
            self.close(event, coordinator, 0, 0)  # came and went; its leave is an event of its own
            return
        else:
            shadow.add(event.node)
            if event.kind == CHANGE:
                shadow |= self._living({*self._links.of(event.node), *event.neighbours})
        members = np.array(sorted(shadow), np.int32)
        *edges, reached = self._mend(event, members)
        self.cpu_s.setdefault(event.kind, []).append(time.thread_time() - began)
        self.add_edges(*edges)
        self.settle(event, members.tolist())
        others = len(members) - (coordinator in shadow)
        self._upkeep.count("collect", 2 * others, others)
        if self._config.sight == "overlay":  # how the members find out; the two others read it from their answers
            self._upkeep.count("probe", reached)
        told = int((edges[0] != coordinator).sum() + (edges[1] != coordinator).sum())
        self._upkeep.count("connect", told, 2 * len(edges[0]))
        self.close(event, coordinator, len(members), len(edges[0]))

    def compile(self) -> None:
        """Mend nothing, so that no repair waits for compiled code, which would count as its own time."""
        nothing = np.empty(0, np.int32)
        self._mend(ChurnEvent(LEAVE, 0, self._network.now, nothing), nothing)

    def _mend(self, event: ChurnEvent, shadow: Columns) -> tuple[Columns, Columns, int]:
        network, views = self._network, self._network.views
        ties = int(draw(network.seed, network.now, event.node, REPAIR_TIES) >> np.uint64(1))
        return mend(
            ties,
            self._config.rho,
            SIGHTS[self._config.sight],
            shadow,
            event.topics,
            network.profiles,
            (views.starts, views.links),
            self._links.degree,
        )

    def _living(self, nodes: Iterable[int]) -> set[int]:
        """Those who answer. For those who do not, their own successors tell who their neighbours were."""
        living, asked, waiting = set(), set(), list(nodes)
        while waiting:
            node = waiting.pop()
            if node in asked:
                continue
            asked.add(node)
            if self._network.alive[node]:
                living.add(node)
            for event in self._churn.unhandled(node):
                self._upkeep.count("collect", 2, len(event.neighbours))
                waiting += event.neighbours
        return living

    def add_edges(self, sources: Columns, targets: Columns) -> None:
        """Both ends take the links, and tell their successors."""
        self._links.add(sources, targets)
        self._upkeep.count("neighbours", 2 * self._config.resilience * len(sources), 2 * len(sources))

    def close(self, event: ChurnEvent, coordinator: int | None, shadow: int, added: int) -> None:
        """The event is over: a row of the table `repairs`. Without a coordinator it was lost."""
        self._churn.close(event)
        self.repairs.append(
            {
                "round": event.began,
                "node": event.node,
                "kind": event.kind,
                "coordinator": coordinator,
                "finished": None if coordinator is None else self._network.now,
                "shadow": shadow,
                "added": added,
            }
        )

    # Newcomers

    def settle(self, event: ChurnEvent, shadow: list[int]) -> None:
        """A newcomer is part of the overlay now; for some of its topics perhaps nobody else was known."""
        if event.kind == LEAVE:
            return
        node = event.node
        others = {u: set(self.topics_of(u).tolist()) for u in {*shadow, *self._links.of(node)} if u != node}
        if event.kind == MEET:
            alone = self.lonely.get(node, {})
            for topic in event.topics.tolist():
                if topic in alone:
                    alone[topic] |= {u for u, theirs in others.items() if topic in theirs}
            self.lonely[node] = {t: met for t, met in alone.items() if len(met) < self.company}
        else:
            self.settled[node] = True
            sure = [theirs - self.lonely.get(u, {}).keys() for u, theirs in others.items()]
            self.lonely[node] = {
                t: {u for u, theirs in others.items() if t in theirs}
                for t in set(self.topics_of(node).tolist()).difference(*sure)
            }
        if not self.lonely[node]:
            del self.lonely[node]

    def meetings(self) -> Iterable[ChurnEvent]:
        """Events for lonely newcomers: whoever is found for their topics is to be linked, up to λ or L.

        Each is open when it is given out; whoever asks announces it before asking for the next.
        """
        network, busy = self._network, {event.node for event in self._churn.open}
        for node, alone in list(self.lonely.items()):
            keepers = self._local.keepers(node)
            if node in busy or not keepers or not network.alive[keepers[0]]:
                continue
            more = set()
            for u in self.backups_of(node, keepers[0]).tolist():
                more |= {t for t in self.topics_of(u).tolist() if t in alone and u not in alone[t]}
            if more:
                event = ChurnEvent(MEET, node, network.now, np.array(sorted(more), np.int32), detected=network.now)
                self._churn.open.append(event)
                yield event
