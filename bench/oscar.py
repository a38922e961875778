"""How Magnet's ring scales: route lengths with skewed ids, and the time of a whole experiment.

    .venv/bin/python -m bench.oscar [--large]

Reference, in the same run: the same ring with Symphony's fingers, which are drawn by distance between ids (as Vitis
and RVR draw theirs), by somebody who knows every node. Oscar's come from random walks. `--large` goes to 100,000
nodes.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from bench.rounds import Watch
from grapevine.blocks.small_world import RING_SLOTS
from grapevine.model.workload import Workload
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config, simulate
from grapevine.synthetic import generate
from grapevine.systems.magnet import oscar

FINGERS = 17
ROUTES = 2_000


def skewed(nodes: int, seed: int = 1) -> NDArray[np.uint64]:
    """Ids whose logarithm is spread evenly over 50 binary orders: half of them within 2^-25 of the ring."""
    ids = np.exp2(np.random.default_rng(seed).uniform(13, 63, nodes)).astype(np.uint64)
    return np.unique(ids + np.arange(nodes, dtype=np.uint64))


def ring_of(ids: NDArray[np.uint64], rounds: int = 26) -> Rounds:
    """Strawman nodes at these ids, after their fingers have settled."""
    nodes = len(ids)
    everyone = np.arange(nodes)
    workload = Workload.from_pairs(everyone, np.zeros(nodes, int), node_count=nodes, topic_count=1)
    engine = Rounds("strawman", workload, make_config("strawman", {"table_size": FINGERS + RING_SLOTS}), seed=1)
    engine.network.ids[:] = ids  # nodes have not taken their places yet
    for _ in range(rounds):
        engine.step()
    return engine


def route(engine: Rounds) -> float:
    online = np.flatnonzero(engine.network.alive).astype(np.int32)
    return oscar.mean_route(1, ROUTES, engine.now, online, engine.network.ids, engine.network.views)


def by_distance(engine: Rounds, seed: int = 1) -> None:
    """Replace the fingers by nodes nearest to clockwise distances of density 1/x between ids."""
    ids, views = engine.network.ids, engine.network.views
    order = np.argsort(ids)
    ring, random = ids[order], np.random.default_rng(seed)
    span = np.exp2(64 - math.log2(len(ids)) * random.uniform(size=(len(ids), FINGERS))).clip(max=2.0**64 - 2048)
    targets = ids[:, None] + span.astype(np.uint64)
    fingers = order[np.searchsorted(ring, targets) % len(ring)].astype(np.int32)
    for node in range(len(ids)):
        row = slice(views.starts[node] + RING_SLOTS, views.starts[node + 1])
        views.links[row], views.heard[row] = fingers[node], engine.now


def scaling(sizes: tuple[int, ...]) -> None:
    for nodes in sizes:
        watch = Watch()
        engine = ring_of(skewed(nodes))
        spent, found = watch.spent().cpu, route(engine)
        by_distance(engine)
        other = route(engine)
        bound = math.log2(nodes) ** 2 / FINGERS
        print(
            f"{nodes:,} nodes, skewed ids, {FINGERS} fingers: {found:.2f} hops, {found / bound:.2f} · log² N / k; "
            f"fingers by distance between ids: {other:.1f} hops, {other / found:.1f} times as many ({spent:.0f} CPU s)",
            flush=True,
        )


def experiment(nodes: int = 10_000) -> None:
    workload = generate("magnet-modal", nodes=nodes, seed=1)
    for system in ("magnet", "strawman"):
        simulate(system, generate("magnet-modal", nodes=200, seed=1), rounds=7, threads=1)
        watch = Watch()
        run = simulate(system, workload, threads=1, run=RunConfig(rounds=31, measure_topics=0, diameter_topics=0))
        relays = run.summary["relays_per_event"]
        print(f"{system}, {nodes:,} nodes, 1 of 10 modes: {watch.spent().cpu:.1f} CPU s, {relays:.0f} relays an event")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args()
    scaling((1_000, 3_000, 10_000, 30_000, 100_000) if chosen.large else (1_000, 3_000, 10_000))
    experiment()
