"""Ingest on small inputs whose every row is known."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest
from grapevine.model.store import read_table
from grapevine.model.workload import Workload, load_churn, load_latency
from grapevine.pipeline.ingest import IngestConfig, ingest
from grapevine.pipeline.stage import Stage


class Lab:
    """Writes inputs, ingests them, and looks at what came out."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder, self.out = stage, folder, folder / "out"

    def file(self, text: str | bytes, name: str = "input.txt") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def ingest(
        self, format: str, text: str | bytes = "", *, files: list[str] | None = None, **options: str
    ) -> Manifest:
        files = files if files is not None else [self.file(text)]
        return ingest(self.stage, format, files, self.out, IngestConfig(**options), force=True)

    def rows(self, table: tables.Table) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in read_table(self.out, table).to_pylist())

    def relations(self) -> set[tuple[str, str]]:
        workload = Workload.load(self.out)
        return {
            (workload.node_names[node], workload.topic_names[topic])
            for node in range(workload.node_count)
            for topic in workload.topics_of(node)
        }


@pytest.fixture
def lab(stage: Stage, tmp_path: Path) -> Lab:
    return Lab(stage, tmp_path)


EDGES = {("1", "2"), ("1", "3"), ("2", "3"), ("10", "2")}


def test_follows_become_subscriptions(lab: Lab) -> None:
    manifest = lab.ingest("follows", "# a comment\n% another\n\nFollower,Followee\n1,2\n1,3\n\n2,3\n10,2\n")
    assert lab.relations() == EDGES
    assert manifest.counts["rejected"] == 0
    assert manifest.tables == {"nodes": 4, "topics": 2, "subscriptions": 4}
    assert manifest.counts["subscribers"] == 3


def test_names_are_numbered_in_natural_order_and_topics_know_their_publisher(lab: Lab) -> None:
    lab.ingest("follows", "10 bob\nbob 9\n9 10\nalice 10\n")
    assert lab.rows(tables.NODES) == [(0, "9"), (1, "10"), (2, "alice"), (3, "bob")]
    assert lab.rows(tables.TOPICS) == [(0, "9", 1.0, 0), (1, "10", 1.0, 1), (2, "bob", 1.0, 3)]
    assert lab.rows(tables.SUBSCRIPTIONS) == [(0, 1), (1, 2), (2, 1), (3, 0)]


def test_self_loops_and_duplicates_are_counted_and_removed(lab: Lab) -> None:
    manifest = lab.ingest("follows", "1 2\n1 2\n3 3\n1 2\n2 1\n")
    assert lab.relations() == {("1", "2"), ("2", "1")}
    assert (manifest.counts["self_loops"], manifest.counts["duplicates"]) == (1, 2)
    assert manifest.tables["nodes"] == 2


def test_friends_subscribe_to_each_other(lab: Lab) -> None:
    manifest = lab.ingest("friends", "u\tv\n1\t2\n2\t1\n2\t3\n")
    assert lab.relations() == {("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")}
    assert manifest.counts["duplicates"] == 1  # 1–2 and 2–1 are one friendship, given twice


def test_edits_give_rates_per_day(lab: Lab) -> None:
    manifest = lab.ingest("edits", "user,page,t\nann,Oslo,0\nann,Oslo,43200\nbob,Rome,172800\nbob,Oslo,86400\n")
    assert lab.relations() == {("ann", "Oslo"), ("bob", "Oslo"), ("bob", "Rome")}
    assert [row[1:] for row in lab.rows(tables.TOPICS)] == [("Oslo", 1.5, None), ("Rome", 0.5, None)]
    assert (manifest.counts["span_days"], manifest.counts["duplicates"]) == (2.0, 1)


