"""Slow, obvious overlay designs: every edge's contribution counted anew, with networkx, before each choice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import networkx as nx

from tests.naive import draw

EDGE_TIES = 2**43

Edge = tuple[int, int]


def design(
    topics: Sequence[set[int]], rule: str, *, rho: float = 3.0, seed: int = 1, existing: Sequence[Edge] = ()
) -> list[Edge]:
    """The edges that the rule adds to the existing ones, in order, until every topic is connected."""
    overlay: nx.Graph[int] = nx.Graph()
    overlay.add_nodes_from(range(len(topics)))
    overlay.add_edges_from(existing)
    added: list[Edge] = []
    while True:
        gains = {
            edge: gain for edge in combinations(range(len(topics)), 2) if (gain := contribution(overlay, topics, edge))
        }
        if not gains:
            return added
        edge = choose(gains, dict(overlay.degree), rule, rho, seed)
        overlay.add_edge(*edge)
        added.append(edge)


def contribution(overlay: nx.Graph[int], topics: Sequence[set[int]], edge: Edge) -> int:
    """Topics of both ends in whose graph they are not connected."""
    p, q = edge

    def apart(topic: int) -> bool:
        members = [v for v in overlay if topic in topics[v]]
        return not nx.has_path(overlay.subgraph(members), p, q)

    return sum(apart(topic) for topic in topics[p] & topics[q])


def choose(gains: dict[Edge, int], degree: dict[int, int], rule: str, rho: float, seed: int) -> Edge:
    def value(edge: Edge) -> tuple[int, int]:
        return gains[edge], draw(seed, EDGE_TIES, *edge) >> 33

    def resulting(edge: Edge) -> int:
        return max(max(degree.values()), degree[edge[0]] + 1, degree[edge[1]] + 1)

    lowest = min(map(resulting, gains))
    anywhere, low = max(gains, key=value), max((e for e in gains if resulting(e) == lowest), key=value)
    if rule == "gm":
        return anywhere
    if rule == "minmax-oda":
        return low
    return anywhere if gains[anywhere] > rho * gains[low] else low
