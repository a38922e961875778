"""A system whose links are agreed on by both ends: what its tasks want, and how they come to it, round by round."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import connections
from grapevine.blocks.connections import GREEDY, LEAVE, MESSAGES, NOTHING, RANDOM, Letters, Rows, Task
from grapevine.blocks.coverage import Membership
from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns
from grapevine.model.config import parameter
from grapevine.systems.contracts.rounds import Delivery, FloodingConfig, RoundSystem, Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig(FloodingConfig):
    """What SpiderCast and the rivals that run its code have in common."""

    margin: int = parameter(
        5,
        "links that a node accepts beyond its limit (Margin)",
        source="SpiderCast §2.3",
        low=0,
    )
    view_share: float = parameter(
        1.0,
        "share of all nodes that a node knows, with their interests; 1: full membership",
        source="SpiderCast §3.7: 0.05 … 1",
        low=0.001,
        high=1,
    )
    quarantine_rounds: int = parameter(
        5, "rounds before the same node is asked again", source="SpiderCast §2.3.1 names no period", low=0, high=1_000
    )
    max_age: int = parameter(
        3, "rounds without heartbeat after which a neighbour is dropped", source="SpiderCast §2.3 names none", low=1
    )
    ties: str = parameter(
        "random",
        "of equally good nodes everybody asks a random one, or all the same one (by a common order)",
        source="SpiderCast Fig. 5: random; order is an experiment of ours (docs/papers.md#spidercast)",
        choices=("random", "order"),
    )


class ConnectionSystem(RoundSystem):
    """A system whose links are agreed on by both ends, in one or more tasks."""

    config: ConnectionConfig
    rules: tuple[int, ...]  # of the tasks; task i has the bit 1 << i

    def __init__(self, config: ConnectionConfig, network: Network) -> None:
        self.config, self.network = config, network
        self.roles = np.zeros(0, np.uint8)
        self._room = np.zeros(network.size, np.int64)
        self._sent = np.zeros(len(MESSAGES), np.int64)
        self.tasks = [_new_task(1 << i, rule, network.size, config) for i, rule in enumerate(self.rules)]
        self._make_room()
        self._begin(np.arange(network.size))

    @abstractmethod
    def wanted(self, rule: int) -> int:
        """K of a task, or the number of neighbours that it wants."""

    def limit(self, rule: int, k: Columns) -> Columns:
        """L^max = K · |interest| (Fig. 2)."""
        return (k * np.diff(self.network.profiles.starts)).astype(np.int32)

    def most_wanted(self, rule: int) -> int:
        """The largest K that a node may come to have."""
        return self.wanted(rule)

    def row_sizes(self) -> NDArray[np.int64]:
        full = np.zeros(self.network.size, np.int64)
        for rule in self.rules:
            most = np.full(self.network.size, self.most_wanted(rule), np.int32)
            full += self.limit(rule, most) + self.config.margin
        return np.minimum(full, max(self.network.size - 1, 0))

    def _make_room(self) -> None:
        """Tables never shrink: a link that one end lost by that would stay at the other."""
        before = self._rows()
        self._room = np.maximum(self._room, self.row_sizes())
        self.network.set_room(self._room)
        self.roles = np.zeros(len(self.network.views.links), np.uint8)
        csr.copy_rows(before.starts, before.roles, self.network.views.starts, self.roles)

    def _rows(self) -> Rows:
        views = self.network.views
        return Rows(views.starts, views.links, views.heard, self.roles)

    def _begin(self, nodes: NDArray[np.int64]) -> None:
        for task in self.tasks:
            task.k[nodes] = self.wanted(task.rule)
            task.redirect[nodes] = NOBODY
            task.asked[nodes] = NOBODY
            task.limit[nodes] = self.limit(task.rule, task.k)[nodes]
            task.target[nodes] = task.limit[nodes]

    def slot_kinds(self, size: int) -> list[str]:
        return ["neighbour"] * size

    def round(self) -> None:
        network, rows = self.network, self._rows()
        online = np.flatnonzero(network.alive).astype(np.int32)
        by_topic = network.topic_nodes.starts, network.topic_nodes.columns
        if len(online) < network.size:
            by_topic = csr.keep_columns(*by_topic, network.alive)
        members = Membership(network.seed, self.config.view_share, network.alive, online, *by_topic)
        connections.drop_silent(network.now - self.config.max_age, online, rows)
        for task in self.tasks:
            connections.count_degrees(task.role, online, rows, task.degree)
        self.adapt(online)
        for task in self.tasks:
            if task.k.any():
                self._run(task, rows, members)
        connections.heartbeat(network.now, online, network.alive, rows)
        network.links_changed()

    def _run(self, task: Task, rows: Rows, members: Membership) -> None:
        """One iteration of a task at every node, and the messages that come of it."""
        network, profiles = self.network, self.network.profiles
        degree, target = task.degree.copy(), task.target.copy()
        to, kind, answer, told = np.empty((4, network.size), np.int32)
        letters = Letters(to, kind, answer, told)
        network.in_chunks(
            lambda a, b: connections.maintain(
                network.seed, network.now, (a, b), task, degree, target, rows, profiles, members, letters
            )
        )
        order = connections.arrivals(network.seed, network.now, task.role, np.flatnonzero(kind != NOTHING))
        connections.deliver(
            network.seed,
            network.now,
            order,
            self.config.margin,
            task,
            degree,
            target,
            rows,
            profiles,
            letters,
            self._sent,
        )

    def adapt(self, online: Columns) -> None:
        """Let nodes change what they want, before a round's messages."""
        return

    def say_goodbye(self, nodes: Columns) -> None:
        """LEAVE to every neighbour of every task (§2.4)."""
        rows = self._rows()
        for node in nodes:
            row = slice(rows.starts[node], rows.starts[node + 1])
            for task in self.tasks:
                self._sent[LEAVE] += int(((rows.links[row] != NOBODY) & (rows.roles[row] & task.role != 0)).sum())
        super().say_goodbye(nodes)

    def forget(self, nodes: Columns) -> None:
        self._begin(nodes.astype(np.int64))

    def interests_changed(self, nodes: Columns) -> None:
        self._make_room()
        for task in self.tasks:
            task.limit[:] = self.limit(task.rule, task.k)

    def messages(self) -> dict[str, Sent]:
        """Each carries its sender's descriptor; a redirect also that of the node it points to."""
        return {
            kind: Sent(count, 2 * count if kind == "redirect" else count)
            for kind, count in zip(MESSAGES, self._sent.tolist(), strict=True)
        }

    def delivery(self) -> Delivery:
        return self.flooding()


def _new_task(role: int, rule: int, size: int, config: ConnectionConfig) -> Task:
    k, limit, target, degree = np.zeros((4, size), np.int32)
    redirect, asked = np.full(size, NOBODY, np.int32), np.full((size, config.quarantine_rounds), NOBODY, np.int32)
    same_order, counts_topics = config.ties == "order", rule in (GREEDY, RANDOM)
    return Task(role, rule, k, limit, target, degree, redirect, asked, same_order, counts_topics)
