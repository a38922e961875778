"""How fast overlays are designed from full knowledge: GM, MinMaxODA and LowODA.

    .venv/bin/python -m bench.designs [--trace DIR]

Reference, in the same run: the plain design of the tests, which counts every edge's contribution anew with networkx
(the edges must be the same). Growth is measured as an exponent: what doubling nodes or topics multiplies the time by,
as a power of two. `--trace` designs the overlay of a stored workload, with its time and memory.
"""

from __future__ import annotations

import argparse
import math
import resource

from tests.naive_designs import design as plain_design

from bench.rounds import Watch
from grapevine.model.workload import Workload
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate

RULES = "gm", "minmax-oda", "lowoda"


def interests(nodes: int, topics: int, subscriptions: int = 30) -> Workload:
    size = {"min_subscriptions": subscriptions, "max_subscriptions": subscriptions}
    return generate("omen", nodes=nodes, topics=topics, seed=1, **size)


def designed(rule: str, workload: Workload) -> tuple[float, Rounds]:
    """CPU seconds of one design, and the engine that holds it."""
    engine = Rounds(rule, workload, make_config(rule, {}), seed=1)
    watch = Watch()
    engine.step()
    return watch.spent().cpu, engine


def against_plain(nodes: int = 24, topics: int = 12) -> None:
    """The same edges, and how much sooner."""
    workload = interests(nodes, topics, 5)
    sets = [set(workload.topics_of(p).tolist()) for p in range(nodes)]
    for rule in RULES:
        designed(rule, workload)
        quick, engine = designed(rule, workload)
        watch = Watch()
        expected = plain_design(sets, rule, seed=1)
        plain = watch.spent().cpu
        rows = engine.network.neighbours()
        same = {(p, q) for p in range(nodes) for q in rows.row(p).tolist() if p < q} == set(expected)
        edges = "the same edges" if same else "DIFFERENT edges"
        print(f"{rule}, {nodes} nodes: {plain / quick:,.0f} times as fast as counting anew with networkx, {edges}")


def growth() -> None:
    """1,000 nodes × 100 topics, and the exponents in nodes and in topics."""
    for rule in RULES:
        base, engine = min((designed(rule, interests(1_000, 100)) for _ in range(3)), key=lambda made: made[0])
        degree = engine.network.neighbours().sizes()
        print(f"{rule}, 1,000 nodes × 100 topics: {base:.3f} CPU s, degree {degree.mean():.2f}, at most {degree.max()}")
        small, large = (designed(rule, interests(nodes, 200))[0] for nodes in (2_000, 4_000))
        few, many = (designed(rule, interests(2_000, topics, topics // 5))[0] for topics in (100, 400))
        by_nodes, by_topics = math.log2(large / small), math.log2(many / few) / 2
        print(f"  exponent in nodes (2,000 → 4,000) {by_nodes:.2f}, in topics (100 → 400, 20 % a node) {by_topics:.2f}")


def trace(folder: str) -> None:
    """A stored workload."""
    workload = Workload.load(folder)
    for rule in RULES:
        spent, engine = designed(rule, workload)
        degree = engine.network.neighbours().sizes()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        said = f"{spent:.1f} CPU s, {memory:.1f} GiB at most, degree {degree.mean():.2f}, at most {degree.max()}"
        size = f"{workload.node_count:,} nodes × {workload.topic_count:,} topics"
        print(f"{rule} on {workload.name}, {size}: {said}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace")
    chosen = parser.parse_args()
    against_plain()
    growth()
    if chosen.trace:
        trace(chosen.trace)
