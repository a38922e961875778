"""How fast overlays are simulated, where the time goes, and how it grows with the network.

    .venv/bin/python -m bench.rounds [--large] [--million]

CPU and wall seconds after compilation (a small run first), on `vitis-high`, on one thread unless said otherwise.
References of the same run: the plain-Python oracle of the tests, which must give the identical overlay; and the network
of a tenth of the size. `bench.against_peersim` has the comparison with another engine.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests import naive_rounds

from grapevine import Workload, simulate
from grapevine.blocks.profiles import Profiles, ask_for_topics, mark, new_marks, utility
from grapevine.kernels.jit import njit
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.contracts.rounds import GossipSystem


class Spent(NamedTuple):
    cpu: float
    wall: float


class Watch:
    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def spent(self) -> Spent:
        return Spent(time.process_time() - self.cpu, time.perf_counter() - self.wall)


def workload_of(nodes: int, pattern: str = "vitis-high") -> Workload:
    return generate(pattern, nodes=nodes, seed=1)


def oracle(nodes: int = 200, rounds: int = 10) -> None:
    """Kernels against plain Python: the same overlay, and how much sooner."""
    workload = generate("vitis-high", nodes=nodes, topics=500, buckets=10, seed=1)
    fast = Rounds("vitis", workload, make_config("vitis", {}), seed=1)
    slow = naive_rounds.NaiveNetwork(
        workload.node_ids.tolist(),
        [set(workload.topics_of(p).tolist()) for p in range(nodes)],
        workload.rates.tolist(),
        seed=1,
        sample_size=20,
        ring_backups=4,
        settle_rounds=10,
    )
    slow.open_at_once(list(range(nodes)))
    watch = Watch()
    for _ in range(rounds):
        fast.step()
    quick = watch.spent()
    watch = Watch()
    for now in range(1, rounds + 1):
        slow.now = now
        slow.sample()
        slow.exchange(naive_rounds.vitis(15, 3), ring_slots=2, max_age=3)
    plain = watch.spent()
    links = fast.network.views.links.reshape(nodes, -1)
    same = all(
        [entry[0] for entry in node.links if entry] == [q for q in links[p].tolist() if q >= 0]
        for p, node in enumerate(slow.nodes)
    )
    ratio = plain.cpu / quick.cpu
    print(f"oracle: {nodes} nodes, {rounds} rounds: plain Python {plain.cpu:.2f} s, kernels {quick.cpu:.4f} s CPU:")
    print(f"  {ratio:,.0f} times as fast, overlay {'identical' if same else 'DIFFERENT'}")
    assert same


def phases(nodes: int, rounds: int = 20) -> None:
    """The share of peer sampling and view exchange in a round, and what a score costs."""
    engine = Rounds("vitis", workload_of(nodes), make_config("vitis", {}), seed=1)
    engine.step()
    assert isinstance(engine.system, GossipSystem)
    sampling = exchange = 0.0
    for _ in range(rounds):
        engine.network.now += 1
        watch = Watch()
        engine.network.sample()
        sampling += watch.spent().cpu
        watch = Watch()
        engine.system.exchange()
        exchange += watch.spent().cpu
    round_cpu = (sampling + exchange) / rounds
    share = sampling / (sampling + exchange)
    print(f"one round at {nodes:,} nodes: {round_cpu:.4f} CPU s ({round_cpu / nodes * 1e6:.1f} µs a node):")
    print(f"  peer sampling {share:.0%}, view exchange {1 - share:.0%}")
    others = np.random.default_rng(1).integers(0, nodes, (min(nodes, 20_000), 80)).astype(np.int32)
    _scores(others[:10], engine.network.profiles)
    watch = Watch()
    _scores(others, engine.network.profiles)
    print(f"  {watch.spent().cpu / others.size * 1e9:.0f} ns a score (50 topics, random candidates)")


@njit
def _scores(others: NDArray[np.int32], profiles: Profiles) -> float:
    marks, total = new_marks(profiles), 0.0
    for p in range(len(others)):
        ask_for_topics(others[p], others.shape[1], profiles)
        mark(p, profiles, marks)
        for other in others[p]:
            total += utility(p, other, profiles, marks)
    return total


def experiment(system: str, pattern: str, nodes: int, table_size: int = 15, threads: int = 1) -> Spent:
    """160 rounds and the evaluation of all 5,000 topics."""
    workload = workload_of(nodes, pattern)
    workload.node_ids, workload.topic_ids  # noqa: B018  # hashing names is the workload's cost, not the round's
    watch = Watch()
    how = RunConfig(rounds=160, measure_topics=0)
    run = simulate(system, workload, threads=threads, table_size=table_size, run=how)
    spent = watch.spent()
    found, peak = run.summary, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{system} {pattern} {nodes:,} nodes, table {table_size}: {spent.cpu:.1f} CPU s, {spent.wall:.1f} s wall",
        end="",
    )
    print(f" on {threads} thread{'s' if threads > 1 else ''}, {peak:.1f} GiB at most, workload included")
    print(f"  hit ratio {found['hit_ratio']:.4%}, overhead {found['overhead']:.1%}, hops {found['hops']:.1f}")
    return spent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--large", action="store_true", help="also 100,000 nodes (4 minutes)")
    arguments.add_argument("--million", action="store_true", help="only a million nodes on two threads (15 minutes)")
    chosen = arguments.parse_args()
    small = generate("vitis-high", nodes=300, seed=1)
    for system in ("vitis", "rvr"):
        simulate(system, small, rounds=3, threads=1)  # compile
    if chosen.million:
        experiment("vitis", "vitis-high", 1_000_000, threads=2)
        return
    oracle()
    phases(10_000)
    small_spent = experiment("vitis", "vitis-high", 10_000)
    for system, pattern, size in (
        ("vitis", "vitis-low", 15),
        ("vitis", "vitis-random", 15),
        ("rvr", "vitis-random", 15),
    ):
        experiment(system, pattern, 10_000, size)
    experiment("vitis", "vitis-high", 10_000, 35)
    experiment("rvr", "vitis-random", 10_000, 35)
    if chosen.large:
        phases(100_000, rounds=5)
        large = experiment("vitis", "vitis-high", 100_000)
        growth = large.cpu / small_spent.cpu
        print(f"from 10,000 to 100,000 nodes: {growth:.1f} times the CPU time, an exponent of {np.log10(growth):.2f}")


if __name__ == "__main__":
    main()
