"""The stand-in for PeerSim does the work that our engine does, and the comparison measures what it says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from bench.against_peersim import Side, alternate, main, ratios, show, spread
from bench.rounds import Spent
from bench.stand_in import StandIn, compile_stand_in, find_javac, write_workload
from numpy.typing import NDArray

from grapevine import Workload
from grapevine.metrics.overlay import ring_correctness
from grapevine.model.errors import UsageError
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate

NODES, ROUNDS = 300, 40  # after which utility no longer rises in either


def has_javac() -> bool:
    try:
        find_javac()
    except UsageError:
        return False
    return True


needs_javac = pytest.mark.skipif(not has_javac(), reason="no javac in JAVA_HOME or PATH: the stand-in is Java")


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=NODES, seed=1)


@pytest.fixture(scope="module")
def ours(workload: Workload) -> Rounds:
    """Our engine after as many rounds."""
    engine = Rounds("vitis", workload, make_config("vitis", {}))
    for _ in range(ROUNDS):
        engine.step()
    return engine


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The Java that runs it, and where its classes are."""
    folder = tmp_path_factory.mktemp("stand_in")
    return compile_stand_in(folder), folder


@pytest.fixture(scope="module")
def stand_in(compiled: tuple[Path, Path], workload: Workload) -> Iterator[StandIn]:
    """One that has played; tests only look at it."""
    with StandIn(*compiled, workload) as running:
        running.rounds(ROUNDS)
        yield running


@pytest.fixture
def fresh(compiled: tuple[Path, Path], workload: Workload) -> Iterator[StandIn]:
    """One that has not played yet."""
    with StandIn(*compiled, workload) as running:
        yield running


def mean_utility(workload: Workload, links: NDArray[np.int32]) -> float:
    """Eq. 1 over all links, by sets."""
    topics = [set(workload.topics_of(p).tolist()) for p in range(workload.node_count)]
    pairs = [(topics[p], topics[q]) for p in range(len(links)) for q in links[p].tolist() if q >= 0]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs]))


@needs_javac
def test_it_builds_the_overlay_that_our_engine_builds(workload: Workload, stand_in: StandIn, ours: Rounds) -> None:
    """The rings are exact, and links are as good: ways differ, by turns or all at once, where they end does not."""
    utility, ring = stand_in.state()
    assert ring == ours.ring_correctness() == 1.0
    assert utility == pytest.approx(ours.mean_utility(), rel=0.02)
    assert np.array_equal(stand_in.views().backups, ours.network.views.backups)
    random = np.random.default_rng(1).integers(0, NODES, (NODES, 15)).astype(np.int32)
    assert mean_utility(workload, random) < 0.8 * utility  # so that being near means something


@needs_javac
def test_it_does_no_less_in_a_round(workload: Workload, fresh: StandIn) -> None:
    """Turns see what earlier ones changed, so its first rounds come further than ours. They would not if partners did
    not choose, too, or ring backups were left out."""
    engine = Rounds("vitis", workload, make_config("vitis", {}))
    for _ in range(5):
        engine.step()
    fresh.rounds(5)
    utility, ring = fresh.state()
    ours, our_ring = engine.mean_utility(), engine.ring_correctness()
    assert ours is not None
    assert our_ring is not None
    assert utility > 0.97 * ours
    assert ring > our_ring - 0.05


@needs_javac
def test_its_newscast_samples_as_ours_does(workload: Workload, fresh: StandIn) -> None:
    """Caches hold 20 distinct others, the freshest first, and nobody is known to far more than others."""
    engine = Rounds("vitis", workload, make_config("vitis", {}))
    for _ in range(20):
        engine.network.now += 1
        engine.network.sample()
    fresh.samples(20)
    views = fresh.views()
    for p, row in enumerate(views.cache.tolist()):
        assert len({*row, p}) == 21
        assert 0 <= min(row) <= max(row) < NODES
    assert (np.diff(views.cache_heard, axis=1) <= 0).all()
    assert (views.cache_heard[:, 0] == 20).all(), "everybody has just been in an exchange"
    assert views.cache_heard.mean() >= engine.network.views.cache_heard.mean()  # turns pass news on within a round
    spread = known_to(views.cache).std()
    assert spread < 1.5 * known_to(engine.network.views.cache).std()
    assert (views.links == -1).all(), "Newscast alone makes no links"


def known_to(cache: NDArray[np.int32]) -> NDArray[np.int64]:
    """In how many caches each node is."""
    return np.bincount(cache.ravel(), minlength=NODES)


@needs_javac
def test_what_it_tells_of_its_tables_is_true(workload: Workload, stand_in: StandIn) -> None:
    links, there = stand_in.views().links, np.ones(NODES, np.bool_)
    utility, ring = stand_in.state()
    assert utility == pytest.approx(mean_utility(workload, links))
    assert ring == ring_correctness(workload.node_ids, there, links[:, 0].copy(), links[:, 1].copy())


