"""The stand-in for PeerSim as a process: compiled with the machine's JDK, given a workload, told what to do next."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bench.rounds import Spent
from grapevine import Workload
from grapevine.model.errors import UsageError

SOURCES = Path(__file__).parent / "peersim_stand_in"
TABLE_SIZE, CACHE_SIZE, RING_BACKUPS = 15, 20, 4  # as in Network.java
FEWEST_NODES, MOST_TOPICS = 40, 2**16


class StandInViews(NamedTuple):
    """What every node knows, a row each; -1 is a free entry."""

    links: NDArray[np.int32]  # successor, predecessor, long link, friends
    cache: NDArray[np.int32]  # samples, the freshest first
    cache_heard: NDArray[np.int32]  # the round in which somebody last heard from each
    backups: NDArray[np.int32]  # the nearest clockwise, then the nearest counter-clockwise


def find_javac() -> Path:
    """The compiler of JAVA_HOME, else that of PATH; UsageError if neither has one (a Java runtime alone does not)."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("javac")
    if found is None:
        raise UsageError("no javac in JAVA_HOME or PATH: install a JDK, version 17 or newer, to compile the stand-in")
    return Path(found).resolve()  # the real folder, since `java` beside a link may be of another version


def compile_stand_in(folder: Path) -> Path:
    """Compile the stand-in into the folder; returns the `java` that can run it. UsageError if the JDK cannot."""
    javac = find_javac()
    sources = sorted(SOURCES.glob("*.java"))
    made = subprocess.run([javac, "-encoding", "UTF-8", "-d", folder, *sources], capture_output=True, text=True)
    if made.returncode:
        raise UsageError(f"{javac} cannot compile the stand-in (it needs version 17 or newer): {made.stderr.strip()}")
    return javac.with_name("java")


def write_workload(workload: Workload, path: Path) -> None:
    """What StandIn.java reads: counts, rows and topics as 32-bit numbers, ring ids as 64-bit ones, little-endian.

    UsageError for what it cannot simulate: it counts common topics, so these must all have the same rate.
    """
    if workload.node_count < FEWEST_NODES or workload.topic_count > MOST_TOPICS:
        given = f"{workload.node_count} nodes and {workload.topic_count} topics"
        raise UsageError(f"{given}: the stand-in takes {FEWEST_NODES} nodes or more, {MOST_TOPICS} topics or fewer")
    if workload.rates.min() != workload.rates.max():
        raise UsageError(
            f"{workload.name} has topics of several rates: the stand-in knows none, choose another pattern"
        )
    rows = workload.node_topics
    counts = [workload.node_count, workload.topic_count]
    with path.open("wb") as file:
        for numbers in (counts, rows.starts, rows.columns):
            file.write(np.asarray(numbers, "<i4").tobytes())
        file.write(workload.node_ids.astype("<u8").tobytes())


class StandIn:
    """A running stand-in on one workload, alone on one thread of its own process; idle until it is told.

    `folder` is where it was compiled, and where the workload is written. As a context manager it ends with the block.
    """

    def __init__(self, java: Path, folder: Path, workload: Workload) -> None:
        self._folder, self._nodes = folder, workload.node_count
        write_workload(workload, folder / "workload")
        self._process = subprocess.Popen(
            [java, "-cp", folder, "StandIn", folder / "workload"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._orders.close()
        self._answers.close()
        self._process.wait()

    def rounds(self, count: int) -> list[Spent]:
        """So many whole rounds; what each took by its own clocks, in seconds."""
        return self._play("round", count)

    def samples(self, count: int) -> list[Spent]:
        """So many rounds of Newscast alone; what each took by its own clocks, in seconds."""
        return self._play("sample", count)

    def restart(self) -> None:
        """Begin anew with round 1; what the virtual machine has compiled stays compiled."""
        self._order("restart")

    def state(self) -> tuple[float, float]:
        """Mean utility of the links and ring correctness, as `Rounds.mean_utility` and `ring_correctness` define
        them."""
        self._order("state")
        utility, ring = self._answer("state")
        return float(utility), float(ring)

    def views(self) -> StandInViews:
        """What all nodes know now."""
        path = self._folder / "views"
        self._order(f"views {path}")
        self._answer("views")
        rows = np.fromfile(path, "<i4").astype(np.int32)
        widths = TABLE_SIZE, CACHE_SIZE, CACHE_SIZE, 2 * RING_BACKUPS
        parts = np.split(rows, np.cumsum(widths)[:-1] * self._nodes)
        return StandInViews(*(part.reshape(self._nodes, -1) for part in parts))

    def _play(self, what: str, count: int) -> list[Spent]:
        self._order(f"{what} {count}")
        return [Spent(*(int(number) / 1e9 for number in self._answer(what))) for _ in range(count)]

    @property
    def _orders(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _answers(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _order(self, line: str) -> None:
        self._orders.write(line + "\n")
        self._orders.flush()

    def _answer(self, word: str) -> list[str]:
        line = self._answers.readline().split()
        if line[:1] != [word]:
            raise RuntimeError(f"the stand-in ended with code {self._process.wait()}; what it said is above")
        return line[1:]