def test_availability_becomes_sessions(lab: Lab) -> None:
    manifest = lab.ingest("avt", "a\t2\t 0 10 20 30\nb 0\nc 1 5 6\n")
    assert lab.rows(tables.CHURN) == [(0, 0.0, 10.0), (0, 20.0, 30.0), (2, 5.0, 6.0)]
    assert manifest.counts["online_nodes"] == 2
    churn = load_churn(lab.out)
    assert churn.joined_s.tolist() == [0.0, 5.0, 20.0]


@pytest.mark.slow
def test_up_and_down_become_sessions(lab: Lab) -> None:
    """A first `down` ends a session that began with the trace; a last `up` has no end; repeated states count once."""
    text = "time,node,state\n0,a,up\n5,a,DOWN\n7,a,up\n7.5,a,up\n3,b,down\n0,c,down\n"
    manifest = lab.ingest("updown", text)
    assert lab.rows(tables.CHURN) == [(0, 0.0, 5.0), (0, 7.0, None), (1, 0.0, 3.0)]
    assert manifest.counts["duplicates"] == 1


@pytest.mark.slow
def test_machine_events_are_in_microseconds_and_updates_do_not_matter(lab: Lab) -> None:
    text = "0,5,0,platform,0.5,0.25\n0,6,ADD,,,\n1500000,5,1,,,\n1600000,6,2,p,1,1\n2000000,5,ADD,,,\n"
    manifest = lab.ingest("machine-events", text)
    assert lab.rows(tables.CHURN) == [(0, 0.0, 1.5), (0, 2.0, None), (1, 0.0, None)]
    assert manifest.counts["updates_ignored"] == 1


@pytest.mark.slow
def test_matrices_become_slices(lab: Lab) -> None:
    files = [lab.file("0\t1.5\t\n2\t0\t\n", "b.tsv"), lab.file("0 7\n-1 0\n", "c.tsv")]
    manifest = lab.ingest("latency-matrix", files=files, delimiter="space")
    assert lab.rows(tables.LATENCY) == [
        (0, 0, 0, 0.0), (0, 0, 1, 1.5), (0, 1, 0, 2.0), (0, 1, 1, 0.0), (1, 0, 0, 0.0), (1, 0, 1, 7.0), (1, 1, 1, 0.0)
    ]  # fmt: skip
    assert manifest.counts["slices"] == 2
    file, line, reason, content = lab.rows(tables.REJECTED)[0]
    assert file.endswith("c.tsv")
    assert (line, content) == (2, "-1")
    assert reason == "column 1: cell -1 is not a latency of zero or more milliseconds"
    assert load_latency(lab.out).rtt_ms.shape == (2, 2, 2)


@pytest.mark.slow
def test_latency_pairs_may_have_more_columns_and_repeats(lab: Lab) -> None:
    lab.ingest(
        "latency-pairs",
        "from_city\tto_city\tms\tkm\nNew York\tOslo\t80\t5900\nOslo\tNew York\t81\t5900\nNew York\tOslo\t90\t1\n",
    )
    assert lab.rows(tables.LATENCY) == [(0, 0, 1, 85.0), (0, 1, 0, 81.0)]


def test_unreadable_rows_are_kept_with_file_line_and_reason(lab: Lab) -> None:
    """Also from and into folders of odd names, which Spark takes for patterns."""
    name = "x[1]*?{2} 100%25+ back\\\\slash.txt"
    lab.out = lab.folder / f"out of {name}"
    file = lab.file("# header\n1\t2\n3\n4\t5\t6\n\t7\n8\t9\n", name)
    manifest = lab.ingest("follows", files=[file])
    assert lab.relations() == {("1", "2"), ("8", "9")}
    assert {row[0] for row in lab.rows(tables.REJECTED)} == {file}
    assert [row[1:] for row in lab.rows(tables.REJECTED)] == [
        (3, "has 1 columns, expected 2 (follower, followee)", "3"),
        (4, "has 3 columns, expected 2 (follower, followee)", "4\t5\t6"),
        (5, "follower is empty", "\t7"),
    ]
    assert manifest.counts["rejected"] == manifest.tables["rejected"] == 3
    for table in (tables.NODES, tables.TOPICS, tables.SUBSCRIPTIONS, tables.REJECTED):
        for stored in (lab.out / table.name).glob("*.parquet"):
            schema = pq.read_schema(stored)
            assert [(f.name, f.type) for f in schema] == [(c.name, c.type) for c in table.columns]


