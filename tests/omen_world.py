"""A running OMen network for tests: what happens to it is decided as it goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, cast

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from grapevine import Workload
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.systems.omen.churn import ChurnEvent
from grapevine.systems.omen.rounds import Omen
from tests.naive_designs import Edge

LATER = 60  # rounds in which everything has to be mended


def int32(numbers: Iterable[int]) -> NDArray[np.int32]:
    return np.array(sorted(numbers), np.int32)


def workload_of(interests: Sequence[Iterable[int]], topic_count: int | None = None) -> Workload:
    pairs = np.array([(v, t) for v, mine in enumerate(interests) for t in sorted(mine)]).reshape(-1, 2)
    topic_count = topic_count or int(pairs[:, 1].max()) + 1
    return Workload.from_pairs(*pairs.T, node_count=len(interests), topic_count=topic_count)


class World:
    """A running network; what happens to it is decided as it goes."""

    def __init__(
        self, interests: Sequence[Iterable[int]], *, later: Iterable[int] = (), seed: int = 1, **parameters: Any
    ) -> None:
        """`later` are nodes that are not there from the start."""
        workload, first = workload_of(interests), int32(set(range(len(interests))) - set(later))
        config = make_config("omen", {"patience": 3} | parameters)
        self.engine = Rounds("omen", workload, config, seed=seed, schedule=Schedule(first, {}))
        self.network, self.system = self.engine.network, cast(Omen, self.engine.system)

    @property
    def now(self) -> int:
        return self.engine.now

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.engine.step()

    def plan(
        self, after: int = 1, *, joins: Iterable[int] = (), leaves: Iterable[int] = (), crashes: Iterable[int] = ()
    ) -> None:
        change = Change(joins=int32(joins), leaves=int32(leaves), crashes=int32(crashes))
        assert self.now + after not in self.engine.schedule.changes
        self.engine.schedule.changes[self.now + after] = change

    def happens(self, **change: Iterable[int]) -> None:
        """In the next round, which is run."""
        self.plan(**cast(Any, change))
        self.run(1)

    @property
    def online(self) -> list[int]:
        return [int(v) for v in np.flatnonzero(self.network.alive)]

    @property
    def ring(self) -> list[int]:
        """Everybody who is online, in the order of ids."""
        return sorted(self.online, key=lambda v: int(self.network.ids[v]))

    def successors(self, node: int, count: int) -> list[int]:
        """The next online nodes on the ring."""
        ids = self.network.ids
        around = sorted(self.online, key=lambda v: (int(ids[v]) - int(ids[node])) % 2**64)
        return [v for v in around if v != node][:count]

    def neighbours(self, node: int) -> list[int]:
        return [int(u) for u in self.network.neighbours().row(node)]

    @property
    def edges(self) -> set[Edge]:
        return {(p, q) for p in self.online for q in self.neighbours(p) if p < q}

    def two_inner_neighbours(self) -> tuple[int, int]:
        """Linked to each other, and each to somebody else."""
        inner = [v for v in self.online if len(self.neighbours(v)) > 1]
        return next((p, q) for p, q in product(inner, inner) if q in self.neighbours(p))

    def topics(self, node: int) -> set[int]:
        profiles = self.network.profiles
        return set(profiles.topics[profiles.starts[node] : profiles.starts[node + 1]].tolist())

    def parted(self) -> list[int]:
        """Topics whose online subscribers are not connected."""
        overlay: nx.Graph[int] = nx.Graph()
        overlay.add_nodes_from(self.online)
        overlay.add_edges_from(self.edges)
        members = {t: [v for v in self.online if t in self.topics(v)] for t in range(len(self.network.topic_ids))}
        return [t for t, some in members.items() if len(some) > 1 and not nx.is_connected(overlay.subgraph(some))]

    def open(self) -> list[tuple[str, int]]:
        return [(event.kind, event.node) for event in self.system.churn.open]

    def queue(self, node: int) -> list[tuple[str, int]]:
        """What the node will handle itself, in order."""
        return [named(event) for event in self.system.desks.of[node].exe_q] if node in self.system.desks.of else []

    def standby(self, node: int) -> dict[tuple[str, int], int]:
        """What the node stands by for, and who it thinks handles it."""
        desk = self.system.desks.of.get(node)
        return {named(event): who for event, (_, who) in desk.standby.items()} if desk else {}

    def rows(self, node: int, kind: str | None = None) -> list[dict[str, Any]]:
        return [r for r in self.system.mender.repairs if r["node"] == node and kind in (None, r["kind"])]

    def is_mended(self) -> None:
        """Nothing is left to do, nothing was lost, and every topic is connected."""
        assert self.open() == []
        assert not self.system.churn.departed
        assert [row for row in self.system.mender.repairs if row["coordinator"] is None] == []
        assert self.parted() == []
        gone = np.flatnonzero(~self.network.alive)
        assert not np.isin(self.network.views.links, gone).any()


def named(event: ChurnEvent) -> tuple[str, int]:
    return event.kind, event.node


def one_topic(nodes: int = 12) -> list[set[int]]:
    return [{0} for _ in range(nodes)]


def one_topic_and_own(nodes: int = 12) -> list[set[int]]:
    """All have topic 0, and one that nobody else has."""
    return [{0, 1 + v} for v in range(nodes)]
