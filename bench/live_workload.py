"""One workload for every live system that is measured: who subscribes to what, and who publishes what when.

    .venv/bin/python -m bench.live_workload --nodes 30 --topics 100 --subscriptions 20 --buckets 10 --out workload.json

Making one needs Grapevine, reading one needs only Python: systems that live in an environment of their own read the
file.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LiveWorkload:
    """Subscriptions of every node, and events in the order of their times."""

    nodes: Sequence[Sequence[int]]  # the topics of every node, ascending
    events: Sequence[tuple[float, int, int]]  # (seconds after the first moment, publisher, topic)

    def subscribers(self) -> dict[int, list[int]]:
        """Who is subscribed to every topic that anybody is subscribed to."""
        found: dict[int, list[int]] = {}
        for node, topics in enumerate(self.nodes):
            for topic in topics:
                found.setdefault(topic, []).append(node)
        return found

    def expected(self) -> int:
        """How many deliveries are due: every event to every subscriber of its topic but the publisher."""
        subscribers = self.subscribers()
        return sum(len(subscribers[topic]) - 1 for _, _, topic in self.events)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> LiveWorkload:
        stored = json.loads(path.read_text())
        return cls(stored["nodes"], [(time, publisher, topic) for time, publisher, topic in stored["events"]])


def make(
    *, nodes: int, topics: int, subscriptions: int, buckets: int, events: int, rate: float, seed: int
) -> LiveWorkload:
    """Vitis' highly correlated subscriptions; every event has a random topic with two subscribers or more, one of
    which publishes it."""
    from grapevine.synthetic import generate

    model = generate(
        "vitis-high", nodes=nodes, topics=topics, subscriptions_per_node=subscriptions, buckets=buckets, seed=seed
    )
    subscribed = [model.topics_of(node).tolist() for node in range(nodes)]
    subscribers = LiveWorkload(subscribed, []).subscribers()
    shared = sorted(topic for topic, those in subscribers.items() if len(those) > 1)
    draw = random.Random(seed)
    made = []
    for number in range(events):
        topic = draw.choice(shared)
        made.append((number / rate, draw.choice(subscribers[topic]), topic))
    return LiveWorkload(subscribed, made)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that describe a workload, the same for every system."""
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--subscriptions", type=int, default=20, help="topics of every node")
    parser.add_argument("--buckets", type=int, default=10, help="groups of topics; a node's are from two of them")
    parser.add_argument("--events", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1.0, help="events a second, of all nodes together")
    parser.add_argument("--seed", type=int, default=1)


def from_options(options: argparse.Namespace) -> LiveWorkload:
    """The workload that `add_options` describes."""
    return make(
        nodes=options.nodes,
        topics=options.topics,
        subscriptions=options.subscriptions,
        buckets=options.buckets,
        events=options.events,
        rate=options.rate,
        seed=options.seed,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    from_options(options).write(options.out)
