"""py-libp2p's GossipSub on loopback: what Grapevine's live nodes are compared with, on the same workload.

    python3 -m venv libp2p-venv && libp2p-venv/bin/pip install libp2p==0.8.1
    .venv/bin/python -m bench.gossipsub --python libp2p-venv/bin/python --topics 100 --connect topic

The library has an environment of its own and is no dependency of Grapevine. GossipSub finds nobody by itself: it meshes
with whom its host is connected to. `--connect` says who that is: `random` others, as a bootstrap list gives; `topic`,
some other subscribers of every topic, as a discovery service gives; `all`. Meshes have the specification's degree.
Bytes are those of the kernel (bench/live_usage.py), of all processes, from the first event to the end of the wait after
the last one; `above_idle` is without what the same time would cost without events. Delays include the queues of two
event loops on however few cores there are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from pathlib import Path

from bench.live_groups import Plan, measure, show
from bench.live_workload import LiveWorkload, add_options, from_options


def links(workload: LiveWorkload, how: str, known: int, seed: int) -> list[tuple[int, int]]:
    """Who dials whom; no pair twice, since a connection serves both."""
    draw, pairs, count = random.Random(seed), set(), len(workload.nodes)
    subscribers = workload.subscribers()
    for node, topics in enumerate(workload.nodes):
        circles = [subscribers[topic] for topic in topics] if how == "topic" else [list(range(count))]
        for circle in circles:
            others = [other for other in circle if other != node]
            chosen = others if how == "all" else draw.sample(others, min(known, len(others)))
            pairs |= {(min(node, other), max(node, other)) for other in chosen}
    return [pair if draw.random() < 0.5 else pair[::-1] for pair in sorted(pairs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python that has libp2p")
    add_options(parser)
    parser.add_argument("--payload", type=int, default=200, help="bytes of every event")
    parser.add_argument("--groups", type=int, default=2, help="processes")
    parser.add_argument("--connect", choices=("random", "topic", "all"), default="topic")
    parser.add_argument("--known", type=int, default=6, help="others a node dials: at all, or for every topic")
    parser.add_argument("--protocol", default="/meshsub/1.1.0", help="1.2.0 adds IDONTWANT")
    parser.add_argument("--out", type=Path, help="write the result here too")
    options = parser.parse_args()
    workload = from_options(options)
    plan = Plan(
        command=[options.python, "-m", "bench.gossipsub_peer"],
        groups=options.groups,
        payload=options.payload,
        settings={
            "seed": options.seed,
            "protocol": options.protocol,
            "degree": 6,
            "degree_low": 4,
            "degree_high": 12,
        },
    )
    dials = links(workload, options.connect, options.known, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(plan, workload, Path(folder) / "workload.json", dials))
    result |= {"connect": options.connect, "known": options.known}
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
