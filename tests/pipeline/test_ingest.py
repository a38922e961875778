"""Ingest on small inputs whose every row is known."""

from __future__ import annotations

import gzip
import lzma
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
from tests.jobs import jobs_of


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
        self, format: str, text: str | bytes = "", *, files: list[str] | None = None, **options: Any
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


Follows = tuple[Lab, Manifest]
ODD = "x[1]*?{2} 100%25+ back\\\\slash.txt"  # Spark takes such names for patterns
SMALL = """# a comment
% another

Follower\tFollowee
10\tbob
bob\t9
9\t10
alice\t10
10\tbob
eve\teve
3
4\t5\t6
\t7
10\tbob
"""
RELATED = {("10", "bob"), ("bob", "9"), ("9", "10"), ("alice", "10")}
LINES, BAD = 600, {17, 300, 599}
CHAIN = {(str(i), str(i + 1)) for i in range(1, LINES + 1) if i not in BAD}


@pytest.fixture(scope="module")
def follows(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Follows:
    """A small file of an odd name, and at a URL a folder that holds a compressed file and a larger one.

    Spark cuts the larger one into blocks and reads them apart.
    """
    lab = Lab(stage, tmp_path_factory.mktemp("follows"))
    lab.out = lab.folder / f"out of {ODD}"
    lab.file("".join("oops\n" if i in BAD else f"{i}\t{i + 1}\n" for i in range(1, LINES + 1)), "folder/deep/a.txt")
    lab.file(gzip.compress(b"1\t2\n2\t3\nbad\n"), "folder/b.txt.gz")
    size = stage.spark.conf.get("spark.sql.files.maxPartitionBytes")
    stage.spark.conf.set("spark.sql.files.maxPartitionBytes", "3000")
    try:
        manifest = lab.ingest("follows", files=[lab.file(SMALL, ODD), f"notatomic://{lab.folder}/folder"])
    finally:
        stage.spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    return lab, manifest


def test_follows_become_subscriptions(follows: Follows) -> None:
    lab, manifest = follows
    assert lab.relations() == RELATED | CHAIN
    followed = {followee for _, followee in RELATED | CHAIN}
    assert manifest.tables == {
        "nodes": LINES + 3,  # 1 to 601, alice and bob; not eve
        "topics": len(followed),
        "subscriptions": len(RELATED | CHAIN),
        "rejected": 7,
    }
    assert manifest.counts["subscribers"] == len({follower for follower, _ in RELATED | CHAIN})
    assert (manifest.counts["comments"], manifest.counts["header"]) == (2, "Follower\tFollowee")


def test_names_are_numbered_in_natural_order_and_topics_know_their_publisher(follows: Follows) -> None:
    lab, _ = follows
    names = [*map(str, range(1, LINES + 2)), "alice", "bob"]
    assert lab.rows(tables.NODES) == list(enumerate(names))
    followed = sorted({names.index(followee) for _, followee in RELATED | CHAIN})
    assert lab.rows(tables.TOPICS) == [(topic, names[node], 1.0, node) for topic, node in enumerate(followed)]
    assert lab.rows(tables.SUBSCRIPTIONS) == sorted(
        (names.index(follower), followed.index(names.index(followee))) for follower, followee in RELATED | CHAIN
    )


def test_self_loops_and_duplicates_are_counted_and_removed(follows: Follows) -> None:
    """eve follows herself; 10 follows bob three times; and three relations are in two files."""
    lab, manifest = follows
    assert (manifest.counts["self_loops"], manifest.counts["duplicates"]) == (1, 5)
    assert "eve" not in Workload.load(lab.out).node_names


def test_unreadable_rows_are_kept_with_file_line_and_reason(follows: Follows) -> None:
    lab, manifest = follows
    rejected = [row for row in lab.rows(tables.REJECTED) if row[0] == str(lab.folder / ODD)]
    assert [row[1:] for row in rejected] == [
        (11, "has 1 columns, expected 2 (follower, followee)", "3"),
        (12, "has 3 columns, expected 2 (follower, followee)", "4\t5\t6"),
        (13, "follower is empty", "\t7"),
    ]
    assert manifest.counts["rejected"] == manifest.tables["rejected"] == 7


def test_line_numbers_hold_across_blocks_files_and_folders(follows: Follows) -> None:
    lab, _ = follows
    found = {(Path(file).name, line, content) for file, line, _, content in lab.rows(tables.REJECTED)}
    assert {row for row in found if row[0] != ODD} == {("a.txt", line, "oops") for line in BAD} | {
        ("b.txt.gz", 3, "bad")
    }


def test_tables_are_stored_in_their_declared_schema(follows: Follows) -> None:
    lab, _ = follows
    for table in (tables.NODES, tables.TOPICS, tables.SUBSCRIPTIONS, tables.REJECTED):
        for stored in (lab.out / table.name).glob("*.parquet"):
            schema = pq.read_schema(stored)
            assert [(f.name, f.type) for f in schema] == [(c.name, c.type) for c in table.columns]


def test_few_rows_take_few_jobs(lab: Lab) -> None:
    """Reading, numbering users and items with the tables that show them, subscriptions, and counting subscribers."""
    with jobs_of(lab.stage) as jobs:
        lab.ingest("pairs", "".join(f"{user} {item}\n" for user in range(30) for item in range(user % 7 + 1)))
    assert 0 < len(jobs) <= 6


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


def test_a_suffix_may_lie(lab: Lab) -> None:
    lab.ingest("follows", files=[lab.file("ann\tbob\nbob\tann\n", "follows.txt.gz")])
    assert lab.relations() == {("ann", "bob"), ("bob", "ann")}


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


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("follows", "", "the input has no data lines"),
        ("follows", "# only a comment\n", "the input has no data lines"),
        ("follows", bytes(range(256)) * 40, "not text"),
        ("follows", "1 2 3\n4 5 6\n", "2 of 2 lines were rejected, e.g. line 1 has 3 columns, expected 2"),
        ("follows", "1 1\n2 2\n", "every row relates a user to itself"),
        pytest.param("avt", "a 0\n", "no node was ever there", marks=pytest.mark.slow),  # as the next one
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


def test_too_many_rejected_lines_are_an_error_that_shows_three(lab: Lab) -> None:
    """A list of communities is no list of pairs, although some of its lines could be one."""
    groups = "a b\nc d e\nf g\nh i j\nk l m n\no p\n"
    with pytest.raises(UsageError) as caught:
        lab.ingest("pairs", groups)
    assert str(caught.value) == (
        "not readable as pairs: 3 of 6 lines were rejected, e.g. line 2 has 3 columns, expected 2 (user, item) "
        "('c d e'); line 4 has 3 columns, expected 2 (user, item) ('h i j'); line 5 has 4 columns, expected 2 (user, "
        "item) ('k l m n'); say how to read them, or allow more than 10% with most_rejected"
    )
    assert not lab.out.exists()
    assert lab.ingest("pairs", groups, most_rejected=0.5).counts["rejected"] == 3


def test_lists_of_members_and_of_items_become_pairs(lab: Lab) -> None:
    lab.ingest("members", "ann bob\n\ncid\nbob ann ann\n")
    assert lab.relations() == {("ann", "1"), ("bob", "1"), ("cid", "3"), ("bob", "4"), ("ann", "4")}
    manifest = lab.ingest("adjacency", "ann\tOslo\tRome\nbob\tOslo\n")
    assert lab.relations() == {("ann", "Oslo"), ("ann", "Rome"), ("bob", "Oslo")}
    assert (manifest.counts["lists"], manifest.counts["rows"]) == (2, 3)


def test_a_table_of_many_columns_in_an_odd_packing_becomes_a_workload(lab: Lab) -> None:
    text = "time;user_id;comment;page_id\n5;ann;nice;Ærø\n6;bob;;Rome\nx;;;y\n"
    file = lab.file(lzma.compress(text.encode("utf-16")), "raw.data")
    manifest = lab.ingest("pairs", files=[file], most_rejected=0.4)
    assert lab.relations() == {("ann", "Ærø"), ("bob", "Rome")}
    assert manifest.counts["unpacked"] == "utf-16, xz"
    assert lab.rows(tables.REJECTED) == [(file, 4, "user is empty", "x;;;y")]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "not gzip"])
def test_a_damaged_gzip_is_one_sentence_and_leaves_nothing(lab: Lab, damage: str) -> None:
    whole = gzip.compress(b"".join(b"%d %d\n" % (i, i + 1) for i in range(20_000)))
    file = lab.file(
        whole[: len(whole) // 2] if damage == "truncated" else b"\x1f\x8b" + b"1 2\n" * 100, "follows.txt.gz"
    )
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
