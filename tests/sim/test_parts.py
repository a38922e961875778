"""A network in parts against the whole one: every link, sample, backup and age is equal, whatever the split."""

from __future__ import annotations

import random
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import GrapevineError
from grapevine.model.workload import Workload
from grapevine.sim.churn import Schedule, flash_crowd, mass_failure
from grapevine.sim.parts import files
from grapevine.sim.parts.memory import memory_of_a_part
from grapevine.sim.parts.moves import MOVES, Cell, Job, digest
from grapevine.sim.parts.network import PartedNetwork, Report
from grapevine.sim.parts.split import Calls, Split, arrange, sort_partners
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate

GOSSIP = ["vitis", "rvr", "opt", "magnet", "strawman"]


def deliver_by_hand(job: Job) -> Report:
    """All moves, one part after the other, with cells in a random order and some moves done twice, as when a worker is
    lost after it has written."""
    mail: dict[int, list[tuple[int, Cell]]] = {part: [] for part in range(job.split.parts)}
    sent, chance = 0, random.Random(job.now)
    for move in MOVES:
        came, mail = mail, {part: [] for part in mail}
        for part in chance.sample(sorted(came), len(came)):
            cells = chance.sample(came[part], len(came[part]))
            found = list(move(job, part, cells))
            if chance.random() < 0.3:
                again = list(move(job, part, reversed(cells)))
                assert all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(found, again, strict=True))
            for target, cell in found:
                mail[target].append((part, cell))
                sent += cell.nbytes
    total = sum(int.from_bytes(cell.tobytes(), "little") for cells in mail.values() for _, cell in cells)
    return Report(total % 2**64, sent)


def engines(
    system: str, workload: Workload, folder: Path, parts: int, schedule: Schedule | None = None, **parameters: int
) -> tuple[Rounds, Rounds]:
    config = make_config(system, parameters)
    whole = Rounds(system, workload, config, seed=7, schedule=schedule)
    return whole, Rounds(
        system,
        workload,
        config,
        seed=7,
        schedule=schedule,
        network=partial(PartedNetwork, folder=folder, parts=parts, run=deliver_by_hand),
    )


