"""What an input looks like, told from its first lines."""

from __future__ import annotations

import gzip
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import DataFrame

from grapevine.model.errors import UsageError
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.layout import Layout, detect_layout, find_inputs, is_data


def lines_of(*files: Path) -> DataFrame:
    """Stands for a frame of lines; only the names of its files are asked for, since local heads are read directly."""
    frame = Mock(spec=DataFrame)
    frame.inputFiles.return_value = [file.as_uri() for file in files]
    return frame


def detect(*files: Path, format: str = "follows", **asked: str) -> Layout:
    options = {"delimiter": "auto", "header": "auto"} | asked
    return detect_layout(lines_of(*files), FORMATS[format], comments=True, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b, c\td\n1\t2\n", Layout("tab")),
        ("a b,c d\n", Layout("comma")),
        ("a  b\n", Layout("space")),
        ("# from,to\nann bob\n", Layout("space")),
        ("From\tTo\nann\tbob\n", Layout("tab", ("From\tTo",))),
        ("x y\n1 2\n3 4\n", Layout("space", ("x y",))),
        ("1 2\n3 4\n", Layout("space")),
        ("", Layout("space")),
    ],
)
def test_delimiter_and_header_are_told_from_the_first_lines(tmp_path: Path, text: str, expected: Layout) -> None:
    (tmp_path / "raw.txt").write_text(text)
    assert detect(tmp_path / "raw.txt") == expected


def test_a_header_is_what_has_words_where_numbers_belong(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text("who,what,when\nann,Oslo,5\n")
    assert detect(tmp_path / "raw.csv", format="edits").headers == ("who,what,when",)
    assert detect(tmp_path / "raw.csv", format="edits", header="no").headers == ()
    (tmp_path / "raw.csv").write_text("ann,Oslo,5\nbob,Rome,6\n")
    assert detect(tmp_path / "raw.csv", format="edits").headers == ()
    assert detect(tmp_path / "raw.csv", format="edits", header="yes").headers == ("ann,Oslo,5",)


def test_every_file_is_looked_at_and_a_damaged_one_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"user item\n1 2\n"))
    (tmp_path / "b.txt").write_text("User Item\n1 2\n")
    (tmp_path / "c.txt.gz").write_bytes(b"not gzip")
    found = detect(*(tmp_path / name for name in ("a.txt.gz", "b.txt", "c.txt.gz")), format="pairs")
    assert found == Layout("space", ("user item", "User Item"))


def test_blank_lines_and_comments_are_no_data() -> None:
    assert [is_data(text, True) for text in ("  ", "# x", " % x", "x #")] == [False, False, False, True]
    assert is_data("#1fan", False)


def test_inputs_are_given_to_spark_as_they_are_and_never_as_patterns(tmp_path: Path) -> None:
    (tmp_path / "x[1].txt").write_text("1 2\n")
    assert find_inputs([str(tmp_path / "x[1].txt"), "s3://bucket/*"]) == [rf"{tmp_path}/x\[1\].txt", "s3://bucket/*"]
    with pytest.raises(UsageError, match="a, b: no such file or folder"):
        find_inputs(["a", "b", str(tmp_path)])
