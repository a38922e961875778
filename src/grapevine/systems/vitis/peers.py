"""Vitis (Rahimian et al., IPDPS 2011) message by message: the rules of `systems/vitis`, driven by sans-IO peers.

Differs from the rounds: every node has rounds of its own, a tenth longer or shorter; relay paths are soft
state that gateways renew every few rounds; all topics weigh the same in the utility, unless `rates` says otherwise:
then each node says with its profile what its topics weigh.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import numpy as np

from grapevine.model.ids import ring_id
from grapevine.systems.contracts.peer import Address, PeerSystem, World
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peer.setup import Setup

_CONTACTS = 5  # nodes that a newcomer knows


class VitisPeers(PeerSystem[VitisPeer]):
    """Makes the nodes of a simulated network, and says what is measured of them."""

    config_type = VitisPeerConfig

    def __init__(self, config: VitisPeerConfig, world: World) -> None:
        super().__init__(config, world)
        self._started: list[Address] = []  # all nodes that have been there, in this order
        self._random = Random(f"contacts {world.seed}")
        rates = np.asarray(world.workload.rates, np.float64)
        self._rates = rates / rates.mean() if len(rates) and rates.mean() > 0 else np.ones(len(rates))

    def peer(self, node: Address, before: VitisPeer | None) -> VitisPeer:
        workload = self.world.workload
        contacts = self._random.sample(self._started, min(_CONTACTS, len(self._started)))
        if before is None:
            self._started.append(node)
        setup = Setup(
            me=node,
            ring_id=int(workload.node_ids[node]),
            topics=workload.topics_of(node).tolist(),
            topic_id=self._topic_id,
            contacts=contacts,
            random=Random(f"vitis {self.world.seed} {node} {before.memory().version if before else 0}"),
            memory=before.memory() if before else None,
            rate_of=self._rate_of,
            tie_seed=self.world.seed,
        )
        return VitisPeer(setup, self.config)

    def _rate_of(self, topic: int) -> float:
        """The workload's rate of a topic, as whoever publishes it declares: 1 is the mean of all topics."""
        return float(self._rates[topic]) if 0 <= topic < len(self._rates) else 1.0

    def _topic_id(self, topic: int) -> int:
        """A topic's ring id; of one that is not in the workload as well, as a stranger may name it."""
        known = self.world.workload.topic_ids
        return int(known[topic]) if 0 <= topic < len(known) else ring_id(f"topic:{topic}")

    def neighbours(self, peer: VitisPeer) -> dict[Address, list[str]]:
        return peer.roles()

    def carriers(self, peer: VitisPeer, now: float) -> dict[int, Collection[Address]]:
        found = {topic: peer.carriers(now, topic) for topic in sorted(peer.carried(now))}
        return {topic: others for topic, others in found.items() if others or topic in peer.topics}
