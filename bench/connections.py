"""How fast SpiderCast is simulated: whole runs at the sizes of its Fig. 12, and the search for the next neighbour.

    .venv/bin/python -m bench.connections

References, in the same run: the plain-Python oracle of the tests on a small network (the overlay must be the same), and
for the search a numpy scan that scores every node of the network.
"""

from __future__ import annotations

import numpy as np
from tests.naive_connections import NaiveConnections

from bench.rounds import Watch
from grapevine.blocks.coverage import Gains, Membership, clear_need, lay_need, next_greedy
from grapevine.kernels.rng import draw
from grapevine.model.workload import Workload
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config, simulate
from grapevine.synthetic import generate


def oracle(nodes: int = 300, rounds: int = 15) -> None:
    """Kernels against plain Python."""
    workload = generate("spidercast", nodes=nodes, seed=1)
    fast = Rounds("spidercast", workload, make_config("spidercast", {}), seed=1)
    topics = [set(workload.topics_of(p).tolist()) for p in range(nodes)]
    slow = NaiveConnections(topics, [("greedy", 3), ("random", 0)], seed=1)
    slow.join(range(nodes))
    watch = Watch()
    for _ in range(rounds):
        fast.step()
    quick, watch = watch.spent(), Watch()
    for _ in range(rounds):
        slow.round()
    plain, views = watch.spent(), fast.network.views
    same = all(
        node.neighbours() == {q for q in views.links[views.starts[p] : views.starts[p + 1]].tolist() if q >= 0}
        for p, node in enumerate(slow.nodes)
    )
    print(f"oracle: {nodes} nodes, {rounds} rounds: plain Python {plain.cpu:.2f} s, kernels {quick.cpu:.4f} s CPU:")
    print(f"  {plain.cpu / quick.cpu:,.0f} times as fast, overlay {'identical' if same else 'DIFFERENT'}")


def search(nodes: int = 10_000, searches: int = 300) -> None:
    """The first greedy choice of some nodes: walking subscribers, against scoring everybody with numpy."""
    workload = generate("spidercast", nodes=nodes, seed=1)
    engine = Rounds("spidercast", workload, make_config("spidercast", {}), seed=1)
    network, nobody = engine.network, np.empty(0, np.int32)
    everybody = np.arange(nodes, dtype=np.int32)
    by_topic = network.topic_nodes
    members = Membership(1, 1.0, network.alive, everybody, by_topic.starts, by_topic.columns)
    need = np.zeros(len(network.profiles.weights), np.int64)
    scratch = Gains(np.zeros(nodes, np.int32), np.empty(nodes, np.int32))

    def choose(p: int) -> int:
        lay_need(p, 3, nobody, network.profiles, need)
        found = next_greedy(p, np.uint64(draw(1, 1, p, 0)), nobody, network.profiles, members, need, scratch)
        clear_need(p, nobody, network.profiles, need)
        return int(found)

    wanted = _matrix(workload)
    choose(0)
    watch = Watch()
    chosen = [choose(p) for p in range(searches)]
    walk, watch = watch.spent(), Watch()
    gains = [wanted[:, workload.topics_of(p)].sum(axis=1) for p in range(searches)]
    scan = watch.spent()
    as_good = all(np.delete(gain, p).max() == gain[q] for p, (q, gain) in enumerate(zip(chosen, gains, strict=True)))
    print(
        f"a greedy choice among {nodes:,} nodes: {walk.cpu / searches * 1e6:.0f} µs CPU; scoring everybody with numpy:"
    )
    print(f"  {scan.cpu / walk.cpu:.1f} times as long, {'equally good choices' if as_good else 'DIFFERENT choices'}")


def _matrix(workload: Workload) -> np.ndarray:
    dense = np.zeros((workload.node_count, workload.topic_count), np.int8)
    for p in range(workload.node_count):
        dense[p, workload.topics_of(p)] = 1
    return dense


def figure_12() -> None:
    """Whole runs: 40 rounds, dissemination on all topics, connectivity; no diameters."""
    for nodes in (1_000, 10_000):
        workload = generate("spidercast", nodes=nodes, seed=1)
        for system in ("spidercast", "similarity", "ring-per-topic"):
            run = RunConfig(rounds=40, measure_topics=0, diameter_topics=0)
            done = simulate(system, workload, run=run, threads=1).summary
            print(f"{system} {nodes:,} nodes: {done['cpu_s']:.1f} CPU s, degree {done['degree']:.2f}")


if __name__ == "__main__":
    oracle()
    search()
    figure_12()
