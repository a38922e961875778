"""Formats told from first lines; what is told wrongly would be a wrong workload."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapevine import UsageError
from grapevine.pipeline.guess import guess_format, guess_from_lines

PEOPLE = [f"{i} {(7 * i + 3) % 30}" for i in range(30)]


@pytest.mark.parametrize(
    ("lines", "format", "columns", "why"),
    [
        (["follower\tfollowee", "1\t2", "2\t3"], "follows", "", "called follower, followee"),
        (["user,item", "1,2", "2,1"], "pairs", "", "called user, item"),
        (["item,rating,user", "1,5,2", "2,3,1"], "pairs", "", "called"),
        (["user\tpage\tt_seconds", "1\t8\t0", "2\t9\t36"], "edits", "", "called user, page, t_seconds"),
        (["ann news", "bob news", "ann sport"], "pairs", "", "different names"),
        (PEOPLE, "follows", "", "the same names"),
        ([f"{i} {i + 1}" for i in range(1, 30)], "friends", "", "the smaller one first"),
        ([f"{i} {i + 1}" for i in range(1, 6)], "follows", "", "the same names"),  # too few to be sure
        (["u v", *[f"{i} {i + 1}" for i in range(30)]], "friends", "", "the smaller one first"),
        (["ann news 10", "bob news 20", "ann sport 90"], "edits", "", "column 3 holds times"),
        (["1::1193::5::978300760", "1::661::3::978302109"], "edits", "user=1,item=2,seconds=4", "column 4 holds"),
        (["1 10 4.5", "2 11 3.0", "3 12 1.0"], "pairs", "user=1,item=2", "different names"),
        (['{"user": 1, "page": "a"}'], "pairs", "", "keys of its first object"),
        (['{"follower": 1, "followee": 2}'], "follows", "", "keys of its first object"),
        (["# made by hand", "ann news", "bob sport"], "pairs", "", "different names"),
    ],
)
def test_a_format_is_told_by_names_or_by_what_columns_hold(
    lines: list[str], format: str, columns: str, why: str
) -> None:
    found = guess_from_lines([lines])
    assert (found.format, found.columns) == (format, columns)
    assert why in found.why


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["ann", "bob"], "no two columns"),
        ([], "no two columns"),
        (["a b", "c d e", "f g h i"], "2 to 4 columns"),
        (['{"x": 1}'], "keys of its first object are x"),
    ],
)
def test_what_tells_nothing_is_a_sentence_with_the_formats(lines: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=rf"{said}.*--format: follows, mutual-follows, friends, pairs, adjacency"):
        guess_from_lines([lines])


def test_files_are_told_whatever_they_are_packed_in(tmp_path: Path) -> None:
    packed, columns = tmp_path / "follows.tsv.gz", tmp_path / "pairs.parquet"
    packed.write_bytes(gzip.compress(b"follower\tfollowee\n1\t2\n"))
    pq.write_table(pa.table({"user": ["ann"], "item": ["news"], "weight": [1]}), columns)
    assert guess_format([str(packed)]).format == "follows"
    assert guess_format([str(columns)]).format == "pairs"


def test_nothing_and_urls_are_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        guess_format([str(tmp_path / "none")])
    with pytest.raises(UsageError, match="holds no file"):
        guess_format([str(tmp_path)])
    with pytest.raises(UsageError, match="URLs is not guessed; name it"):
        guess_format(["hdfs:///follows.tsv"])
