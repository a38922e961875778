"""Grapevine's live nodes and py-libp2p's GossipSub, one after the other, on the same workload and machine.

    python3 -m venv libp2p-venv && libp2p-venv/bin/pip install libp2p==0.8.1
    .venv/bin/python -m bench.against_gossipsub --python libp2p-venv/bin/python

Grapevine's nodes know one node to begin with and find the others by gossip. GossipSub meshes with whom its host is
connected to, and is connected to random others, and to six other subscribers of every topic, which somebody has to know
(bench/gossipsub.py says more). Bytes include what standing costs, in both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.gossipsub import links
from bench.live_groups import Plan, measure
from bench.live_workload import LiveWorkload, make

SIZES = ((10, 4, 5), (100, 20, 10), (300, 40, 10))  # topics, subscriptions of a node, buckets
ROWS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("delivered", lambda r: f"{r['delivered']}/{r['expected']}"),
    ("connections, mean", lambda r: f"{r['connections_per_node']['mean']:.1f}"),
    ("connections, most", lambda r: f"{r['connections_per_node']['max']}"),
    ("partners a topic", lambda r: f"{r['links_per_node_and_topic']:.1f}"),
    ("bytes a delivery", lambda r: f"{r['bytes_per_delivered']:,.0f}"),
    ("idle bytes/s a node", lambda r: f"{r['idle_bytes_per_s_and_node']:,.0f}"),
    ("delay p50, ms", lambda r: f"{r['delay_ms']['p50']:.1f}"),
    ("delay p99, ms", lambda r: f"{r['delay_ms']['p99']:.1f}"),
    ("CPU s, setting up", lambda r: f"{r['cpu_s']['setup']:.1f}"),
    ("CPU s, publishing", lambda r: f"{r['cpu_s']['busy']:.1f}"),
    ("MiB a node", lambda r: f"{r['resident_mib']['per_node']:.1f}"),
)


def grapevine(workload: LiveWorkload, folder: Path, payload: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"parameters": {}}
    plan = Plan(command=[sys.executable, "-m", "bench.grapevine_peer"], payload=payload, settings=settings)
    dials = [(node, 0) for node in range(1, len(workload.nodes))]
    return asyncio.run(measure(plan, workload, folder / "workload.json", dials))


def gossipsub(workload: LiveWorkload, folder: Path, payload: int, python: str, how: str) -> dict[str, Any]:
    settings = {"seed": 1, "protocol": "/meshsub/1.1.0", "degree": 6, "degree_low": 4, "degree_high": 12}
    plan = Plan(command=[python, "-m", "bench.gossipsub_peer"], payload=payload, settings=settings)
    return asyncio.run(measure(plan, workload, folder / "workload.json", links(workload, how, 6, 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python that has libp2p")
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--events", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1.0, help="events a second, of all nodes together")
    parser.add_argument("--payload", type=int, default=200)
    parser.add_argument("--out", type=Path, help="write all results here too")
    options = parser.parse_args()
    results = {}
    for topics, subscriptions, buckets in SIZES:
        workload = make(
            nodes=options.nodes,
            topics=topics,
            subscriptions=subscriptions,
            buckets=buckets,
            events=options.events,
            rate=options.rate,
            seed=1,
        )
        with tempfile.TemporaryDirectory() as folder:
            found = {
                "grapevine": grapevine(workload, Path(folder), options.payload),
                "gossipsub, random": gossipsub(workload, Path(folder), options.payload, options.python, "random"),
                "gossipsub, topic": gossipsub(workload, Path(folder), options.payload, options.python, "topic"),
            }
        results[topics] = found
        print(f"\n{options.nodes} nodes, {topics} topics")
        print(f"{'':22}" + "".join(f"{name:>20}" for name in found))
        for label, value in ROWS:
            print(f"{label:22}" + "".join(f"{value(result):>20}" for result in found.values()))
    if options.out:
        options.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
