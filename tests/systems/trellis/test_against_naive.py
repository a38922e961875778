"""The kernels build the same overlay as the plain Python of `tests/naive_trellis.py`: links, labels and bridges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grapevine import Workload
from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.synthetic import generate
from grapevine.systems.trellis.config import TrellisConfig
from grapevine.systems.trellis.rounds import Trellis
from tests.naive_rounds import NaiveNetwork
from tests.naive_trellis import Label, NaiveTrellis

ROUNDS = 30


def clustered(seed: int) -> Workload:
    return generate(
        "vitis-low", nodes=60, topics=40, subscriptions_per_node=8, buckets=10, buckets_per_node=4, seed=seed
    )


def scattered(seed: int) -> Workload:
    return generate("vitis-random", nodes=60, topics=50, subscriptions_per_node=5, seed=seed)


class Both:
    """One overlay, grown by kernels and by hand."""

    def __init__(self, workload: Workload, parameters: dict[str, Any], seed: int) -> None:
        config = TrellisConfig(**parameters)
        how: dict[str, Any] = {"seed": seed, "sample_size": config.sample_size, "ring_backups": config.ring_backups}
        self.fast = Network(workload, threads=2, **how)
        self.system = Trellis(config, self.fast)
        wants = [set(workload.topics_of(p).tolist()) for p in range(workload.node_count)]
        slow = NaiveNetwork(workload.node_ids.tolist(), wants, workload.rates.tolist(), **how)
        self.slow, self.naive = slow, NaiveTrellis(slow, config)
        self.config = config

    def start(self, nodes: list[int]) -> None:
        self.fast.open_at_once(np.array(nodes, np.int32))
        self.slow.open_at_once(nodes)

    def churn(self, leaves: list[int], crashes: list[int], joins: list[int]) -> None:
        """As the round engine does it."""
        gone = sorted({*leaves, *crashes})
        changed = np.array(sorted({*gone, *joins}), np.int32)
        self.system.say_goodbye(np.array(leaves, np.int32))
        self.fast.leave(np.array(gone, np.int32))
        self.fast.join(np.array(joins, np.int32))
        self.system.forget(changed)
        self.slow.say_goodbye(leaves)
        self.slow.leave(gone)
        self.slow.join(joins)
        self.naive.forget(changed.tolist())
        for p in joins:
            self.naive.joined[p] = self.slow.now

    def step(self) -> None:
        self.fast.now += 1
        self.slow.now += 1

    def compare(self) -> None:
        assert [self.naive.near(p) for p in range(self.fast.size)] == self.links()
        assert [own.prospects for own in self.naive.growers] == [
            [q for q in row if q != NOBODY] for row in self.system._prospects.tolist()
        ]
        for p in range(self.fast.size):
            if self.fast.alive[p]:
                assert self.labels(p) == {t: told(x) for t, x in self.naive.growers[p].labels.items()}, p

    def links(self) -> list[list[int]]:
        rows = self.fast.rows.links.reshape(self.fast.size, -1).tolist()
        return [[q for q in row if q != NOBODY] for row in rows]

    def labels(self, p: int) -> dict[int, tuple[Any, ...]]:
        profiles, x = self.fast.profiles, self.system.labels
        found = {}
        for e in range(profiles.starts[p], profiles.starts[p + 1]):
            found[int(profiles.topics[e])] = (
                *(x.root[e], x.tick[e], x.hops[e], x.parent[e], x.has_other_way[e]),
                *(x.offer_bridge[e], x.offer_member[e], x.choice_bridge[e], x.choice_member[e]),
            )
        return found


def told(label: Label) -> tuple[Any, ...]:
    offer, choice = label.offer or (NOBODY, NOBODY), label.choice or (NOBODY, NOBODY)
    parent = NOBODY if label.parent is None else label.parent
    return (*(label.root, label.tick, label.hops, parent, label.other_way), *offer[:2], *choice)


@pytest.mark.parametrize("workload", [clustered, scattered])
@pytest.mark.parametrize(
    "parameters",
    [
        {"most_links": 6},
        {
            "most_links": 5,
            "sample_size": 6,
            "prospects": 3,
            "callers": 1,
            "calm_rounds": 4,
            "max_age": 1,
            "ring_backups": 1,
        },
        {"most_links": 9, "bridges": False, "patience_rounds": 0, "margin": 0.0, "stiffness": 0.0, "requests": 1},
    ],
)
def test_rounds_are_those_of_plain_python(workload: Any, parameters: dict[str, Any]) -> None:
    both = Both(workload(3), parameters, seed=7)
    both.start(list(range(50)))
    for now in range(1, ROUNDS + 1):
        both.step()
        if now == 9:
            both.churn([3, 4], list(range(10, 24)), [50, 51, 52])
        if now == 11:
            both.churn([], [51], [3, 12, 13])  # two of them before all others have noticed that they were gone
        both.system.round()
        both.naive.round()
        both.compare()
