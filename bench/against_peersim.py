"""How fast rounds are beside a stand-in for PeerSim's cycle-driven mode: lean Java on one thread, the same protocols.

    .venv/bin/python -m bench.against_peersim [--nodes 10000,100000] [--rounds 20] [--after 20] [--threads 2]
                                              [--pattern vitis-high]

The stand-in (bench/peersim_stand_in, our own code) is compiled with the machine's JDK. It does in turns what our engine
does in synchronous rounds: Newscast with caches of 20, and Vitis' exchange with tables of 15, on the same subscriptions
and ring ids. How alike the overlays are is printed: mean utility of links, and ring correctness. In a round of turns a
node chooses its links twice, as caller and as partner, from two views; in ours once, from those of all its contacts.

Both are warmed up, do the same rounds first, and are then measured in blocks of rounds that alternate. A block's figure
is its mean; shown are the median of the blocks, the least and the most. A ratio is that of neighbouring blocks. CPU of
the stand-in is its thread's, ours that of all threads. Newscast does five times as many rounds, since they are short.

PeerSim's own core was measured elsewhere at 4.4 ms a round of Newscast and 97 – 111 ms for the same exchange, both at
10,000 nodes: what the stand-in's figures can be compared to.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median

from bench.rounds import Spent, Watch, workload_of
from bench.stand_in import StandIn, compile_stand_in
from grapevine import Workload
from grapevine.model.errors import UsageError
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config

FIRST_ROUNDS = 20  # before anything is measured, unless told otherwise: tables fill, and most of the ring closes
BLOCKS = 5
NEWSCAST_ROUNDS = 5  # times as many as whole rounds
COMPILE_S = 3.0  # so long the stand-in plays before it begins anew, for its virtual machine to compile
PEERSIM = (
    "PeerSim's own core, measured elsewhere at 10,000 nodes: Newscast 4.4 ms a round, the same exchange 97 – 111 ms"
)

NEWSCAST, WHOLE = "Newscast", "whole rounds"
# How many times as fast as the stand-in, by wall time on two threads.
GOALS = {(NEWSCAST, 10_000): 2.0, (NEWSCAST, 100_000): 2.0, (WHOLE, 10_000): 8.0, (WHOLE, 100_000): 12.0}


@dataclass
class Side:
    """One of those that are compared: `play` does so many rounds and returns the seconds of each."""

    name: str
    play: Callable[[int], list[Spent]]
    blocks: list[Spent] = field(default_factory=list)  # seconds a round, a mean per block


def alternate(sides: Sequence[Side], rounds: int) -> None:
    """Play and measure so many rounds of each side, in blocks by turns."""
    blocks = min(BLOCKS, rounds)
    for block in range(blocks):
        size = rounds * (block + 1) // blocks - rounds * block // blocks
        for side in sides:
            spent = side.play(size)
            side.blocks.append(Spent(fmean(one.cpu for one in spent), fmean(one.wall for one in spent)))


def ratios(reference: Side, side: Side) -> Spent:
    """How many times as long the reference took, by CPU and wall time: medians over pairs of neighbouring blocks."""
    pairs = list(zip(reference.blocks, side.blocks, strict=True))
    return Spent(median(a.cpu / b.cpu for a, b in pairs), median(a.wall / b.wall for a, b in pairs))


def play_rounds(engine: Rounds, what: str, count: int) -> list[Spent]:
    """So many rounds of our engine, of Newscast alone or whole ones; seconds of each."""
    spent = []
    for _ in range(count):
        watch = Watch()
        if what == NEWSCAST:
            engine.network.now += 1
            engine.network.sample()
        else:
            engine.step()
        spent.append(watch.spent())
    return spent


def compile_by_playing(play: Callable[[int], list[Spent]]) -> None:
    """Let the stand-in play until its virtual machine has had the time to compile what is used most."""
    began = time.perf_counter()
    while time.perf_counter() - began < COMPILE_S:
        play(1)


def compare(
    what: str, workload: Workload, after: int, rounds: int, threads: int, stand_in_at: tuple[Path, Path]
) -> None:
    """Measure so many rounds of the stand-in and of our engine, on one and on so many threads, after the first ones,
    and print a table. `stand_in_at` are where the stand-in is compiled, and a folder for what it reads."""
    engines = {n: Rounds("vitis", workload, make_config("vitis", {}), threads=n) for n in sorted({1, threads})}
    with StandIn(*stand_in_at, workload) as stand_in:
        sides = [Side("stand-in", stand_in.samples if what == NEWSCAST else stand_in.rounds)]
        for count, engine in engines.items():
            name = f"ours, {count} thread{'s' if count > 1 else ''}"
            sides.append(Side(name, partial(play_rounds, engine, what)))
        compile_by_playing(sides[0].play)
        stand_in.restart()
        for side in sides:
            side.play(after)
        alternate(sides, rounds)
        last = after + rounds
        print(f"{what}, {workload.name}, {workload.node_count:,} nodes: ms a round, {after + 1} – {last}")
        show(sides, threads, GOALS.get((what, workload.node_count)))
        if what == WHOLE:
            show_overlays(last, stand_in.state(), engines[1])


def show(sides: Sequence[Side], threads: int, goal: float | None) -> None:
    """A line per side, and how many times as fast as the first it is."""
    print(f"  {'':16}{'wall':>32}{'CPU':>32}   times as fast: wall    CPU")
    for side in sides:
        walls, cpus = [block.wall for block in side.blocks], [block.cpu for block in side.blocks]
        line = f"  {side.name:16}{spread(walls):>32}{spread(cpus):>32}"
        if side is not sides[0]:
            ratio = ratios(sides[0], side)
            line += f"   {ratio.wall:>19.2f}{ratio.cpu:>7.2f}"
            if goal is not None and side is sides[-1]:
                line += f"   (goal: {goal:g} by wall time{'' if threads == 2 else ' on 2 threads'})"
        print(line)


def spread(seconds: Sequence[float]) -> str:
    """Milliseconds: the median, the least and the most."""
    middle, least, most = (1e3 * value for value in (median(seconds), min(seconds), max(seconds)))
    return f"{middle:,.2f} ({least:,.2f} – {most:,.2f})"


def show_overlays(last: int, stand_in: tuple[float, float], engine: Rounds) -> None:
    """What both have built after the same rounds."""
    utility, ring = engine.mean_utility(), engine.ring_correctness()
    print(f"  after round {last}: mean utility {stand_in[0]:.4f} (ours {utility:.4f}),", end=" ")
    print(f"ring correctness {stand_in[1]:.2%} (ours {ring:.2%})")


def positive(text: str) -> int:
    """A whole number above 0; ValueError for anything else, which argparse turns into a sentence."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def sizes(text: str) -> list[int]:
    """Whole numbers above 0, by commas; ValueError for anything else."""
    return [positive(one) for one in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print two tables for every size, Newscast first; returns the exit code, 2 where there is no JDK."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=sizes, default=[10_000, 100_000], help="sizes of networks, by commas")
    parser.add_argument("--rounds", type=positive, default=20, help="measured rounds")
    parser.add_argument("--after", type=positive, default=FIRST_ROUNDS, help="rounds before those that are measured")
    parser.add_argument("--threads", type=positive, default=2, help="ours is measured on one thread, and on so many")
    parser.add_argument("--pattern", default="vitis-high", help="the model that makes subscriptions")
    chosen = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as name:
            java = compile_stand_in(Path(name))
            print(PEERSIM)
            for nodes in chosen.nodes:
                workload = workload_of(nodes, chosen.pattern)
                for what, rounds in ((NEWSCAST, NEWSCAST_ROUNDS * chosen.rounds), (WHOLE, chosen.rounds)):
                    compare(what, workload, chosen.after, rounds, chosen.threads, (java, Path(name)))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