def assert_same_rows(whole: Rounds, parted: Rounds) -> None:
    a, b = whole.network.rows, parted.network.rows
    for name in ("starts", "links", "cache", "backups"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert np.array_equal(a.heard[a.links >= 0], b.heard[b.links >= 0])
    assert np.array_equal(a.cache_heard[a.cache >= 0], b.cache_heard[b.cache >= 0])
    assert digest(0, a) == digest(0, b)
    if whole.name in ("vitis", "rvr", "opt"):  # Magnet and the strawman choose fingers after the exchange
        assert isinstance(parted.network, PartedNetwork)
        assert parted.network.report.digest == digest(0, a)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-low", nodes=90, topics=40, subscriptions_per_node=8, buckets=10, buckets_per_node=2, seed=3)


@pytest.mark.parametrize("system", GOSSIP)
@pytest.mark.parametrize("parts", [1, 4])
def test_rounds_in_parts_are_those_of_the_whole(system: str, parts: int, workload: Workload, tmp_path: Path) -> None:
    whole, parted = engines(system, workload, tmp_path, parts)
    for _ in range(6):
        whole.step()
        parted.step()
        assert_same_rows(whole, parted)


@pytest.mark.parametrize("system", ["vitis", "magnet"])
def test_churn_and_new_interests_change_nothing(system: str, workload: Workload, tmp_path: Path) -> None:
    crowd = flash_crowd(workload.node_count, share=0.3, round=3)
    whole, parted = engines(system, workload, tmp_path, 5, crowd)
    for now in range(1, 12):
        for engine in (whole, parted):
            if now == 6:
                engine.subscribe(4, 17)
                engine.unsubscribe(9, int(workload.node_topics.columns[workload.node_topics.starts[9]]))
            engine.step()
        assert_same_rows(whole, parted)
    for one, other in zip(*(engine.publish(np.arange(40, dtype=np.int32)) for engine in (whole, parted)), strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_links_that_need_consent_are_those_of_the_whole(workload: Workload, tmp_path: Path) -> None:
    crowd = flash_crowd(workload.node_count, share=0.3, round=3)
    whole, parted = engines("vitis", workload, tmp_path, 4, crowd, table_size=8, most_links=11)
    for _ in range(10):
        whole.step()
        parted.step()
        assert_same_rows(whole, parted)
    assert 7 < whole.network.neighbours().sizes().max() <= 11


def test_failures_are_noticed_alike(workload: Workload, tmp_path: Path) -> None:
    whole, parted = engines("vitis", workload, tmp_path, 3, mass_failure(workload.node_count, share=0.4, round=4))
    for _ in range(12):
        whole.step()
        parted.step()
        assert_same_rows(whole, parted)


@given(nodes=st.integers(1, 60), parts=st.integers(1, 70), data=st.data())
def test_every_node_is_in_one_part_and_contacts_are_those_of_the_whole(
    nodes: int, parts: int, data: st.DataObject
) -> None:
    split = Split(nodes, parts)
    ranges = [split.range_of(part) for part in range(parts)]
    assert [node for a, b in ranges for node in range(a, b)] == list(range(nodes))
    assert all(a <= node < b for node in range(nodes) for a, b in [ranges[split.part_of(np.array([node]))[0]]])
    partner = np.array(data.draw(st.lists(st.integers(-1, nodes - 1), min_size=nodes, max_size=nodes)), np.int32)
    asked = [sort_partners(partner[a:b], split) for a, b in ranges]
    for part, (first, last) in enumerate(ranges):
        calls = {}
        for other, (start, _) in enumerate(ranges):
            rows = asked[other].of_part(part)
            if other != part:
                calls[other] = Calls(asked[other].partner[rows], rows + start)
        (rows, starts, who), others = arrange(asked[part], calls, part, split)
        whose = np.concatenate([np.arange(first, last, dtype=np.int32), *others])
        assert [whose[row] if row >= 0 else -1 for row in rows] == partner[first:last].tolist()
        for row in range(last - first):
            callers = whose[who[starts[row] : starts[row + 1]]].tolist()
            assert callers == np.flatnonzero(partner == first + row).tolist()


def test_what_is_stored_appears_whole_and_the_first_wins(tmp_path: Path) -> None:
    files.store(tmp_path / "a" / "b", {"x": np.arange(3)})
    files.store(tmp_path / "a" / "b", {"x": np.arange(9)})
    assert files.fetch(tmp_path / "a" / "b")["x"].tolist() == [0, 1, 2]
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["b"]


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy's error has no number of the system, and so no words of it."""

    def fail(*_: object, **__: object) -> None:
        raise OSError("3 requested and 1 written")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(GrapevineError, match=r"3 requested and 1 written; is the disk full\?"):
        files.store(tmp_path / "a" / "b", {"x": np.arange(3)})
    assert list((tmp_path / "a").iterdir()) == []


def test_a_part_needs_no_more_memory_than_the_formula_says(tmp_path: Path) -> None:
    workload, split, peaks = generate("vitis-random", nodes=6_000, topics=500, seed=3), Split(6_000, 4), [0]

    def with_mail_on_disk(job: Job) -> Report:
        for i, move in enumerate(MOVES):
            for part in range(split.parts):
                tracemalloc.start()
                came = [(int(file.stem.split("-")[2]), np.load(file)) for file in tmp_path.glob(f"{i}-{part}-*.npy")]
                for target, cell in move(job, part, came):
                    np.save(tmp_path / f"{i + 1}-{target}-{part}.npy", cell)
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
                del came
        return Report(0, 0)

    network = partial(PartedNetwork, folder=tmp_path / "run", parts=split.parts, run=with_mail_on_disk)
    engine = Rounds("vitis", workload, make_config("vitis", {}), network=network)
    for done in range(5):
        engine.step()
        if done < 2:  # what is compiled or loaded in the first rounds is memory of the interpreter, not of a part
            peaks.clear()
    assert max(peaks) < memory_of_a_part(split.length, slots=15, samples=20, backups=8)
