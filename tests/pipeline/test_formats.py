"""A raw format is one entry: whatever is said about it there, `ingest` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.store import read_table
from grapevine.model.workload import Workload, load_churn
from grapevine.pipeline.formats import FORMATS, Format
from grapevine.pipeline.ingest import IngestConfig, ingest
from grapevine.pipeline.reasons import not_a_time
from grapevine.pipeline.relate.base import IngestRun, Meaning
from grapevine.pipeline.relate.churn import StateChanges
from grapevine.pipeline.relate.subscriptions import Relations
from grapevine.pipeline.stage import Stage


def add(monkeypatch: pytest.MonkeyPatch, format: Format) -> None:
    monkeypatch.setitem(FORMATS, format.name, format)


@pytest.mark.slow
def test_a_format_of_timed_friendships_is_one_entry(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(fields: Column) -> Column:
        return not_a_time(fields[2], "time")

    chats = Format(
        "chats",
        "who talked with whom, and when",
        Relations(social=True, both_ways=True, seconds=2),
        ("speaker", "listener", "seconds"),
        timed,
        numeric=(2,),
        named=(0, 1),
        delimiter="comma",
    )
    add(monkeypatch, chats)
    file = tmp_path / "chats.csv"
    file.write_text("speaker,listener,seconds\nada,bob,0\nbob,ada,43200\nada,ada,7\nada,cid,86400\nada,cid,soon\n")
    manifest = ingest(stage, "chats", [str(file)], tmp_path / "out", IngestConfig(most_rejected=0.5))
    workload = Workload.load(tmp_path / "out")
    assert {
        (workload.node_names[node], workload.topic_names[topic])
        for node in range(3)
        for topic in workload.topics_of(node)
    } == {("ada", "bob"), ("bob", "ada"), ("ada", "cid"), ("cid", "ada")}
    assert {name: manifest.counts[name] for name in ("self_loops", "duplicates", "rejected", "span_days")} == {
        "self_loops": 1,
        "duplicates": 1,
        "rejected": 1,
        "span_days": 1.0,
    }
    (rejected,) = read_table(tmp_path / "out", tables.REJECTED).to_pylist()
    assert (rejected["line"], rejected["reason"]) == (6, "time soon is not a time of zero or more seconds")


def test_of_mutual_follows_only_those_count_who_follow_each_other(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "follows.tsv"
    file.write_text("ada\tbob\nbob\tada\nada\tcid\ndan\tada\nada\tdan\nada\tbob\ncid\tcid\n")
    manifest = ingest(stage, "mutual-follows", [str(file)], tmp_path / "out")
    workload = Workload.load(tmp_path / "out")
    assert {
        (workload.node_names[node], workload.topic_names[topic])
        for node in range(workload.node_count)
        for topic in workload.topics_of(node)
    } == {("ada", "bob"), ("bob", "ada"), ("ada", "dan"), ("dan", "ada")}
    counted = {name: manifest.counts[name] for name in ("self_loops", "one_sided", "duplicates")}
    assert counted == {"self_loops": 1, "one_sided": 1, "duplicates": 1}
    lonely = tmp_path / "lonely.tsv"
    lonely.write_text("ada\tbob\nbob\tcid\n")
    with pytest.raises(UsageError, match="no two users are related both ways"):
        ingest(stage, "mutual-follows", [str(lonely)], tmp_path / "none")


@pytest.mark.slow
def test_a_format_of_other_words_and_units_is_one_entry(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meaning = StateChanges(up=("awake",), ignored=("dreaming",), units_per_second=1e3)
    add(monkeypatch, Format("sleep", "who is awake", meaning, ("ms", "node", "state"), numeric=(0,), named=(1,)))
    file = tmp_path / "sleep.txt"
    file.write_text("0 a awake\n1500 a asleep\n2000 b Awake\n2500 a dreaming\n")
    manifest = ingest(stage, "sleep", [str(file)], tmp_path / "out")
    churn = load_churn(tmp_path / "out")
    assert list(zip(churn.joined_s.tolist(), churn.left_s.tolist(), strict=True)) == [(0.0, 1.5), (2.0, float("inf"))]
    assert manifest.counts["updates_ignored"] == 1


@dataclass(frozen=True, slots=True)
class Crowd(Meaning):
    """Every row is a node that subscribes to the one topic there is."""

    makes: ClassVar[tables.Table] = tables.SUBSCRIPTIONS

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        nodes = run.number(rows.select(F.col("fields")[0].alias("name")), "node")
        run.write(nodes, tables.NODES)
        topic = F.lit(0).alias("topic"), F.lit("all").alias("name"), F.lit(1.0).alias("rate")
        only = run.stage.spark.range(1).select(*topic, F.lit(None).cast("int").alias("publisher"))
        run.write(only, tables.TOPICS)
        run.write(nodes.select("node", F.lit(0).alias("topic")), tables.SUBSCRIPTIONS)


def test_rows_may_mean_something_new(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, Format("crowd", "names", Crowd(), ("name",), named=(0,)))
    file = tmp_path / "names.txt"
    file.write_text("# people\nada\nbob\nada\n")
    manifest = ingest(stage, "crowd", [str(file)], tmp_path / "out")
    assert Workload.load(tmp_path / "out").subscription_count == 2
    assert (manifest.config["format"], manifest.counts["rows"], manifest.counts["comments"]) == ("crowd", 3, 1)


@pytest.mark.parametrize("format", FORMATS.values(), ids=list(FORMATS))
def test_a_format_describes_itself(format: Format) -> None:
    assert format.summary and format.meaning.makes in (tables.SUBSCRIPTIONS, tables.CHURN, tables.LATENCY)
    positions = {*format.named, *format.numeric}
    assert positions <= set(range(len(format.columns)))
    assert not set(format.named) & set(format.numeric)


def test_ids_of_a_format_without_ids_cannot_be_asked_to_be_integers(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("0 1\n1 0\n")
    with pytest.raises(UsageError, match="ids=integer: latency-matrix has no ids; leave it out"):
        ingest(stage, "latency-matrix", [str(tmp_path / "m.txt")], tmp_path / "out", IngestConfig(ids="integer"))
