"""One neighbour maintenance task of one node (Figs. 1-5): what it wants, whom it asks, what it answers.

The decisions are those of `blocks/consent` and `blocks/coverage`, which rounds use as well. Two things are different
from a synchronous round. An answer may come late, when the next iteration has asked somebody else: it is taken while
there is room. And between a `Disconnect` and its answer a node may be asked to let go of another neighbour: it counts
the one that it wants to be rid of as gone already, so that it does not lose both ends of a topic at once.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from grapevine.blocks import consent, coverage
from grapevine.blocks.views import NOBODY
from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.links import Links
from grapevine.systems.spidercast.peer.messages import (
    GREEDY_TASK,
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Leave,
    Redirect,
    Standing,
)
from grapevine.systems.spidercast.peer.table import OWN, Rows, Table, profiles_of
from grapevine.systems.spidercast.peer.view import View

Sending = Callable[[Address, Message], None]


class Maintenance:
    """A task. `send` takes what it says; links and view belong to the node, which tells it of every message."""

    def __init__(
        self, task: int, k: int, config: SpiderCastPeerConfig, links: Links, view: View, random: Random, send: Sending
    ) -> None:
        self.task, self._config = task, config
        self._links, self._view, self._random, self._send = links, view, random, send
        self.want(k, view.me.topic_count)
        self.target = self.limit  # L; a node that has nothing yet looks for all
        self.redirect: Address | None = None  # whom to ask next, because the node that was asked last said so
        self._asked: dict[Address, float] = {}  # in quarantine, until when
        self._awaited: dict[Address, float] = {}  # asked to connect, and no answer yet; until when one is taken
        self._parting: Address | None = None  # asked to disconnect in this iteration

    @property
    def degree(self) -> int:
        """Neighbours in this task."""
        return self._links.degree(self.task)

    @property
    def standing(self) -> Standing:
        """What neighbours are told."""
        return Standing(self.degree, self.target)

    def want(self, k: int, topics: int) -> None:
        """Every one of so many topics is to be covered k times from now on (K, and L^max)."""
        self.k, self.limit = k, k * topics

    def turn(self, now: float) -> None:
        """An iteration of MAINTAINNEIGHBORS (Fig. 2)."""
        self._asked = {node: until for node, until in self._asked.items() if until > now}
        self._awaited = {node: until for node, until in self._awaited.items() if until > now}
        self._parting = None
        if self.k == 0:
            return
        self.target, connects, parts = consent.iterate(self.missing(now), self.degree, self.limit)
        if connects:
            self._connect(now)
        if parts:
            self._disconnect(now)

    def missing(self, now: float) -> int:
        """How many topics are covered less often than the task wants (CALCKUNCOVERED)."""
        table = self._view.near(now)
        rows = self._lay(table, self._links.of(self.task))
        missing = int(coverage.uncovered(OWN, table.profiles, table.need))
        coverage.clear_need(OWN, rows, table.profiles, table.need)
        return missing

    def scarce(self, now: float) -> list[int]:
        """Which topics, by place among the node's own, are uncovered with nobody known who could be asked."""
        if self.k == 0 or not self.missing(now):
            return []
        table = self._view.wide(now)
        rows = self._lay(table, self._links.of(self.task))
        covering = self.k - table.need
        found = np.flatnonzero((table.need > 0) & (table.wanting() <= covering)).tolist()
        coverage.clear_need(OWN, rows, table.profiles, table.need)
        return found

    def _lay(self, table: Table, neighbours: list[Address]) -> Rows:
        """Lay out what the node needs beyond these neighbours; returns their rows, for `clear_need`."""
        rows = table.rows(neighbours)
        coverage.lay_need(OWN, self.k, rows, table.profiles, table.need)
        return rows

    def _ties(self) -> np.uint64:
        return np.uint64(self._random.getrandbits(64))

    def _standings(self, nodes: list[Address]) -> tuple[Rows, Rows]:
        """Degrees and targets of these neighbours, after a place for somebody else's, as rules read them."""
        told = [Standing(0, 0), *(self._links.standing(node, self.task) for node in nodes)]
        return np.array([s.degree for s in told], np.int32), np.array([s.target for s in told], np.int32)

    def _connect(self, now: float) -> None:
        """CONNECT (Fig. 2): whom somebody redirected us to, else the next by the rule, nobody in quarantine."""
        node, self.redirect = self.redirect, None
        if node is None or self.task in self._links.tasks_of(node):
            node = self._next(self._view.wide(now))
        if node is not None:
            self._asked[node] = now + self._config.quarantine_s
            self._awaited[node] = now + self._config.silence_s
            self._send(node, Connect(self.task, self._view.me, self.standing))

    def _next(self, table: Table) -> Address | None:
        """NEXTGREEDYCOVERAGENODE or NEXTRANDOMCOVERAGENODE (Fig. 5); None: nobody known covers anything."""
        rows = self._lay(table, self._links.of(self.task))
        taken = np.concatenate((rows, table.rows(self._asked)))
        rule = coverage.next_greedy if self.task == GREEDY_TASK else coverage.next_random
        row = rule(OWN, self._ties(), taken, table.profiles, table.members, table.need, table.gains)
        coverage.clear_need(OWN, rows, table.profiles, table.need)
        return None if row == NOBODY else table.nodes[row]

    def _disconnect(self, now: float) -> None:
        """DISCONNECT (Fig. 2): a neighbour that has links to spare, and without which nothing is missing."""
        table, neighbours = self._view.near(now), self._links.of(self.task)
        rows = self._lay(table, neighbours)
        degree, target = np.zeros((2, len(table.nodes)), np.int32)
        degree[rows], target[rows] = (told[1:] for told in self._standings(neighbours))
        row = coverage.disconnect_candidate(rows, degree, target, self._ties(), table.profiles, table.need)
        if row != NOBODY and consent.asks_to_part(self.degree, self.target, self._spare(table, row)):
            self._parting = table.nodes[row]
            self._send(self._parting, Disconnect(self.task))
        coverage.clear_need(OWN, rows, table.profiles, table.need)

    def _spare(self, table: Table, row: int) -> bool:
        """Whether nothing is missing without a neighbour; the node's need is laid out."""
        missing = coverage.uncovered(OWN, table.profiles, table.need)
        return missing + coverage.loss(row, table.profiles, table.need) == 0

    # What others say (Fig. 4)

    def on_connect(self, now: float, sender: Address, standing: Standing) -> None:
        """Take the link, if there is room; else name somebody who has."""
        self._awaited.pop(sender, None)  # two that ask each other both have what they want
        if self.task in self._links.tasks_of(sender):
            self._links.add(now, sender, self.task, standing)
        elif not self._take(now, sender, standing):
            self._name_another(sender)
            return
        self._send(sender, ConnectOk(self.task, self._view.me, self.standing))

    def on_held(self, now: float, sender: Address, standing: Standing) -> None:
        """The sender holds the link, by ConnectOk or by a heartbeat: so does this node, if it still wants to."""
        is_awaited = self._awaited.pop(sender, None) is not None
        if self.task in self._links.tasks_of(sender):
            self._links.hear(now, sender, self.task, standing)
        elif not is_awaited or not self._take(now, sender, standing):
            self._send(sender, Leave((self.task,)))

    def on_redirect(self, sender: Address, node: Address) -> None:
        """Ask this node next, if it was the answer to a question."""
        if self._awaited.pop(sender, None) is not None and node != self._view.me.node:
            self.redirect = node

    def on_disconnect(self, now: float, sender: Address) -> None:
        """Let the sender go, if nothing is missing without it or there are too many links; else be silent."""
        if self.task not in self._links.tasks_of(sender):
            self._send(sender, Leave((self.task,)))
            return
        table = self._view.near(now)
        rows = self._lay(table, [node for node in self._links.of(self.task) if node == sender or node != self._parting])
        spare = self._spare(table, table.row(sender))
        coverage.clear_need(OWN, rows, table.profiles, table.need)
        if consent.lets_go(self.degree, self.target, self.limit, spare, self._config.printed.disconnect):
            self.on_over(sender)
            self._send(sender, DisconnectOk(self.task))
            if spare:
                self.target = self.degree

    def on_over(self, node: Address) -> None:
        """The link is over in this task: the other end said so, or this one lets it go."""
        if self._links.remove(node, self.task):
            self._view.changed()

    def _take(self, now: float, node: Address, standing: Standing) -> bool:
        """ADDCONNECTION, unless there is no room."""
        if not consent.accepts(self.degree, self.limit, self._config.margin):
            return False
        self._links.add(now, node, self.task, standing)
        self._view.changed()
        config = self._config
        self.target = consent.raised(self.degree, self.target, self.limit, config.margin, config.printed.target)
        return True

    def _name_another(self, asking: Address) -> None:
        """REDIRECT to the neighbour short of links that shares most topics with who asks; nobody: no answer."""
        neighbours, profiles = self._links.of(self.task), self._view.profiles
        known = [profiles[node] for node in (asking, *neighbours)]
        of_node = [np.empty(0, np.uint64) if profile is None else profile.topics for profile in known]
        names, numbers = np.unique(np.concatenate(of_node), return_inverse=True)
        of_row = np.split(numbers.astype(np.int32), np.cumsum([len(topics) for topics in of_node[:-1]]))
        rows = np.array([row for row, node in enumerate(neighbours, 1) if node != asking], np.int32)
        how = self._config.margin, self._config.printed.redirect
        degree, target = self._standings(neighbours)
        ties, table = self._ties(), profiles_of(of_row, len(names))
        row = coverage.redirect_candidate(OWN, rows, degree, target, how, ties, table)
        if row != NOBODY:
            self._send(asking, Redirect(self.task, neighbours[row - 1]))


def compile_rules() -> None:
    """Call every compiled rule once with the types that tasks use, so that nobody waits for it later."""
    table = Table(0, 1, {1: np.zeros(1, np.int32)})
    rows, ties, (profiles, need) = table.rows([1]), np.uint64(0), (table.profiles, table.need)
    coverage.lay_need(OWN, 1, rows, profiles, need)
    coverage.uncovered(OWN, profiles, need)
    for rule in (coverage.next_greedy, coverage.next_random):
        rule(OWN, ties, rows, profiles, table.members, need, table.gains)
    degree = np.zeros(2, np.int32)
    coverage.disconnect_candidate(rows, degree, degree, ties, profiles, need)
    coverage.loss(1, profiles, need)
    coverage.clear_need(OWN, rows, profiles, need)
    coverage.redirect_candidate(OWN, rows, degree, degree, (0, False), ties, profiles)
    consent.iterate(0, 0, 0)
    consent.asks_to_part(0, 0, False)
    consent.accepts(0, 0, 0)
    consent.raised(0, 0, 0, 0, False)
    consent.lets_go(0, 0, 0, False, False)
