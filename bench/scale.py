"""One network in blocks on Spark: seconds a round beside the local engine's, bytes sent, memory; links compared.

    python -m bench.scale                               100,000 nodes, 20 rounds
    python -m bench.scale --nodes 1000000 --rounds 6
    python -m bench.scale --nodes 10000000 --rounds 10 --subscriptions 20 --alone
    python -m bench.scale --cluster --kill-executor 10  on a standalone cluster of two workers, of which one loses its
                                                        executor in the middle of round 10

Both engines do each round in turn, and its digest must be equal; `--alone` leaves the local engine out, for networks
that it has no memory for. Memory is that of all processes together (proportional set size), without the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from bench.standalone import kill_an_executor, two_workers
from grapevine.pipeline.parted import NODES_A_BLOCK, SESSION
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.supersteps import SparkRunner
from grapevine.sim.parts.moves import digest
from grapevine.sim.parts.network import PartedNetwork
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate


def main() -> None:
    given = _arguments()
    if not given.cluster:
        _measure(given, given.master)
        return
    with two_workers() as master:
        _measure(given, master)


def _measure(given: argparse.Namespace, master: str) -> None:
    parameters = {} if given.subscriptions is None else {"subscriptions_per_node": given.subscriptions}
    began = time.perf_counter()
    workload = generate("vitis-high", nodes=given.nodes, seed=1, **parameters)
    print(f"{given.nodes:,} nodes, {workload.subscription_count:,} subscriptions: {time.perf_counter() - began:.0f} s")
    blocks = given.blocks or max(4, -(-given.nodes // NODES_A_BLOCK))
    folder = Path(tempfile.mkdtemp(prefix="grapevine-scale-", dir=given.folder))
    stage = Stage(SparkSettings(master=master, driver_memory="2g", conf=SESSION), quiet=True)
    config = make_config(given.system, {})
    try:
        with Memory() as memory:
            network = partial(PartedNetwork, folder=folder, parts=blocks, run=SparkRunner(stage))
            on_spark = Rounds(given.system, workload, config, network=network)
            local = None if given.alone else Rounds(given.system, workload, config, threads=given.threads)
            print(f"{blocks} blocks on {master}; round, s on Spark, s here, GB sent, digest")
            times = []
            for now in range(1, given.rounds + 1):
                if now == given.kill_executor:
                    usual = statistics.median(taken for taken, _ in times) if times else 2.0
                    threading.Timer(usual / 2, kill_an_executor).start()
                times.append(_round(on_spark, local, folder))
            stage.spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    later = times[1:] or times  # the first compiles and starts workers
    spark, here = (statistics.median(column) for column in zip(*later, strict=True))
    line = f"median of rounds 2 … {given.rounds}: {spark:.2f} s on Spark"
    line += "" if given.alone else f", {here:.2f} s here on {given.threads} threads, {spark - here:.2f} s added"
    print(f"{line}; at most {memory.peak / 1e9:.1f} GB in all processes")


def _drop_old_rows(folder: Path, now: int) -> None:
    """A command keeps the last round alone, and so does this: ten million nodes have 4.6 GB of rows."""
    for version in (folder / "rows").iterdir():
        if version.name != str(now):
            shutil.rmtree(version)


def _round(on_spark: Rounds, local: Rounds | None, folder: Path) -> tuple[float, float]:
    """One round on both; returns the seconds of each. Ends the program if their links differ."""
    began = time.perf_counter()
    on_spark.step()
    taken = [time.perf_counter() - began, 0.0]
    assert isinstance(on_spark.network, PartedNetwork)
    report = on_spark.network.report
    _drop_old_rows(folder, on_spark.now)
    if local is not None:
        began = time.perf_counter()
        local.step()
        taken[1] = time.perf_counter() - began
        if digest(0, local.network.rows) != report.digest:
            sys.exit(f"round {local.now}: links differ")
    print(
        f"{on_spark.now:4} {taken[0]:8.2f} {taken[1]:8.2f} {report.bytes_sent / 1e9:7.3f}  {report.digest:016x}",
        flush=True,
    )
    return taken[0], taken[1]


class Memory:
    """The most memory that this process and all that it started had together while the block ran, in bytes."""

    def __init__(self) -> None:
        self.peak, self._done = 0, threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.peak = max(self.peak, sum(map(_memory_of, _descendants(os.getpid()))))


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def _memory_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--system", default="vitis")
    parser.add_argument("--subscriptions", type=int, help="topics a node wants; default: the model's 50")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster that is started for it")
    parser.add_argument("--kill-executor", type=int, metavar="ROUND", help="kill an executor in this round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="where the run's state is kept; default: the temporary folder")
    parser.add_argument("--alone", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
