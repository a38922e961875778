"""Comparisons as users make them: from files, folders and workloads in memory to an answer, its page and its folder."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapevine
from grapevine import UsageError, Workload
from grapevine.comparison.candidates import CompareConfig, Source, check_links, describe, fitting_systems
from grapevine.comparison.costs import Rates
from grapevine.comparison.run import ANSWER, PAGE, Comparison, compare
from grapevine.comparison.source import prepare
from grapevine.experiment.plan import plan
from grapevine.pipeline.stage import Stage

SMALL: dict[str, Any] = {"rounds": 20, "crash": 0.2}


def subscriptions() -> list[tuple[str, str]]:
    """Of 90 people to 12 channels, three favourites of each among the first or the last six."""
    draw = random.Random(3)
    return [(f"p{i}", f"c{6 * (i % 2) + topic}") for i in range(90) for topic in draw.sample(range(6), 3)]


def channels() -> Workload:
    wanted: dict[str, list[str]] = {}
    for user, item in subscriptions():
        wanted.setdefault(user, []).append(item)
    return Workload.from_dict(wanted, name="channels")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "channels.csv"
    file.write_text("user,channel\n" + "".join(f"{user},{channel}\n" for user, channel in subscriptions()))
    return file


@pytest.fixture(scope="module")
def found(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("compared") / "out"
    return compare(channels(), out=out, systems=["vitis", "opt", "gm"], links=[8], stage=stage, payload=200, **SMALL)


def test_every_system_runs_once_or_once_for_each_budget(found: Comparison) -> None:
    assert [choice.name for choice in found.choices] == ["gm", "opt with 8 links", "vitis with 8 links"]
    for choice in found.choices:
        assert choice.connections_max <= (choice.links or 1_000)
        assert choice.delivered_in_crash is not None
    assert found.failed == 0


def test_the_answer_follows_from_the_table(found: Comparison) -> None:
    free = [choice for choice in found.choices if choice.delivered >= 0.999 and not choice.needs]
    assert found.best in free
    assert found.recommendation.startswith(f"For channels take {found.best.name}: ")
    assert "assumed: the trace does not tell" in found.recommendation and "200 bytes" in found.recommendation
    assert repr(found).startswith("Comparison(For channels")
    assert list(found.to_pandas()["system"]) == [choice.system for choice in found.choices]


@pytest.mark.slow
def test_a_raw_file_is_read_and_cut_to_whole_users(stage: Stage, trace: Path, tmp_path: Path) -> None:
    told = compare(str(trace), out=tmp_path / "out", systems=["gm"], stage=stage, users=60, rounds=10, crash=0.0)
    assert told.recommendation.startswith("For channels.csv (a sample of 60 users) take gm: ")
    (folder,) = (told.folder / "source").glob("sample-60-*")
    sample = Workload.load(folder)
    assert sample.node_count == 60 == told.rates.nodes
    for node, name in enumerate(sample.node_names):
        wanted = {item for user, item in subscriptions() if user == name}
        assert {sample.topic_names[t] for t in sample.topics_of(node)} == wanted


def test_the_folder_holds_the_answer_the_page_and_the_picture(found: Comparison) -> None:
    stored = json.loads((found.folder / ANSWER).read_text())
    assert stored["recommended"]["system"] == found.best.system
    assert len(stored["choices"]) == len(found.choices)
    page = (found.folder / PAGE).read_text()
    assert found.judgement.sentences[0] in page
    for choice in found.choices:
        assert choice.name in page
    assert (found.folder / "runs" / "report.html").is_file()
    assert (found.folder / "front.png").read_bytes()[:4] == b"\x89PNG"
    assert found.best.name.replace(" with", "").replace(" links", "") in (found.folder / "front.svg").read_text()


@pytest.mark.slow
def test_the_same_folder_is_gone_on_with_and_foreign_ones_are_not_touched(
    found: Comparison, stage: Stage, trace: Path, tmp_path: Path
) -> None:
    done = {file: file.stat().st_mtime_ns for file in (found.folder / "runs" / "simulations").rglob("*.parquet")}
    again = compare(
        channels(), out=found.folder, systems=["vitis", "gm"], links=[8], stage=stage, payload=2_000, **SMALL
    )
    assert {choice.name for choice in again.choices} == {"gm", "vitis with 8 links"}
    kept = {file: file.stat().st_mtime_ns for file in (found.folder / "runs" / "simulations").rglob("*.parquet")}
    assert kept and kept.items() <= done.items()
    assert again.choices[0].bytes_a_second > found.choices[0].bytes_a_second  # of the same runs
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match="holds something else than a comparison"):
        compare(str(trace), out=tmp_path / "mine", stage=stage)
    with pytest.raises(UsageError, match="is a file"):
        compare(str(trace), out=trace, stage=stage)


def test_a_workload_in_memory_keeps_its_rates_if_it_is_asked_for_them(stage: Stage, tmp_path: Path) -> None:
    mine = Workload.from_dict({f"n{i}": ["news", f"local{i % 3}"] for i in range(20)}, name="town")
    source = prepare(stage, mine, tmp_path, CompareConfig(events=7.5))
    assert (source.name, source.rates.nodes, source.rates.topics) == ("town", 20, 4)
    assert (source.rates.events_a_day, source.rates.source) == (7.5, "as asked for")
    assert prepare(stage, mine, tmp_path, CompareConfig()).folder == source.folder  # stored once
    stored = Workload.load(source.folder)
    assert np.array_equal(stored.node_topics.columns, mine.node_topics.columns)


@pytest.mark.slow
def test_edits_know_how_much_is_published(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "edits.tsv"
    rows = [(user, f"page{user % 2}", 3_600 * hour) for user in range(12) for hour in range(24)]
    file.write_text(
        "".join(f"u{user}\t{page}\t{seconds}\n" for user, page, seconds in sorted(rows, key=lambda r: r[2]))
    )
    source = prepare(stage, [str(file)], tmp_path / "out", CompareConfig())
    assert source.rates.source == "as the trace has it"
    assert source.rates.events_a_day == pytest.approx(6 * 24 / (23 / 24), rel=0.05)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"systems": "vitis"}, r"systems='vitis': needs a list of names"),
        ({"systems": ["vitos"]}, "did you mean vitis"),
        ({"systems": ["rappel"]}, "rappel has no rounds"),
        ({"systems": {"vitis": {"tabel_size": 9}}}, "did you mean table_size"),
        ({"links": []}, "needs whole numbers of connections"),
        ({"links": [4]}, "between 5 and 1,000"),
        ({"links": ["10"]}, "between 5 and 1,000"),
        ({"crash": 2.0}, "crash=2.0"),
        ({"payload": -1}, "payload=-1"),
        ({"userz": 5}, "did you mean users"),
        ({"source": 7}, "needs a workload, its folder, or the files of a trace"),
        ({"source": "nowhere"}, "nowhere: no such file"),
    ],
)
def test_mistakes_are_sentences_and_nothing_is_written(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    source = settings.pop("source", "nowhere")
    with pytest.raises(UsageError, match=said):
        grapevine.compare(source, out=tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_budgets_as_large_as_the_network_are_left_out(tmp_path: Path) -> None:
    source = Source("tiny", tmp_path, Rates(12, 3, 1.0, 1, "assumed"))
    runs = plan(describe(source, {"vitis": {}, "gm": {}}, [8, 10, 25], CompareConfig(crash=0.0)))
    assert sorted((run.system, run.config.get("most_links")) for run in runs) == [
        *(("gm", None), ("vitis", 8), ("vitis", 10)),
    ]
    with pytest.raises(UsageError, match="tiny has 12 nodes, fewer than every budget"):
        describe(source, {"vitis": {}}, [12, 20], CompareConfig())


def test_budgets_come_once_and_in_order_and_all_systems_by_rounds_fit() -> None:
    assert check_links([25, 10, 25]) == (10, 25)
    assert {"vitis", "spidercast", "magnet", "omen", "gm"} <= set(fitting_systems(None))
    assert not {"rappel", "scribe"} & set(fitting_systems(None))
