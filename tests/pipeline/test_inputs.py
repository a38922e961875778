"""Which files an ingest reads, and how Spark gets at those that it cannot read."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapevine.model.errors import UsageError
from grapevine.pipeline.inputs import find_inputs, open_inputs
from grapevine.pipeline.lines import read_lines
from grapevine.pipeline.stage import Stage


def test_inputs_are_given_to_spark_as_they_are_and_never_as_patterns(tmp_path: Path) -> None:
    (tmp_path / "x[1].txt").write_text("1 2\n")
    assert find_inputs([str(tmp_path / "x[1].txt"), "s3://bucket/*"]) == [rf"{tmp_path}/x\[1\].txt", "s3://bucket/*"]
    with pytest.raises(UsageError, match="a, b: no such file or folder"):
        find_inputs(["a", "b", str(tmp_path)])


def test_every_file_is_looked_at_and_a_damaged_one_is_left_to_spark(tmp_path: Path) -> None:
    """No file has to be copied, so Spark is not asked for anything."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"user item\n1 2\n"))
    (tmp_path / "deep" / "b.edges").write_text("User Item\n1 2\n")
    (tmp_path / "c.txt.gz").write_bytes(b"\x1f\x8bnot gzip")
    (tmp_path / "_left").write_text("not read")
    found = open_inputs(Stage(quiet=True), [str(tmp_path)], "auto", tmp_path / "scratch")
    assert found.heads == [["user item", "1 2"], [], ["User Item", "1 2"]]
    assert [Path(path).name for path in found.paths] == ["a.txt.gz", "c.txt.gz", "b.edges"]
    assert (found.packings, found.originals, found.parquet) == ({"gzip"}, {}, False)


def test_what_spark_cannot_read_is_copied_as_plain_text(stage: Stage, tmp_path: Path) -> None:
    files = {"a.csv.xz": lzma.compress("ann,Ærø\n".encode("utf-16")), "b.csv": gzip.compress(b"bob,Rome\n")}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = open_inputs(stage, [str(tmp_path / name) for name in files], "auto", tmp_path / "scratch")
    assert found.heads == [["ann,Ærø"], ["bob,Rome"]]
    assert list(found.originals.values()) == [str(tmp_path / name) for name in files]
    rows = read_lines(stage.spark, found.paths, originals=found.originals).select("file", "text").collect()
    assert {Path(row.file).name: row.text for row in rows} == {"a.csv.xz": "ann,Ærø", "b.csv": "bob,Rome"}


def test_parquet_is_read_by_rows_and_not_mixed_with_text(stage: Stage, tmp_path: Path) -> None:
    pq.write_table(pa.table({"who is it": ["ann", "bob"], "n": [1, 2]}), tmp_path / "table")
    found = open_inputs(stage, [str(tmp_path / "table")], "auto", tmp_path / "scratch")
    rows = read_lines(stage.spark, found.paths, parquet=found.parquet).select("text").collect()
    assert [row.text for row in rows] == ['{"who is it":"ann","n":1}', '{"who is it":"bob","n":2}']
    (tmp_path / "text").write_text("1 2\n")
    with pytest.raises(UsageError, match="some inputs are Parquet and some are not"):
        open_inputs(stage, [str(tmp_path / name) for name in ("table", "text")], "auto", tmp_path / "scratch")


def test_what_lies_at_a_url_is_fetched_where_spark_cannot_read_it(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("user,item\nann,Rome\n")
    (tmp_path / "c.csv.xz").write_bytes(lzma.compress(b"bob,Oslo\n"))
    urls = [f"notatomic://{tmp_path}/{name}" for name in ("a b.csv", "c.csv.xz")]
    found = open_inputs(stage, urls, "auto", tmp_path / "scratch")
    assert found.heads == [["user,item", "ann,Rome"], ["bob,Oslo"]]
    assert list(found.originals.values()) == urls[1:]
    given = open_inputs(stage, urls[:1], "utf-8", tmp_path / "scratch")
    assert (given.paths, given.heads) == (urls[:1], [["user,item", "ann,Rome"]])