def test_line_numbers_hold_across_blocks_files_and_folders(lab: Lab) -> None:
    """Spark cuts a large file into blocks and reads them apart; the numbers must not notice."""
    size = lab.stage.spark.conf.get("spark.sql.files.maxPartitionBytes")
    lab.stage.spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        bad = {17, 500, 999}
        text = "".join("oops\n" if i in bad else f"{i} {i + 1}\n" for i in range(1, 1_001))
        lab.file(text, "folder/deep/a.txt")
        lab.file(gzip.compress(b"1 2\n2 3\nbad\n"), "folder/b.txt.gz")
        lab.ingest("follows", files=[str(lab.folder / "folder")])
    finally:
        lab.stage.spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    found = {(Path(file).name, line, content) for file, line, _, content in lab.rows(tables.REJECTED)}
    assert found == {("a.txt", line, "oops") for line in bad} | {("b.txt.gz", 3, "bad")}


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("follows", "", "the input has no data lines"),
        ("follows", "# only a comment\n", "the input has no data lines"),
        ("follows", bytes(range(256)) * 40, "not text"),
        ("follows", "1 2 3\n4 5 6\n", "2 lines were rejected; line 1 has 3 columns, expected 2"),
        ("follows", "1 1\n2 2\n", "every row relates a user to itself"),
        ("avt", "a 0\n", "no node was ever there"),
        ("machine-events", "1,a,2\n", "no node was ever there"),
        ("latency-matrix", "-1 -1\n-1 -1\n", "no cell holds a latency"),
        ("latency-matrix", b"0 1\n-1 0\n\x00bad\n", "line 3 not text"),
        ("latency-matrix", "0 1 2\n1 0 2\n", "a latency matrix is square"),
    ],
)  # fmt: skip
def test_an_input_with_nothing_readable_is_one_sentence_and_leaves_nothing(
    lab: Lab, format: str, text: str | bytes, expected: str
) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        lab.ingest(format, text, header="no")
    assert "\n" not in str(caught.value)
    assert [p.name for p in lab.folder.iterdir()] == ["input.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "not gzip"])
def test_a_damaged_gzip_is_one_sentence_and_leaves_nothing(lab: Lab, damage: str) -> None:
    whole = gzip.compress(b"".join(b"%d %d\n" % (i, i + 1) for i in range(20_000)))
    file = lab.file(whole[: len(whole) // 2] if damage == "truncated" else b"1 2\n" * 100, "follows.txt.gz")
    with pytest.raises(UsageError, match=r"follows\.txt\.gz: is truncated or not a valid compressed file"):
        lab.ingest("follows", files=[file])
    assert not lab.out.exists()


def test_matrices_of_different_sizes_are_refused(lab: Lab) -> None:
    files = [lab.file("0 1\n1 0\n", "a"), lab.file("0\n", "b")]
    with pytest.raises(UsageError, match="different sizes"):
        lab.ingest("latency-matrix", files=files)


def test_a_missing_file_is_one_sentence(lab: Lab) -> None:
    with pytest.raises(UsageError, match="nowhere: no such file or folder"):
        lab.ingest("follows", files=["nowhere"])


@pytest.mark.parametrize("name", ["_hidden.txt", ".hidden.txt", "a:b.txt"])
def test_names_that_spark_would_skip_are_refused(lab: Lab, name: str) -> None:
    with pytest.raises(UsageError, match="rename it"):
        lab.ingest("follows", files=[lab.file("1 2\n", name)])
