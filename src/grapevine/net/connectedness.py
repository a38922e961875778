"""Whether the subscribers of topics can reach each other: by those with whom they exchange events, as these say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Connectedness:
    """How many topics have at least two subscribers, and of how many of those the subscribers are connected."""

    connected: int = 0
    shared: int = 0

    @property
    def share(self) -> float:
        """Of the topics that have somebody to connect."""
        return self.connected / self.shared if self.shared else 1.0

    @property
    def is_whole(self) -> bool:
        """Whether there is a way to every subscriber of every topic."""
        return self.connected == self.shared


def connectedness(
    wanted: Mapping[int, Sequence[int]], exchanges: Iterable[tuple[int, Mapping[int, Sequence[int]]]]
) -> Connectedness:
    """Look at every topic: `wanted` has its subscribers, `exchanges` of every node those that it exchanges events with.

    Topics are ids, nodes addresses; a way may lead over nodes that do not subscribe.
    """
    edges: dict[int, list[tuple[int, int]]] = {}
    for address, partners in exchanges:
        for topic, others in partners.items():
            edges.setdefault(topic, []).extend((address, other) for other in others)
    shared = {topic: nodes for topic, nodes in wanted.items() if len(nodes) > 1}
    connected = sum(are_connected(nodes, edges.get(topic, [])) for topic, nodes in shared.items())
    return Connectedness(connected, len(shared))


def are_connected(wanted: Sequence[int], edges: Iterable[tuple[int, int]]) -> bool:
    """Whether all of these are in one component."""
    leader: dict[int, int] = {}

    def find(node: int) -> int:
        while (above := leader.setdefault(node, node)) != node:
            leader[node] = leader[above]
            node = above
        return node

    for one, other in edges:
        leader[find(one)] = find(other)
    return len({find(node) for node in wanted}) <= 1
