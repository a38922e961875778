"""Scribe on a simulated network: its nodes, and what is measured of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.systems.contracts.peer import Address, PeerSystem, Place, World
from grapevine.systems.contracts.trees import MESSAGES_AT_HEIGHT, PLACES, TREES, place_rows
from grapevine.systems.scribe.config import ScribeConfig
from grapevine.systems.scribe.overlay import Overlay
from grapevine.systems.scribe.pastry import Nodes, Pastry
from grapevine.systems.scribe.peer import ScribePeer


class Scribe(PeerSystem[ScribePeer]):
    """Makes the nodes of a simulated network with one Pastry below them, and says what is measured of them."""

    config_type = ScribeConfig
    config: ScribeConfig
    own_tables = (TREES,)
    own_findings = (MESSAGES_AT_HEIGHT,)

    def __init__(self, config: ScribeConfig, world: World) -> None:
        super().__init__(config, world)
        ids = world.workload.node_ids.tolist()
        pastry = Pastry(ids, self._delays, digit_bits=config.digit_bits, leaf_size=config.leaf_size)
        self._overlay = Overlay(pastry, config.heartbeat_s + config.timeout_s)

    def _delays(self, node: Address, others: Nodes) -> NDArray[np.float64]:
        return np.fromiter(map(self.world.latency_s, repeat(node), others.tolist()), np.float64, len(others))

    def peer(self, node: Address, before: ScribePeer | None) -> ScribePeer:
        peer = ScribePeer(node, self.config, self.world, self._overlay)
        if before is not None:
            peer.resume(before)
        return peer

    def neighbours(self, peer: ScribePeer) -> dict[Address, list[str]]:
        roles: defaultdict[Address, list[str]] = defaultdict(list)
        for _, tree in sorted(peer.trees.items()):
            if tree.parent is not None:
                roles[tree.parent].append("parent")
            for child in tree.children:
                roles[child].append("child")
        return dict(roles)

    def own_rows(self, peers: Mapping[Address, ScribePeer]) -> dict[str, list[dict[str, Any]]]:
        return {PLACES.name: place_rows(self, peers)}

    def places(self, peer: ScribePeer) -> list[Place]:
        return [Place(topic, tree.parent, None, len(tree.children)) for topic, tree in sorted(peer.trees.items())]
