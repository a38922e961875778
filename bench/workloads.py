"""How fast workloads are made and read, and how the time grows with the trace.

    .venv/bin/python bench/workloads.py [--large] [--keep DIR]

Every figure is the wall time of a whole `grapevine` command, start of Spark included, with 4 GB of driver memory.
Growth is the time at ten times the edges over the time at one: the named reference is the smaller trace of the
same run, because machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRAPEVINE = [str(Path(sys.executable).parent / "grapevine")]


def run(*arguments: str) -> tuple[float, dict[str, object]]:
    """Wall seconds and the JSON answer of one command."""
    start = time.perf_counter()
    answer = subprocess.run([*GRAPEVINE, *arguments, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - start, json.loads(answer.stdout)


def follower_list(folder: Path, nodes: int) -> Path:
    """A raw power-law follower list of about 21 edges a node, as text, made by our own generator."""
    workload, raw = folder / f"model-{nodes}", folder / f"raw-{nodes}"
    run(
        "workload", "generate", "omen", "--nodes", str(nodes), "--topics", str(nodes), "--popularity", "zipf",
        "--exponent", "0.8", "--min-subscriptions", "5", "--max-subscriptions", "2000", "--size-exponent", "2.2",
        "--out", str(workload),
    )  # fmt: skip
    from pyspark.sql import functions as F

    from grapevine.pipeline.session import SparkSettings, open_session

    session = open_session(SparkSettings.gather())
    pairs = session.read.parquet(str(workload / "subscriptions"))
    pairs.select(F.concat_ws("\t", "node", "topic")).write.text(str(raw))
    shutil.rmtree(workload)
    return raw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="1M nodes and 20M edges instead of a tenth (some minutes)")
    parser.add_argument("--keep", type=Path, help="work here and keep what is made")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="grapevine-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    scale = 10 if options.large else 1
    print(f"cores: {os.cpu_count()}, driver memory: 4g, folder: {folder}")

    nodes = 100_000 * scale
    seconds, answer = run(
        "workload",
        "generate",
        "vitis-random",
        "--nodes",
        str(nodes),
        "--driver-memory",
        "4g",
        "--out",
        str(folder / "vitis"),
    )
    rows = answer["tables"]["subscriptions"]  # type: ignore[index]
    print(f"generate vitis-random, {nodes:,} nodes: {rows:,} rows in {seconds:.1f} s, {rows / seconds:,.0f} rows/s")

    taken: dict[str, list[float]] = {"ingest": [], "profile": []}
    for size in (10_000 * scale, 100_000 * scale):
        raw = follower_list(folder, size)
        target = folder / f"ingested-{size}"
        seconds, answer = run("workload", "ingest", "follows", str(raw), "--driver-memory", "4g", "--out", str(target))
        edges = answer["counts"]["rows"]  # type: ignore[index]
        taken["ingest"].append(seconds)
        print(f"ingest {edges:,} edges: {seconds:.1f} s, {edges / seconds:,.0f} rows/s")
        seconds, answer = run(
            "workload", "profile", str(target), "--driver-memory", "4g", "--out", str(folder / f"profile-{size}")
        )
        taken["profile"].append(seconds)
        print(f"profile {edges:,} edges: {seconds:.1f} s, {edges / seconds:,.0f} rows/s")
    for name, (small, large) in taken.items():
        print(f"growth of {name} at ten times the edges: {large / small:.1f}-fold")
    both = sum(large for _, large in taken.values()) / sum(small for small, _ in taken.values())
    print(f"growth of ingest + profile at ten times the edges: {both:.1f}-fold")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"largest resident process: {peak:.1f} GiB")
    if not options.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