@needs_javac
def test_its_tables_are_full_of_distinct_others(stand_in: StandIn) -> None:
    for p, row in enumerate(stand_in.views().links.tolist()):
        assert len(set(row)) == 15
        assert p not in row
        assert 0 <= min(row) <= max(row) < NODES


@needs_javac
def test_friends_are_nearly_the_most_similar_of_all(workload: Workload, stand_in: StandIn) -> None:
    """With so few nodes everybody has met everybody: only who was never in one pool with somebody is missed."""
    links = stand_in.views().links
    topics = np.zeros((NODES, workload.topic_count), np.int64)
    for p in range(NODES):
        topics[p, workload.topics_of(p)] = 1
    common = topics @ topics.T
    scores = common / (topics.sum(1)[:, None] + topics.sum(1)[None, :] - common)
    found = best = 0.0
    for p in range(NODES):
        free = np.ones(NODES, np.bool_)
        free[[p, *links[p, :3]]] = False
        found += scores[p, links[p, 3:]].sum()
        best += np.sort(scores[p][free])[-12:].sum()
    assert found <= best + 1e-9
    assert found > 0.98 * best


@needs_javac
def test_it_begins_anew(fresh: StandIn, stand_in: StandIn) -> None:
    assert len(fresh.rounds(3)) == 3
    fresh.restart()
    assert (fresh.views().links == -1).all()
    assert fresh.state() == (0.0, 0.0)
    spent = fresh.rounds(ROUNDS)
    assert all(one.wall > 0 for one in spent)
    assert fresh.state() == pytest.approx(stand_in.state(), rel=0.02)


@needs_javac
def test_the_comparison_prints_ratios_and_goals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.against_peersim.COMPILE_S", 0.0)
    assert main(["--nodes", str(NODES), "--rounds", "3"]) == 0
    remark, *lines = capsys.readouterr().out.splitlines()
    assert "97 – 111 ms" in remark
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == [
        "Newscast, vitis-high, 300 nodes",
        "whole rounds, vitis-high, 300 nodes",
    ]
    names = ["stand-in", "ours, 1 thread", "ours, 2 threads"]
    assert [line[2:18].rstrip() for line in lines if " – " in line and line.startswith(" ")] == names * 2


def test_goals_stand_beside_the_figures_of_most_threads(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [Side(name, nothing, [Spent(wall, wall)]) for name, wall in (("a", 0.6), ("b", 0.3), ("c", 0.2))]
    show(sides, 2, 8.0)
    *above, last = capsys.readouterr().out.splitlines()
    assert last.split("(goal: ")[0].split()[-2:] == ["3.00", "3.00"]
    assert last.endswith("(goal: 8 by wall time)")
    assert "goal" not in "".join(above)


def test_without_a_compiler_it_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["--nodes", "300"]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert "JDK" in answer.err


@pytest.mark.parametrize("given", [["--nodes", "many"], ["--nodes", "300,0"], ["--rounds", "0"]])
def test_numbers_that_mean_nothing_are_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(given)
    assert given[0] in capsys.readouterr().err


def test_what_the_stand_in_cannot_simulate_is_refused(tmp_path: Path) -> None:
    several = Workload.from_pairs([0, 1], [0, 1], node_count=300, topic_count=2, rates=[1.0, 2.0])
    few = Workload.from_pairs([0, 1], [0, 1], node_count=2, topic_count=2)
    with pytest.raises(UsageError, match="rates"):
        write_workload(several, tmp_path / "workload")
    with pytest.raises(UsageError, match="40 nodes"):
        write_workload(few, tmp_path / "workload")


def nothing(count: int) -> list[Spent]:
    return []


def fake(name: str, seconds: list[float], played: list[str]) -> Side:
    """A side whose rounds take these wall seconds one after the other, and half of that in CPU time."""
    left = iter(seconds)

    def play(count: int) -> list[Spent]:
        played.append(f"{name}{count}")
        return [Spent(wall / 2, wall) for wall in islice(left, count)]

    return Side(name, play)


def test_blocks_alternate_and_ratios_are_those_of_neighbours() -> None:
    """Seven rounds in five blocks; the machine is ten times as slow from the third block on, for both alike."""
    played: list[str] = []
    slow = [1.0, 1.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    a, b = fake("a", [6 * one for one in slow], played), fake("b", [2 * one for one in slow], played)
    alternate([a, b], 7)
    assert played == ["a1", "b1", "a1", "b1", "a2", "b2", "a1", "b1", "a2", "b2"]
    assert [block.wall for block in a.blocks] == [6, 6, 60, 60, 60]
    assert [block.cpu for block in b.blocks] == [1, 1, 10, 10, 10]
    assert ratios(a, b) == Spent(3.0, 3.0)
    assert spread([0.002, 0.001, 0.0035]) == "2.00 (1.00 – 3.50)"
