"""Magnet over arrays: ids on the ring by interest (Algorithm 1), learnt from the membership service."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.profiles import Profiles, mark, new_marks, preference, utility
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import JOIN_ORDER, NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream
from grapevine.systems.magnet import circle as ring
from grapevine.systems.magnet import membership
from grapevine.systems.magnet.circle import Circle
from grapevine.systems.magnet.config import MagnetConfig
from grapevine.systems.magnet.home_trees import SAMPLE, OscarSystem, join_neighbours

GROWTH = 1.25  # the membership service samples anew when the network has grown by so much, while it is built


@njit
def choose_ids(
    seed: int,
    nodes: Columns,
    hashed: Ids,
    profiles: Profiles,
    samples: NDArray[np.int32],
    known: Columns,
    circle: Circle,
) -> None:
    """Algorithm 1 for one node after the other: into the circle behind the most similar known node, or at its hashed
    id.

    A node knows the samples of its topics (`samples`, of which topic t has known[t]) that are in the circle; of equally
    similar ones the hash decides. A home that has fewer samples than it may keep also takes those who come, so that
    whoever wants a topic is told of somebody, unless it is the first (§3).
    """
    marks = new_marks(profiles)
    start = NOBODY
    for q in range(len(circle.after)):
        if circle.after[q] != NOBODY:
            start = q
            break
    for p in nodes:
        mark(p, profiles, marks)
        ties = absorb(stream(seed, JOIN_ORDER, p), 1)
        best, most = NOBODY, np.int64(-1)
        mine = profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]
        for topic in mine:
            for q in samples[topic, : known[topic]]:
                if circle.after[q] != NOBODY:
                    value = preference(utility(p, q, profiles, marks), absorb(ties, q))
                    if value > most:
                        best, most = int(q), value
        if best != NOBODY:
            ring.insert_after(best, p, circle)
        else:
            ring.insert_at(hashed[p], p, start, circle)
        start = int(p) if start == NOBODY else start
        for topic in mine:
            if known[topic] < samples.shape[1]:
                samples[topic, known[topic]] = p
                known[topic] += 1


class Magnet(OscarSystem):
    """Magnet on a network: `OscarSystem` with ids by interest, and fingers that prefer similar nodes."""

    config_type = MagnetConfig
    config: MagnetConfig

    def __init__(self, config: MagnetConfig, network: Network) -> None:
        topics = len(network.topic_ids)
        self._samples = np.full((topics, config.samples), NOBODY, np.int32)
        self._known = np.zeros(topics, np.int32)
        self._samplings = 0  # rounds of the membership service so far, each with draws of its own
        super().__init__(config, network)

    @property
    def choices(self) -> int:
        return self.config.choices

    def _form_circle(self, order: Columns) -> None:
        """Nodes join in this order; the membership service samples anew whenever the network has grown by a quarter."""
        joined = 0
        while joined < len(order):
            more = max(1, int(joined * (GROWTH - 1)))
            self.acquire(order[joined : joined + more])
            joined += more
            self._sample_interests()

    def acquire(self, nodes: Columns) -> None:
        """Next to the most similar node that the membership service knows of."""
        choose_ids(
            self.network.seed,
            nodes,
            self._control_ids,
            self.network.profiles,
            self._samples,
            self._known,
            self._circle,
        )

    def _sample_interests(self) -> None:
        """One round of the membership service (§3.4) for every topic; without online nodes nobody is known."""
        network, samples, known = self.network, self._samples, self._known
        self._samplings += 1
        control, subscribers = self.control_ring(), (network.topic_nodes.starts, network.topic_nodes.columns)
        if len(control.ids) == 0:
            known[:] = 0
            return
        number = self._samplings
        messages, interests = self._summed(
            lambda a, b: membership.sample_topics(network.seed, number, (a, b), control, subscribers, samples, known),
            len(network.topic_ids),
        )
        self._count(SAMPLE, messages, interests)

    def known_subscribers(self) -> tuple[NDArray[np.int32], Columns]:
        return self._samples, self._known

    def join_messages(self, nodes: Columns) -> tuple[int, int]:
        """Also the questions to the homes of their topics, and a word to the two nodes that each comes between."""
        own, carried = super().join_messages(nodes)
        asked, told = membership.count_questions(nodes, self.network.profiles, self._known, self.control_ring())
        return own + asked + 2 * len(nodes), carried + asked + told + 2 * len(nodes)

    def forget(self, nodes: Columns) -> None:
        """Who left is taken out of the circle, newcomers join it. The membership service samples first, so that
        newcomers are told of those who are there now."""
        if self._begun and self.network.alive[nodes].any():
            self._sample_interests()
        super().forget(nodes)

    def saved(self) -> dict[str, NDArray[Any]]:
        return super().saved() | {
            "samples": self._samples,
            "known": self._known,
            "samplings": np.array([self._samplings]),
        }

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        super().restore(saved)
        self._samples, self._known = saved["samples"], saved["known"]
        self._samplings = int(saved["samplings"][0])

    def interests_changed(self, nodes: Columns) -> None:
        """Whoever has other interests now leaves the circle and joins it again (§3.2)."""
        super().interests_changed(nodes)
        if not self._begun:
            return
        rejoining = nodes[self.network.alive[nodes]]
        for node in rejoining.tolist():
            before = int(self._circle.before[node])
            ring.remove(node, self._circle)
            if before != node:
                join_neighbours(before, self.network.now, self._circle, self.network.views)
        self._sample_interests()
        self.acquire(rejoining)
        self._link(rejoining)
