"""Lines become fields, in every layout and from files of any name; test_ingest.py says what fields become."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.inputs import open_inputs
from grapevine.pipeline.layout import SPACE, Asked, Layout, detect_layout, split
from grapevine.pipeline.lines import _tokenise, parse, read_lines, rejected_rows
from grapevine.pipeline.stage import Stage

PAIRS = [["1", "2"], ["1", "3"], ["2", "3"], ["10", "2"]]


def read(
    stage: Stage, *files: Path, format: str = "follows", integer_ids: bool = False, **asked: str
) -> tuple[DataFrame, DataFrame]:
    """The lines of files as they are, and parsed, as ingest does it."""
    inputs = open_inputs(stage, [str(file) for file in files], "auto", files[0].parent / "scratch")
    lines = read_lines(stage.spark, inputs.paths)
    layout = detect_layout(inputs.heads, FORMATS[format], Asked(**asked))
    return lines, parse(lines, FORMATS[format], layout, integer_ids=integer_ids)


def fields_of(stage: Stage, *files: Path, **how: Any) -> list[list[str]]:
    """The readable rows, in their order."""
    rows = read(stage, *files, **how)[1].filter("kind = 'data'").select("file", "row", "fields").collect()
    return [row.fields for row in sorted(rows)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "input.txt"


LAYOUTS: dict[str, tuple[str, list[str]]] = {  # texts that all mean PAIRS, and the kinds of their other lines
    "tab": ("1\t2\n1\t3\n2\t3\n10\t2\n", []),
    "spaces": ("1 2\n1 3\n2   3\n 10 2 \n", []),
    "comma": ("1,2\n1,3\n2,3\n10,2", []),
    "crlf": ("1, 2\r\n1, 3\r\n2, 3\r\n10, 2\r\n", []),
    "quotes": ('"1","2"\n"1","3"\n"2","3"\n"10","2"\n', []),
    "header": ("follower\tfollowee\n1\t2\n1\t3\n2\t3\n10\t2\n", ["header"]),
    "comments": (
        "# a comment\n% another\n\nFollower,Followee\n1,2\n1,3\n\n2,3\n10,2\n",
        ["comment", "comment", "blank", "header", "blank"],
    ),
    "unknown-header-over-numbers": ("alpha beta\n1 2\n1 3\n2 3\n10 2\n", ["header"]),
}


def test_follows_are_read_in_every_layout(stage: Stage, tmp_path: Path) -> None:
    for name, (text, _) in LAYOUTS.items():
        (tmp_path / name).write_bytes(text.encode())
    parsed = reduce(DataFrame.union, (read(stage, tmp_path / name)[1] for name in LAYOUTS))
    rows = sorted(parsed.select("row", "file", "kind", "fields").collect())
    for name, (_, others) in LAYOUTS.items():
        found = [row for row in rows if row.file.endswith(f"/{name}")]
        assert [row.fields for row in found if row.kind == "data"] == PAIRS, name
        assert [row.kind for row in found if row.kind != "data"] == others, name


def test_a_rejected_line_names_its_file_as_the_user_knows_it(stage: Stage, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a b.txt", "100%25+.txt", "x[1]*?.txt", "x{1}.txt", "back\\\\slash.txt")]
    for file in files:
        file.write_text("1 2\nbad\n")
    lines, parsed = read(stage, *files)
    assert sorted(tuple(row) for row in rejected_rows(parsed, lines).collect()) == sorted(
        (str(file), 2, "has 1 columns, expected 2 (follower, followee)", "bad") for file in files
    )


def test_commas_inside_quotes_belong_to_the_name(stage: Stage, file: Path) -> None:
    file.write_text('ann,"Washington, D.C."\nbob,Oslo\n')
    assert fields_of(stage, file, format="pairs") == [["ann", "Washington, D.C."], ["bob", "Oslo"]]


def test_many_quotes_in_a_line_do_no_harm(stage: Stage, file: Path) -> None:
    wild = '"a"' * 6_000 + "," + '"b,' * 6_000 + '"'
    file.write_text(f'ann,Oslo\nbob,{wild}\n"c ""d""",Rome\n')
    rows = read(stage, file, format="pairs", delimiter="comma")[1].select("kind", "fields").collect()
    assert len(rows) == 3
    assert {tuple(row.fields) for row in rows if row.kind == "data"} >= {("ann", "Oslo"), ('c "d"', "Rome")}


def test_ids_are_names_unless_integers_are_asked_for(stage: Stage, file: Path) -> None:
    file.write_text("-5 2\nabc 2\n3 2\n1.5 2\n")
    assert [user for user, _ in fields_of(stage, file)] == ["-5", "abc", "3", "1.5"]
    rows = sorted(read(stage, file, integer_ids=True)[1].select("row", "kind", "fields", "reason").collect())
    assert [row.kind for row in rows] == ["rejected", "rejected", "data", "rejected"]
    assert rows[0].reason == "follower -5 is not an integer of zero or more"


def test_a_line_of_ten_megabytes_is_rejected_and_the_rest_read(stage: Stage, file: Path) -> None:
    file.write_text("1 2\n" + "x" * 10_000_000 + "\n3 4\n")
    lines, parsed = read(stage, file)
    (row,) = rejected_rows(parsed, lines).collect()
    assert (row.line, row.reason, len(row.content)) == (2, "longer than 1,048,576 characters", 200)
    assert fields_of(stage, file) == [["1", "2"], ["3", "4"]]


