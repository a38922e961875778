"""A system whose links are agreed on by both ends: what its tasks want, and how they come to it, round by round.

The protocol, with its invariants, is `blocks/connections`; which node is asked next is `blocks/coverage`. A system of
this family says which tasks there are (`rules`), what each wants (`wanted`) and how many links that may take (`limit`).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import connections
from grapevine.blocks.connections import (
    COMMON_ORDER,
    COMMON_STREAM,
    GREEDY,
    LEAVE,
    MESSAGE_KINDS,
    NOTHING,
    OWN_TIES,
    RANDOM,
    Messages,
    Rows,
    Step,
    Task,
)
from grapevine.blocks.coverage import Membership
from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.configs import ConnectionConfig
from grapevine.systems.contracts.rounds import Delivery, RoundSystem, Sent

TIES = {"random": OWN_TIES, "order": COMMON_ORDER, "stream": COMMON_STREAM}
DESCRIPTORS = {"connect": 1, "connect-ok": 1, "redirect": 1}  # that a message carries (Fig. 4); the others: none


class ConnectionSystem(RoundSystem):
    """A system whose links are agreed on by both ends, in one or more tasks.

    `roles` holds, for every slot of the network's tables, the bits of the tasks that its link serves.
    """

    config: ConnectionConfig
    needs = "that everybody knows a share of all nodes with their subscriptions (view_share; all, if it is not given)"
    rules: tuple[int, ...]  # the rule of each task (GREEDY, RANDOM, SIMILAR or STRANGER); task i has the bit 1 << i

    def __init__(self, config: ConnectionConfig, network: Network) -> None:
        self.config, self.network = config, network
        self.roles = np.zeros(0, np.uint8)
        self._room = np.zeros(network.size, np.int64)
        self._sent = np.zeros(len(MESSAGE_KINDS), np.int64)
        self.tasks = [_new_task(1 << i, rule, network.size, config) for i, rule in enumerate(self.rules)]
        self._make_room()
        self._begin(np.arange(network.size))

    @abstractmethod
    def wanted(self, rule: int) -> int:
        """What the task of this rule wants when a node starts: K neighbours a topic, or so many neighbours in all."""

    def limit(self, rule: int, k: Columns) -> Columns:
        """The most neighbours of every node in the task of this rule, for what each wants: L^max = K · |interest| (Fig.
        2).

        `k` has an entry per node; the answer is a new array.
        """
        return (k * np.diff(self.network.profiles.starts)).astype(np.int32)

    def most_wanted(self, rule: int) -> int:
        """The largest K that `adapt` may ever set for this rule; tables get room for it at the start."""
        return self.wanted(rule)

    def row_sizes(self) -> NDArray[np.int64]:
        full = np.zeros(self.network.size, np.int64)
        for rule in self.rules:
            most = np.full(self.network.size, self.most_wanted(rule), np.int32)
            full += self.limit(rule, most) + self.config.margin
        return np.minimum(full, max(self.network.size - 1, 0))

    def _make_room(self) -> None:
        """Give tables the room that `row_sizes` asks for. They never shrink: a link that one end lost by that would
        stay at the other."""
        before = self._rows()
        self._room = np.maximum(self._room, self.row_sizes())
        self.network.set_room(self._room)
        self.roles = np.zeros(len(self.network.views.links), np.uint8)
        csr.copy_rows(before.starts, before.roles, self.network.views.starts, self.roles)

    def _rows(self) -> Rows:
        """The tables as the protocol's kernels take them; to be asked for again after `_make_room`."""
        views = self.network.views
        return Rows(views.starts, views.links, views.heard, self.roles)

    def _begin(self, nodes: NDArray[np.int64]) -> None:
        """These nodes start with what their tasks want, and remember nobody."""
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
        network = self.network
        degree, target = task.degree.copy(), task.target.copy()
        config, profiles = self.config, network.profiles
        step = Step(network.seed, network.now, config.margin, config.printed, task, degree, target, rows, profiles)
        messages = Messages(*np.empty((4, network.size), np.int32))
        network.in_chunks(lambda a, b: connections.maintain(step, (a, b), members, messages))
        order = connections.arrivals(network.seed, network.now, task.role, np.flatnonzero(messages.kind != NOTHING))
        connections.deliver(step, order, messages, self._sent)

    def adapt(self, online: Columns) -> None:
        """Let nodes change what they want (`Task.k` and `Task.limit`), up to `most_wanted`.

        Called in every round, when degrees are counted and before any message. As a default nobody changes its mind.
        """
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
        """Messages since the start of the run. CONNECT and CONNECT-OK carry their sender's descriptor, a REDIRECT that
        of the node that it names; the others carry none (Fig. 4)."""
        return {
            kind: Sent(count, DESCRIPTORS.get(kind, 0) * count)
            for kind, count in zip(MESSAGE_KINDS, self._sent.tolist(), strict=True)
        }

    def delivery(self) -> Delivery:
        return self.flooding()


def _new_task(role: int, rule: int, size: int, config: ConnectionConfig) -> Task:
    k, limit, target, degree = np.zeros((4, size), np.int32)
    redirect, asked = np.full(size, NOBODY, np.int32), np.full((size, config.quarantine_rounds), NOBODY, np.int32)
    counts_topics = rule in (GREEDY, RANDOM)
    return Task(role, rule, k, limit, target, degree, redirect, asked, TIES[config.ties], counts_topics)
