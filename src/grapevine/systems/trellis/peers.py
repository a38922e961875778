"""Trellis message by message: sans-IO peers in virtual time.

Differs from the rounds: periods are times and adapt (`peer/peer.py`); labels need no ticks while nothing changes
(`peer/labels.py`); what a node knows is what neighbours have told it, by messages that take time and may be lost.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from grapevine.model.ids import ring_id
from grapevine.systems.contracts.peer import Address, PeerSystem, World
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.peer import TrellisPeer
from grapevine.systems.trellis.peer.setup import Setup

_CONTACTS = 5  # nodes that a newcomer knows


class TrellisPeers(PeerSystem[TrellisPeer]):
    """Makes the nodes of a simulated network, and says what is measured of them."""

    config_type = TrellisPeerConfig

    def __init__(self, config: TrellisPeerConfig, world: World) -> None:
        super().__init__(config, world)
        self._started: list[Address] = []  # all nodes that have been there, in this order
        self._random = Random(f"contacts {world.seed}")
        self._node_ids, self._topic_ids = world.workload.node_ids.tolist(), world.workload.topic_ids.tolist()

    def peer(self, node: Address, before: TrellisPeer | None) -> TrellisPeer:
        contacts = self._random.sample(self._started, min(_CONTACTS, len(self._started)))
        if before is None:
            self._started.append(node)
        memory = before.memory() if before else None
        setup = Setup(
            me=node,
            topics=self.world.workload.topics_of(node).tolist(),
            ring_id_of=self._ring_id,
            topic_id=self._topic_id,
            contacts=contacts,
            random=Random(f"trellis {self.world.seed} {node} {memory.version if memory else 0}"),
            memory=memory,
        )
        return TrellisPeer(setup, self.config)

    def _ring_id(self, node: Address) -> int:
        """A node's ring id; of one that is not in the workload as well, as a stranger may name it."""
        known = self._node_ids
        return known[node] if 0 <= node < len(known) else ring_id(f"node:{node}")

    def _topic_id(self, topic: int) -> int:
        known = self._topic_ids
        return known[topic] if 0 <= topic < len(known) else ring_id(f"topic:{topic}")

    def neighbours(self, peer: TrellisPeer) -> dict[Address, list[str]]:
        return peer.roles()

    def carriers(self, peer: TrellisPeer, now: float) -> dict[int, Collection[Address]]:
        found = {topic: peer.partners(now, topic) for topic in sorted(peer.carried(now))}
        return {topic: others for topic, others in found.items() if others or topic in peer.topics.own}
