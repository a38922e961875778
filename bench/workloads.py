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
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

GRAPEVINE = [str(Path(sys.executable).parent / "grapevine")]


def run(*arguments: str) -> tuple[float, float, dict[str, Any]]:
    """Wall seconds, peak memory of all its processes together (GiB) and the JSON answer of one command."""
    start, peak, answer = time.perf_counter(), 0, []
    with subprocess.Popen([*GRAPEVINE, *arguments, "--json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lambda stream: answer.append(stream.read()), args=(process.stdout,))
        reader.start()
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.5)
        reader.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.perf_counter() - start, peak / 2**30, json.loads(answer[0])


def resident(root: int) -> int:
    """Resident bytes of a process and all below it (the command, Spark's JVM, Python workers); Linux only."""
    parents, sizes = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], sizes[int(folder.name)] = int(fields[1]), int(fields[21])
    family, more = {root}, {root}
    while more:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
    return sum(sizes.get(pid, 0) for pid in family) * os.sysconf("SC_PAGE_SIZE")


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


def show(what: str, rows: int, measured: tuple[float, float, dict[str, Any]]) -> float:
    """Print one line; returns the seconds."""
    seconds, peak, _ = measured
    print(f"{what}: {rows:,} rows in {seconds:.1f} s, {rows / seconds:,.0f} rows/s, peak {peak:.1f} GiB", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="1M nodes and 20M edges instead of a tenth (some minutes)")
    parser.add_argument("--keep", type=Path, help="work here and keep what is made")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="grapevine-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    scale = 10 if options.large else 1
    print(f"cores: {os.cpu_count()}, driver memory: 4g, folder: {folder}")

    nodes, memory = 100_000 * scale, ("--driver-memory", "4g")
    measured = run(
        "workload", "generate", "vitis-random", "--nodes", str(nodes), *memory, "--out", str(folder / "vitis")
    )  # fmt: skip
    show(f"generate vitis-random, {nodes:,} nodes", measured[2]["tables"]["subscriptions"], measured)

    taken: dict[str, list[float]] = {"ingest": [], "profile": []}
    for size in (11_000 * scale, 110_000 * scale):
        raw, target = follower_list(folder, size), folder / f"ingested-{size}"
        measured = run("workload", "ingest", "follows", str(raw), *memory, "--out", str(target))
        edges = measured[2]["counts"]["rows"]
        taken["ingest"].append(show("ingest", edges, measured))
        measured = run("workload", "profile", str(target), *memory, "--out", str(folder / f"profile-{size}"))
        taken["profile"].append(show("profile", edges, measured))
    for name, (small, large) in taken.items():
        print(f"growth of {name} at ten times the edges: {large / small:.1f}-fold")
    both = sum(large for _, large in taken.values()) / sum(small for small, _ in taken.values())
    print(f"growth of ingest + profile at ten times the edges: {both:.1f}-fold")
    if not options.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
