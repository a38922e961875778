"""SpiderCast and its rivals in tests: cases, what happens to their nodes, and the state of a running engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from grapevine import Workload
from grapevine.blocks.views import NOBODY
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.synthetic import generate
from grapevine.systems.contracts.connections import ConnectionSystem

ROUNDS = 24
QUICK = RunConfig(measure_topics=0)


def workload_of(
    nodes: int, topics: int, least: int, most: int, *, exponent: float = 0.5, popularity: str = "zipf", seed: int = 1
) -> Workload:
    sizes = {"min_subscriptions": least, "max_subscriptions": most}
    return generate(
        "spidercast", nodes=nodes, topics=topics, popularity=popularity, exponent=exponent, seed=seed, **sizes
    )


def int32(numbers: Sequence[int]) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


class Case(NamedTuple):
    system: str
    parameters: dict[str, Any]
    workload: dict[str, Any]


CASES = {
    "greedy (3, 0)": Case("spidercast", {}, {"nodes": 64, "topics": 30, "least": 3, "most": 8}),
    "greedy and random (3, 1)": Case(
        "spidercast",
        {"random_coverage": 1},
        {"nodes": 56, "topics": 40, "least": 5, "most": 5, "popularity": "uniform"},
    ),
    "adaptive, skewed": Case(
        "spidercast", {"adaptive": True}, {"nodes": 64, "topics": 12, "least": 8, "most": 8, "exponent": 2.0}
    ),
    "no margin": Case(
        "spidercast",
        {"greedy_coverage": 1, "margin": 0},
        {"nodes": 64, "topics": 40, "least": 1, "most": 6, "exponent": 1.0},
    ),
    "small margin": Case(
        "spidercast",
        {"greedy_coverage": 1, "random_coverage": 1, "margin": 1, "quarantine_rounds": 0},
        {"nodes": 64, "topics": 40, "least": 1, "most": 6, "exponent": 1.0},
    ),
    "partial view": Case(
        "spidercast",
        {"random_coverage": 1, "view_share": 0.2, "max_age": 1},
        {"nodes": 72, "topics": 30, "least": 4, "most": 6},
    ),
    "ties in a common order": Case(
        "spidercast",
        {"greedy_coverage": 2, "ties": "order"},
        {"nodes": 56, "topics": 20, "least": 2, "most": 6, "exponent": 1.0},
    ),
    "ties by a common stream": Case(
        "spidercast",
        {"greedy_coverage": 2, "ties": "stream"},
        {"nodes": 56, "topics": 20, "least": 2, "most": 6, "exponent": 1.0},
    ),
    "as printed": Case(
        "spidercast",
        {"random_coverage": 1, "margin": 2, "target_rule": "printed", "disconnect_rule": "printed"},
        {"nodes": 56, "topics": 30, "least": 3, "most": 6},
    ),
    "redirects as printed": Case(
        "spidercast",
        {"greedy_coverage": 1, "margin": 1, "redirect_rule": "printed", "quarantine_rounds": 0},
        {"nodes": 64, "topics": 40, "least": 1, "most": 6, "exponent": 1.0},
    ),
    # Nobody is missed before the end, so those who come back find neighbours that still count on them.
    "slow to miss": Case(
        "spidercast",
        {"greedy_coverage": 2, "random_coverage": 1, "margin": 2, "max_age": 30},
        {"nodes": 60, "topics": 20, "least": 2, "most": 5},
    ),
    "similarity (4, 2)": Case(
        "similarity",
        {"similar": 4, "random": 2, "margin": 1},
        {"nodes": 56, "topics": 30, "least": 3, "most": 8},
    ),
    "random (3), tiny views": Case(
        "similarity",
        {"similar": 0, "random": 3, "view_share": 0.02},
        {"nodes": 100, "topics": 10, "least": 3, "most": 8},
    ),
    "random (5), skewed": Case(
        "similarity",
        {"similar": 0, "random": 5, "margin": 1},
        {"nodes": 56, "topics": 10, "least": 3, "most": 8, "exponent": 2.0},
    ),
}


class Story(NamedTuple):
    """What happens to the nodes, by round."""

    first: list[int]
    joins: dict[int, list[int]]
    leaves: dict[int, list[int]]
    crashes: dict[int, list[int]]
    wishes: dict[int, list[tuple[int, int, bool]]]  # node, topic, wanted or not

    def schedule(self) -> Schedule:
        rounds = sorted({*self.joins, *self.leaves, *self.crashes})
        changes = {
            now: Change(*(int32(some.get(now, [])) for some in (self.joins, self.leaves, self.crashes)))
            for now in rounds
        }
        return Schedule(int32(self.first), changes)


def quiet(workload: Workload) -> Story:
    return Story(list(range(workload.node_count)), {}, {}, {}, {})


def eventful(workload: Workload) -> Story:
    """Some crash, some leave, in round 16 both; half of them come back later than they are missed; five are new.

    Interests change in two rounds, also of those who are away; one node loses all of them and gets others.
    """
    old, new = list(range(workload.node_count - 5)), list(range(workload.node_count - 5, workload.node_count))
    crashed, left, last = old[3::9], old[4::9], old[5::9]
    topics = {p: workload.topics_of(p).tolist() for p in (*old, *new)}
    changed = [(p, topics[p][0], False) for p in old[1::8]]
    changed += [(p, (7 * p) % workload.topic_count, True) for p in old[1::6]]
    emptied = [(0, topic, False) for topic in topics[0]]
    refilled = [(0, topic, True) for topic in topics[2]]
    return Story(
        old,
        joins={11: crashed[::2] + new, 15: left[::2], 16: crashed[1::2]},
        leaves={7: left, 16: last[::2]},
        crashes={5: crashed, 16: last[1::2]},
        wishes={9: changed + emptied, 13: [(p, t, True) for p, t, _ in changed[:5]] + refilled},
    )


class State(NamedTuple):
    """One node in one task."""

    neighbours: list[int]
    target: int
    redirect: int
    k: int


def system_of(engine: Rounds) -> ConnectionSystem:
    assert isinstance(engine.system, ConnectionSystem)
    return engine.system


def states(engine: Rounds) -> dict[tuple[int, int], State]:
    """Of the nodes that are there."""
    system, views, found = system_of(engine), engine.network.views, {}
    for p in np.flatnonzero(engine.network.alive).tolist():
        row = slice(views.starts[p], views.starts[p + 1])
        links, roles = views.links[row], system.roles[row]
        for i, task in enumerate(system.tasks):
            near = sorted(links[(links != NOBODY) & (roles & task.role != 0)].tolist())
            found[p, i] = State(near, int(task.target[p]), int(task.redirect[p]), int(task.k[p]))
    return found


def sent_by(engine: Rounds) -> dict[str, int]:
    return {kind: sent.messages for kind, sent in engine.system.messages().items()}


def graph_of(source: Sequence[int], target: Sequence[int], nodes: int) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.empty_graph(nodes)
    graph.add_edges_from(zip(source, target, strict=True))
    return graph
