"""Choices about compiled code, measured against what was not chosen (docs/decisions).

.venv/bin/python -m bench.choices_kernels [draws threads forks sums caches]

Each part prints a ratio against a reference of the same run: draws against numpy's generators, chunks on threads
against `prange`, integers against floats, our cache against numba's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit
from grapevine.kernels.rng import draw

Words = NDArray[np.uint64]
NODES, WORK, THREADS = 20_000, 2_000, 2
DRAWS = 20_000_000

# Draws


@njit
def _by_hash(seed: int, count: int) -> np.uint64:
    total = np.uint64(0)
    for node in range(count):
        total += draw(seed, 1, node, 0)
    return total


@numba.njit(nogil=True)
def _by_generator(generator: np.random.Generator, count: int) -> float:
    total = 0.0
    for _ in range(count):
        total += generator.random()
    return total


@numba.njit(nogil=True)
def _by_numbas_own(count: int) -> float:
    total = 0.0
    for _ in range(count):
        total += np.random.random()
    return total


def best_of(action: Callable[[], object], clock: Callable[[], float] = time.process_time, times: int = 7) -> float:
    """CPU seconds, or those of another clock, of the quickest, after one that compiles."""
    action()
    spent = []
    for _ in range(times):
        began = clock()
        action()
        spent.append(clock() - began)
    return min(spent)


def draws() -> None:
    """A draw that needs no state, beside draws from a stream that somebody has to own."""
    generator = np.random.default_rng(1)
    counter = best_of(lambda: _by_hash(1, DRAWS)) / DRAWS * 1e9
    stream = best_of(lambda: _by_generator(generator, DRAWS)) / DRAWS * 1e9
    own = best_of(lambda: _by_numbas_own(DRAWS)) / DRAWS * 1e9
    made = best_of(lambda: [np.random.default_rng([1, 1, node]) for node in range(1_000)]) / 1_000 * 1e9
    print(f"draws: counter hash {counter:.1f} ns, a numpy generator {stream:.1f} ns ({stream / counter:.1f} times)")
    print(f"  numba's own np.random, whose state belongs to a thread: {own:.1f} ns ({own / counter:.1f} times)")
    print(f"  a generator of its own for every node: {made:,.0f} ns each ({made / counter:,.0f} times)")


# Threads


@njit
def _work(first: int, last: int, out: Words) -> None:
    for node in range(first, last):
        total = np.uint64(0)
        for step in range(WORK):
            total ^= draw(1, step, node, 0)
        out[node] = total


@numba.njit(parallel=True, nogil=True)
def _work_by_prange(out: Words) -> None:
    for node in numba.prange(len(out)):
        total = np.uint64(0)
        for step in range(WORK):
            total ^= draw(1, step, node, 0)
        out[node] = total


def threads() -> None:
    """The same loop over nodes on one thread, in chunks on a pool, and by `prange`: wall seconds."""
    wall = time.perf_counter
    one, chunks, prange = (np.empty(NODES, np.uint64) for _ in range(3))
    bounds = np.linspace(0, NODES, 4 * THREADS + 1).astype(int).tolist()
    numba.set_num_threads(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        alone = best_of(lambda: _work(0, NODES, one), wall)
        pooled = best_of(lambda: list(pool.map(lambda ab: _work(ab[0], ab[1], chunks), pairwise(bounds))), wall)
    parallel = best_of(lambda: _work_by_prange(prange), wall)
    assert (one == chunks).all() and (one == prange).all()
    layer = numba.threading_layer()  # type: ignore[attr-defined]
    print(f"threads: {NODES:,} nodes on one thread {alone:.3f} s, chunks on {THREADS} threads {pooled:.3f} s")
    print(f"  prange on {THREADS} threads ({layer}) {parallel:.3f} s: {parallel / pooled:.2f} times the chunks")


_FORK = """
import os, sys, numba, numpy as np
numba.config.THREADING_LAYER = sys.argv[1]
@numba.njit(parallel=True)
def total(values):
    found = 0.0
    for i in numba.prange(len(values)):
        found += values[i]
    return found
values = np.ones(1000)
total(values)
child = os.fork()
if child == 0:
    total(values)
    os._exit(0)
sys.exit(0 if os.waitpid(child, 0)[1] == 0 else 1)
"""


def forks() -> None:
    """Whether a child that was forked after `prange` ran can run it again: Spark forks its Python workers."""
    for layer in ("workqueue", "omp", "tbb"):
        try:
            done = subprocess.run([sys.executable, "-c", _FORK, layer], capture_output=True, text=True, timeout=60)
            print(f"forks: prange after a fork with {layer}: {what_happened(done)}")
        except subprocess.TimeoutExpired:
            print(f"forks: prange after a fork with {layer}: hangs")


def what_happened(done: subprocess.CompletedProcess[str]) -> str:
    """In a few words."""
    if done.returncode == 0:
        return "works"
    if "No threading layer could be loaded" in done.stderr:
        return "is not installed"
    return f"fails: {(done.stderr or 'the child died').strip().splitlines()[-1]}"


# Sums


@njit
def _sum(weights: NDArray[Any], topics: NDArray[np.int64]) -> Any:
    total = weights[0] - weights[0]
    for topic in topics:
        total += weights[topic]
    return total


def sums() -> None:
    """How often a sum of 50 rates depends on their order, and what exact sums cost."""
    random = np.random.default_rng(1)
    rates = np.arange(1, 5_001) ** -0.75
    exact = np.round(rates / rates.max() * 2.0**40).astype(np.int64)
    wanted = [random.choice(5_000, 50, replace=False) for _ in range(10_000)]
    differ = sum(_sum(rates, topics) != _sum(rates, topics[::-1].copy()) for topics in wanted)
    assert all(_sum(exact, topics) == _sum(exact, topics[::-1].copy()) for topics in wanted)
    many = random.integers(0, 5_000, 10_000_000)
    floats, integers = best_of(lambda: _sum(rates, many)), best_of(lambda: _sum(exact, many))
    print(
        f"sums: {differ:,} of {len(wanted):,} sums of 50 rates differ when taken backwards as floats, none as integers"
    )
    print(
        f"  a term costs {floats / len(many) * 1e9:.2f} ns as a float, {integers / len(many) * 1e9:.2f} as an integer"
    )


# Caches

_CALLEE = "import numba\n@numba.njit(cache=True)\ndef f():\n    return {}\n"
_CALLER = "import numba\nfrom callee import f\n@numba.njit(cache=True)\ndef g():\n    return f()\nprint(g())\n"


def caches() -> None:
    """What numba's cache answers after a function in another file has changed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = []
        (folder / "caller.py").write_text(_CALLER)
        for value in (1, 2):
            (folder / "callee.py").write_text(_CALLEE.format(value))
            os.utime(folder / "callee.py", (1e9 + value, 1e9 + value))
            run = subprocess.run(
                [sys.executable, "-c", "import caller"],
                cwd=folder,
                env=os.environ | {"NUMBA_CACHE_DIR": name, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": name},
                capture_output=True,
                text=True,
                check=True,
            )
            said.append(run.stdout.strip())
    print(f"caches: g() calls f() of another file, which returns 1, then 2: numba answers {said[0]}, then {said[1]}")


def main() -> None:
    parts: dict[str, Callable[[], None]] = {f.__name__: f for f in (draws, threads, forks, sums, caches)}
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="*", help=f"any of {', '.join(parts)}")
    for name in parser.parse_args().part or parts:
        parts[name]()


if __name__ == "__main__":
    main()
