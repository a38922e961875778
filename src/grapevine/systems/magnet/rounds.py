"""Magnet over arrays: places on the ring by interest (Algorithm 1), learnt from the membership service."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.profiles import Profiles, clear, lay_out, preference, utility
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import JOIN_ORDER, NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream
from grapevine.systems.magnet import circle as ring
from grapevine.systems.magnet import membership
from grapevine.systems.magnet.circle import Circle
from grapevine.systems.magnet.config import MagnetConfig
from grapevine.systems.magnet.home_trees import OscarSystem, join_neighbours

GROWTH = 1.25  # the membership service samples anew when the network has grown by so much, while it is built


@njit
def take_places(
    seed: int,
    nodes: Columns,
    hashed: Ids,
    profiles: Profiles,
    samples: NDArray[np.int32],
    known: Columns,
    circle: Circle,
) -> None:
    """Algorithm 1 for one node after the other: next to the most similar known node, or at its hashed id.

    `known` tells how many of each topic's samples there are. A home that has fewer than it may keep also takes those
    who come, so that whoever wants a topic is told of somebody, unless it is the first (§3).
    """
    dense = np.zeros(len(profiles.weights), profiles.weights.dtype)
    start = NOBODY
    for q in range(len(circle.after)):
        if circle.after[q] != NOBODY:
            start = q
            break
    for p in nodes:
        lay_out(p, profiles, dense)
        ties = absorb(stream(seed, JOIN_ORDER, p), 1)
        best, most = NOBODY, np.int64(-1)
        mine = profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]
        for topic in mine:
            for q in samples[topic, : known[topic]]:
                if circle.after[q] != NOBODY:
                    value = preference(utility(p, q, profiles, dense), absorb(ties, q))
                    if value > most:
                        best, most = int(q), value
        clear(p, profiles, dense)
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
    """Magnet on a network."""

    config_type = MagnetConfig
    config: MagnetConfig

    def __init__(self, config: MagnetConfig, network: Network) -> None:
        topics = len(network.topic_ids)
        self._samples = np.full((topics, config.samples), NOBODY, np.int32)
        self._known = np.zeros(topics, np.int32)
        super().__init__(config, network)

    @property
    def choices(self) -> int:
        return self.config.choices

    def _join_in_turn(self, order: Columns) -> None:
        """The membership service samples anew whenever the network has grown by a quarter."""
        joined = 0
        while joined < len(order):
            more = max(1, int(joined * (GROWTH - 1)))
            self.acquire(order[joined : joined + more])
            joined += more
            self._sample_interests()

    def acquire(self, nodes: Columns) -> None:
        take_places(
            self.network.seed,
            nodes,
            self._control,
            self.network.profiles,
            self._samples,
            self._known,
            self._circle,
        )

    def _sample_interests(self) -> None:
        """One round of the membership service (§3.4) for every topic."""
        network, (nodes, ids) = self.network, self._control_ring()
        if len(nodes) == 0:
            self._known[:] = 0
            return
        place = np.full(network.size, NOBODY, np.int32)
        place[nodes] = np.arange(len(nodes))
        homes, rows = membership.home_places(ids, network.topic_ids), network.topic_nodes
        network.in_chunks(
            lambda a, b: membership.sample_topics(
                network.seed,
                network.now,
                (a, b),
                ids,
                place,
                homes,
                (rows.starts, rows.columns),
                self._samples,
                self._known,
            ),
            len(network.topic_ids),
        )

    def forget(self, nodes: Columns) -> None:
        """Newcomers are told what the last round of sampling found, in the round before."""
        if self._begun and self.network.alive[nodes].any():
            self._sample_interests()
        super().forget(nodes)

    def interests_changed(self, nodes: Columns) -> None:
        """Whoever has other interests now leaves its place and joins again (§3.2)."""
        super().interests_changed(nodes)
        if not self._begun:
            return
        moving = nodes[self.network.alive[nodes]]
        for node in moving.tolist():
            before = int(self._circle.before[node])
            ring.remove(node, self._circle)
            if before != node:
                join_neighbours(before, self.network.now, self._circle, self.network.views)
        self._sample_interests()
        self.acquire(moving)
        self._link(moving)
