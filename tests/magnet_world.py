"""Magnet and its strawman in tests: small workloads, engines that have run for a while, what can be read off them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from grapevine import Workload
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config

BOTH = "magnet", "strawman"


def run_for(system: str, workload: Workload, rounds: int, *, parameters: Any = None, **more: Any) -> Rounds:
    engine = Rounds(system, workload, make_config(system, parameters or {}), **more)
    for _ in range(rounds):
        engine.step()
    return engine


def workload_of(interests: Sequence[set[int]], topic_count: int, rates: Sequence[float] | None = None) -> Workload:
    pairs = [(node, topic) for node, mine in enumerate(interests) for topic in sorted(mine)]
    nodes, topics = zip(*pairs, strict=True)
    return Workload.from_pairs(nodes, topics, node_count=len(interests), topic_count=topic_count, rates=rates)


def ring_order(engine: Rounds) -> list[int]:
    """Who is online, by id."""
    online = np.flatnonzero(engine.network.alive)
    found: list[int] = online[np.argsort(engine.network.ids[online])].tolist()
    return found


def before(node: int, engine: Rounds) -> int:
    """The node's predecessor on the true ring."""
    order = ring_order(engine)
    return order[order.index(node) - 1]


def reached(engine: Rounds, topics: Iterable[int]) -> tuple[int, int]:
    """Subscribers that an event on each of these topics reaches, and how many there are."""
    events = engine.publish(np.array(list(topics), np.int32)).events
    return int(events["reached"].sum()), int(events["subscribers"].sum())
