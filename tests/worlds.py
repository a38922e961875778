"""Small worlds for tests: overlays written down by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels import csr
from grapevine.sim.dissemination import EVENT_FIELDS, Publications, disseminate, no_totals
from grapevine.sim.event_graph import Medium
from grapevine.systems.contracts.rounds import NO_WAYS


def node_number(number: int) -> int:
    """As arrays hold it: kernels would be compiled once more for Python's own numbers."""
    return cast(int, np.int32(number))


def views_of(links: Mapping[int, Sequence[int]], node_count: int, dead: Sequence[int] = ()) -> Views:
    """Tables with these links, all heard in round 0."""
    width = max((len(row) for row in links.values()), default=0)
    table = np.full((node_count, width), NOBODY, np.int32)
    for node, row in links.items():
        table[node, : len(row)] = row
    alive = np.ones(node_count, np.bool_)
    alive[list(dead)] = False
    nothing, nodes = np.empty((node_count, 0), np.int32), np.arange(node_count, dtype=np.int32)
    starts, heard = np.arange(node_count + 1, dtype=np.int64) * width, np.zeros(table.size, np.int32)
    return Views(nodes, starts, table.ravel(), heard, nothing, nothing, nothing, alive, np.ones_like(alive))


def both_ways(links: Mapping[int, Sequence[int]], node_count: int) -> tuple[csr.Starts, csr.Columns]:
    pairs = sorted({pair for a, row in links.items() for b in row for pair in ((a, b), (b, a))})
    sources, targets = np.array(pairs, np.int32).reshape(-1, 2).T
    return csr.from_pairs(np.ascontiguousarray(sources), np.ascontiguousarray(targets), node_count, node_count)


@dataclass(frozen=True)
class TopicWorld:
    """A random overlay with three topics: as kernels read it, and as networkx does."""

    links: tuple[csr.Starts, csr.Columns]  # those of nodes that are gone, too
    subscribers: tuple[csr.Starts, csr.Columns]
    alive: NDArray[np.bool_]
    online: nx.Graph[int]
    members: list[list[int]]  # of every topic, those that are online


def topic_world(size: int, density: float, seed: int) -> TopicWorld:
    """So many nodes, each two linked with this probability; half of them want a topic, nine in ten are online."""
    graph, rng = nx.gnp_random_graph(size, density, seed=seed), np.random.default_rng(seed)
    wants = [np.flatnonzero(rng.random(size) < 0.5).astype(np.int32) for _ in range(3)]
    alive = rng.random(size) < 0.9
    starts = np.concatenate([[0], np.cumsum([len(members) for members in wants])]).astype(np.int64)
    return TopicWorld(
        both_ways({node: list(graph[node]) for node in graph}, size),
        (starts, np.concatenate(wants)),
        alive,
        graph.subgraph(np.flatnonzero(alive).tolist()),
        [members[alive[members]].tolist() for members in wants],
    )


def medium_of(
    links: Mapping[int, Sequence[int]],
    subscribers: Sequence[int],
    *,
    ids: Sequence[int],
    topic_id: int = 0,
    gateways: Sequence[int] = (),
    floods: bool = True,
    spanning: bool = False,
    dead: Sequence[int] = (),
    home: int | None = None,
) -> Medium:
    """One topic on a hand-made overlay."""
    members = np.array(sorted(subscribers), np.int32)
    return Medium(
        np.array([0, len(members)], np.int64),
        members,
        np.isin(members, list(gateways)),
        floods,
        spanning,
        *both_ways({a: [b for b in row if not {a, b} & set(dead)] for a, row in links.items()}, len(ids)),
        views_of(links, len(ids), dead),
        0,
        np.array(ids, np.uint64),
        np.array([topic_id], np.uint64),
        np.array([] if home is None else [home], np.int32),
        NO_WAYS,
    )


def publish(
    medium: Medium, publisher: int, *, counted: Sequence[bool] | None = None
) -> tuple[dict[str, int], np.ndarray]:
    """One event: its row by name, and the load of every node (wanted, duplicate, unwanted)."""
    events = np.zeros((1, len(EVENT_FIELDS)), np.int64)
    totals = no_totals(len(medium.ids))
    counts = np.array(medium.views.alive if counted is None else counted, np.bool_)
    topic, who = np.zeros(1, np.int32), np.array([publisher], np.int32)
    disseminate((0, 1), Publications(topic, who, np.ones(1, np.int64), counts), medium, events, totals)
    return dict(zip(EVENT_FIELDS, events[0].tolist(), strict=True)), totals.load
