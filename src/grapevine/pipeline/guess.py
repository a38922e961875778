"""Which format a raw file has, told from its first lines: for those who bring a trace and know no format's name.

Names of columns decide where they are words that only one format uses; otherwise what the columns hold does. A guess is
said together with its reason, so that whoever knows better names the format instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import is_url
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.inputs import check_inputs, files_below
from grapevine.pipeline.layout import JSON, Asked, by_name, detect_layout, is_data, split
from grapevine.pipeline.raw_files import PARQUET, look_at
from grapevine.pipeline.relate.base import DAY_S

_NAMED_FIRST = "follows", "friends", "edits", "pairs"  # by the words of a header, in this order
_ENOUGH_LINES = 20  # to say that a rule holds without exception
_SAME_NAMES = 0.5  # of the fewer names of two columns: more are in both where users stand in both


@dataclass(frozen=True, slots=True)
class Guess:
    """What `ingest` is to be told, and why."""

    format: str
    columns: str  # as its option takes it; empty: the format's own
    why: str


def guess_format(paths: Sequence[str]) -> Guess:
    """The format of local files, all of the same kind. UsageError where they are nowhere, or their lines tell nothing:
    it says which formats there are to choose from."""
    if any(map(is_url, paths)):
        raise UsageError(f"{paths[0]}: the format of files at URLs is not guessed; name it with --format")
    check_inputs(paths)
    files = [file for path in paths for file in files_below(Path(path).absolute())]
    if not files:
        raise UsageError(f"{', '.join(paths)}: holds no file; name the files of a trace")
    looked = [look_at(file, "auto") for file in files]
    if looked[0].packing == PARQUET:
        return _by_columns(pq.read_schema(looked[0].path).names, "its columns")
    return guess_from_lines([raw.head() for raw in looked])


def guess_from_lines(heads: Sequence[Sequence[str]]) -> Guess:
    """The format of files that begin with these lines."""
    pairs = FORMATS["pairs"]
    first = next((text for head in heads for text in head if text.strip()), "")
    if first.lstrip().startswith("{"):
        try:
            keys = [str(key) for key in json.loads(first)]
        except ValueError:
            keys = []
        return _by_columns(keys, "the keys of its first object")
    layout = detect_layout(heads, pairs, Asked())
    lines = [text for head in heads for text in head if is_data(text, layout, pairs)]
    rows = [split(text, layout.delimiter) for text in lines if text not in layout.headers]
    assert layout.delimiter != JSON
    if layout.headers and (named := _named(split(layout.headers[0], layout.delimiter))):
        return named
    if not rows or max(map(len, rows)) < 2:
        raise _unclear("its lines have no two columns")
    if len({len(row) for row in rows}) > 2:
        raise _unclear(f"its lines have {min(map(len, rows))} to {max(map(len, rows))} columns")
    return _by_content([row for row in rows if len(row) >= 2])


def _named(names: list[str]) -> Guess | None:
    """By the words of a header, if they are the columns of a format."""
    lower = [name.lower() for name in names]
    for format in _NAMED_FIRST:
        columns = FORMATS[format].columns
        own = columns[:2] if format == "edits" else columns
        if set(own) <= set(lower) and by_name(names, FORMATS[format]):
            return Guess(format, "", f"its columns are called {', '.join(names)}")
    if by_name(names, FORMATS["edits"]) and "seconds" not in lower[:2]:
        return Guess("edits", "", f"its columns are called {', '.join(names)}")
    return None


def _by_columns(names: list[str], what: str) -> Guess:
    """Of a file whose values have names."""
    for format in _NAMED_FIRST:
        if by_name(names, FORMATS[format]):
            return Guess(format, "", f"{what} are {', '.join(names)}")
    raise _unclear(f"{what} are {', '.join(names) or 'none'}")


def _by_content(rows: list[list[str]]) -> Guess:
    width = min(map(len, rows))
    times = [i for i in range(2, width) if _are_times([row[i] for row in rows])]
    if times:
        columns = "" if width == 3 else f"user=1,item=2,seconds={times[-1] + 1}"
        return Guess("edits", columns, f"column {times[-1] + 1} holds times")
    columns = "" if width == 2 else "user=1,item=2"
    left, right = ({row[i] for row in rows} for i in (0, 1))
    if width > 2 or len(left & right) < _SAME_NAMES * min(len(left), len(right)):
        return Guess("pairs", columns, "its first two columns hold different names")
    if len(rows) >= _ENOUGH_LINES and all(_is_less(row[0], row[1]) for row in rows):
        return Guess("friends", "", "both columns hold the same names, and every line has the smaller one first")
    return Guess("follows", "", "both columns hold the same names")


def _are_times(values: list[str]) -> bool:
    """Numbers that never go down, or of which half lie beyond a day, in seconds."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return False
    grows = all(a <= b for a, b in pairwise(numbers)) and numbers[0] < numbers[-1]
    return min(numbers) >= 0 and (grows or sorted(numbers)[len(numbers) // 2] > DAY_S)


def _is_less(a: str, b: str) -> bool:
    return int(a) < int(b) if a.isdigit() and b.isdigit() else a < b


def _unclear(why: str) -> UsageError:
    known = [name for name, format in FORMATS.items() if format.meaning.makes is tables.SUBSCRIPTIONS]
    return UsageError(f"the trace's format is not clear: {why}; name it with --format: {', '.join(known)}")