def test_every_file_may_have_a_header_of_its_own(stage: Stage, tmp_path: Path) -> None:
    for name, text in (("a.csv", "user,item\n1,2\n"), ("b.csv", "User,Item\n3,4\n"), ("c.csv", "5,6\n")):
        (tmp_path / name).write_text(text)
    files = sorted(tmp_path.glob("*.csv"))
    assert fields_of(stage, *files, format="pairs") == [["1", "2"], ["3", "4"], ["5", "6"]]


@pytest.mark.parametrize(
    ("format", "text"), [("avt", "alice 1 0 10\n7 1 0 10\n"), ("pairs", "ann,Oslo\nbob,Rome\n")], ids=["avt", "pairs"]
)
def test_data_is_not_taken_for_a_header(stage: Stage, file: Path, format: str, text: str) -> None:
    file.write_text(text)
    assert len(fields_of(stage, file, format=format)) == 2


def test_names_may_start_with_a_comment_sign(stage: Stage, file: Path) -> None:
    file.write_text("# user,item\nann,Oslo\n#1fan,Rome\n#note\n% a,b\n")
    assert fields_of(stage, file, format="pairs") == [["ann", "Oslo"], ["#1fan", "Rome"]]
    assert fields_of(stage, file, format="pairs", comments="yes") == [["ann", "Oslo"]]


def test_columns_are_taken_from_where_they_are(stage: Stage, file: Path) -> None:
    file.write_text("5;x;ann;Oslo\n6;x;bob\n7;x;cid;Rome;more\n")
    rows = read(stage, file, format="pairs", columns="user=3,item=4")[1].select("row", "fields", "reason").collect()
    assert [tuple(row)[1:] for row in sorted(rows)] == [
        (["ann", "Oslo"], None),
        (["bob", ""], "has 3 columns, expected 4 or more (user, item)"),
        (["cid", "Rome"], None),
    ]


ODD_LINES = ("a,b", ' a , "b" ', '"a, x",b', '"a ""q""",b', "a,", ",", "a b,c", "a;b,c", 'say "hi",b', "a,b,c")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "::", SPACE])
def test_spark_splits_lines_as_their_layout_was_told(stage: Stage, file: Path, delimiter: str) -> None:
    """`layout.split` is the same rule in Python, for the first lines."""
    lines = [text.replace(",", " " if delimiter == SPACE else delimiter) for text in ODD_LINES]
    lines = [text for text in lines if text.strip() and ('"' not in text or len(delimiter) == 1)]
    file.write_text("\n".join(lines) + "\n")
    read_as = read_lines(stage.spark, [str(file)]).withColumn("all", _tokenise(F.col("text"), Layout(delimiter)))
    found = {row.text: row["all"] for row in read_as.select("text", "all").collect()}
    quoted = delimiter == "\t"  # where a field may hold quotes, but not the delimiter
    for text in lines:
        if not (quoted and '"' in text):
            assert found[text] == split(text, delimiter), text


def test_objects_are_read_by_their_keys(stage: Stage, file: Path) -> None:
    file.write_text('{"who": "ann", "of": {"x": 1}, "what it is": 7}\n{"who": "bob"}\nno object\n')
    rows = read(stage, file, format="pairs", columns="user=who,item=what it is", delimiter="json")[1]
    assert [tuple(row)[1:] for row in sorted(rows.select("row", "fields", "reason").collect())] == [
        (["ann", "7"], None),
        (["bob", ""], "item is empty"),
        (["", ""], "user is empty"),
    ]


MEANINGLESS = {  # by format: lines, and a part of the reason why they are rejected
    "edits": {"a\tb\t-1": "time -1 is not a time of zero or more seconds"},
    "avt": {
        "a 2 0 10": "has 2 times for 2 sessions",
        "a 1 10 5": "times do not grow",
        "a 1 x 5": "a time is not a number",
        "a 1 0 NaN": "a time is not a number",
        "a 1 0 Infinity": "a time is not a number",
        "a 2.0 0 10 20 30": "number of sessions is 2.0",
    },
    "updown": {"1,a,sideways": "state sideways is none of up, join, down, leave"},
    "machine-events": {"1,a,7": "event 7 is none of"},
    "latency-pairs": {"a\tb\tfast": "fast is not a latency", "c\td\tNaN": "NaN is not a latency"},
}


def test_a_line_that_means_nothing_is_rejected_with_the_reason(stage: Stage, tmp_path: Path) -> None:
    for format, lines in MEANINGLESS.items():
        (tmp_path / format).write_text("\n".join(lines) + "\n")
    parsed = reduce(
        DataFrame.union, (read(stage, tmp_path / format, format=format, header="no")[1] for format in MEANINGLESS)
    )
    reasons = {row.text: row.reason for row in parsed.filter("kind = 'rejected'").select("text", "reason").collect()}
    expected = {line: reason for lines in MEANINGLESS.values() for line, reason in lines.items()}
    assert reasons.keys() == expected.keys()
    for line, reason in expected.items():
        assert reason in reasons[line]
