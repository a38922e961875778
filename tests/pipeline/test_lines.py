"""Lines become fields, in every layout and from files of any name; test_ingest.py says what fields become."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.layout import detect_layout, find_inputs
from grapevine.pipeline.lines import parse, read_lines, rejected_rows
from grapevine.pipeline.stage import Stage

FOLLOWS = FORMATS["follows"]
PAIRS = [["1", "2"], ["1", "3"], ["2", "3"], ["10", "2"]]


def read(stage: Stage, file: Path) -> tuple[DataFrame, DataFrame]:
    """The lines of a file as they are, and parsed, as ingest does it."""
    lines = read_lines(stage.spark, find_inputs([str(file)]))
    layout = detect_layout(lines, FOLLOWS, delimiter="auto", header="auto", comments=True)
    return lines, parse(lines, FOLLOWS, layout, integer_ids=False)


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("1\t2\n1\t3\n2\t3\n10\t2\n", []),
        ("1 2\n1 3\n2   3\n 10 2 \n", []),
        ("1,2\n1,3\n2,3\n10,2", []),
        ("1, 2\r\n1, 3\r\n2, 3\r\n10, 2\r\n", []),
        ('"1","2"\n"1","3"\n"2","3"\n"10","2"\n', []),
        ("follower\tfollowee\n1\t2\n1\t3\n2\t3\n10\t2\n", ["header"]),
        (
            "# a comment\n% another\n\nFollower,Followee\n1,2\n1,3\n\n2,3\n10,2\n",
            ["comment", "comment", "blank", "header", "blank"],
        ),
        ("alpha beta\n1 2\n1 3\n2 3\n10 2\n", ["header"]),
    ],
    ids=["tab", "spaces", "comma", "crlf", "quotes", "header", "comments", "unknown header over numbers"],
)
def test_follows_are_read_in_every_layout(stage: Stage, tmp_path: Path, text: str, others: list[str]) -> None:
    (tmp_path / "input.txt").write_bytes(text.encode())
    rows = read(stage, tmp_path / "input.txt")[1].orderBy("row").select("kind", "fields").collect()
    assert [row.fields for row in rows if row.kind == "data"] == PAIRS
    assert [row.kind for row in rows if row.kind != "data"] == others


@pytest.mark.parametrize("name", ["a b.txt", "100%25+.txt", "x[1]*?.txt", "x{1}.txt", "back\\\\slash.txt"])
def test_a_rejected_line_names_its_file_as_the_user_knows_it(stage: Stage, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("1 2\nbad\n")
    lines, parsed = read(stage, tmp_path / name)
    (row,) = rejected_rows(parsed, lines).collect()
    assert tuple(row) == (str(tmp_path / name), 2, "has 1 columns, expected 2 (follower, followee)", "bad")
