"""What the rules of a Vitis peer cost as plain Python, beside machine code: a light node runs them without numba.

    .venv/bin/python -m bench.plain_rules

Each side is a process of its own, since NUMBA_DISABLE_JIT decides for a whole one. CPU time, the least of some runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time

import numpy as np
from numpy.typing import NDArray

CANDIDATES, TOPICS, NEIGHBOURS = 60, 200, 9
REPETITIONS = 5


def least_s(work: Callable[[], object]) -> float:
    work()  # compiles, if anything is to be compiled
    seconds = []
    for _ in range(REPETITIONS):
        began = process_time()
        work()
        seconds.append(process_time() - began)
    return min(seconds)


def words(random: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return random.integers(0, 2**64, count, dtype=np.uint64)


def measure() -> tuple[float, float]:
    """Seconds of a choice of neighbours, and of electing the gateway of a topic."""
    from grapevine.systems.vitis.peer.book import VitisBook
    from grapevine.systems.vitis.peer.config import VitisPeerConfig
    from grapevine.systems.vitis.peer.gateways import Chosen, NeighbourProposals, choose_gateways
    from grapevine.systems.vitis.peer.messages import Descriptor

    random = np.random.default_rng(1)
    book, config, nodes = (
        VitisBook(Descriptor(1, 1, 1, 5, 0.0), 3),
        VitisPeerConfig(),
        words(random, CANDIDATES).tolist(),
    )
    book.learn(10.0, [Descriptor(node, node, 1, 5, 100.0, 1.0) for node in nodes])
    chosen_s = least_s(lambda: book.select(10.0, config, 1.0, nodes, nodes[:8], lambda node: (3, 9)))

    gateways, total = words(random, 12), TOPICS * NEIGHBOURS
    neighbours, picked = np.tile(words(random, NEIGHBOURS), TOPICS), random.integers(0, len(gateways), total)
    proposed = NeighbourProposals(
        starts=np.arange(0, total + 1, NEIGHBOURS, dtype=np.int64),
        nodes=neighbours,
        ids=neighbours ^ np.uint64(1),
        gateways=gateways[picked],
        gateway_ids=gateways[picked] ^ np.uint64(1),
        parents=random.permutation(neighbours),
        hops=random.integers(0, 5, total).astype(np.int32),
    )
    topics, none = words(random, TOPICS), np.zeros(TOPICS, np.uint64)
    out, me = Chosen(none, none.copy(), none.copy(), np.zeros(TOPICS, np.int32)), np.uint64(5)
    return chosen_s, least_s(lambda: choose_gateways(5, me, me, topics, topics, proposed, out)) / TOPICS


def main() -> None:
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
        return
    sides = {}
    for name, switch in (("machine code", "0"), ("plain Python", "1")):
        environment = os.environ | {"NUMBA_DISABLE_JIT": switch}
        command = [sys.executable, "-m", "bench.plain_rules", "--measure"]
        sides[name] = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    for name, (chosen_s, elected_s) in sides.items():
        print(f"{name}: neighbours of {CANDIDATES} candidates {chosen_s * 1e3:.2f} ms,", end=" ")
        print(f"a topic's gateway with {NEIGHBOURS} neighbours {elected_s * 1e6:.1f} µs")


if __name__ == "__main__":
    main()
