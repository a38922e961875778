"""How raw lines are laid out: what separates columns, which of them are wanted, which lines are headers or comments.

Whatever the user does not say is told from the first lines of each file, and said before the work begins (`preview`):
nobody has to find out afterwards that a header became a user.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from grapevine.model.errors import UsageError
from grapevine.model.settings import unknown_names
from grapevine.pipeline.formats import Format

COMMENT_SIGNS = "#%"  # SNAP and KONECT
SPACE, JSON = "space", "json"  # any white space; a JSON object a line
NAMED_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", SPACE: SPACE, JSON: JSON}
_GUESSES = "\t", ",", ";", "|", "::", SPACE  # names may hold what comes later, rather than what comes first
_HEAD_LINES = 20  # what the layout is told from
_SYNONYMS = {  # by the name of a format's column: what others call it
    "user": "user user_id userid uid users member subscriber person account name node node_id source src from u who",
    "item": "item item_id itemid iid page page_id topic feed channel group community target dst to v what",
    "follower": "follower follower_id source src from u user user_id",
    "followee": "followee followee_id followed following target dst to v friend",
    "friend": "friend friend_id target dst to v other",
    "seconds": "seconds t_seconds time t timestamp ts at when",
    "node": "node node_id id name machine host user",
    "state": "state event",
    "from": "from source src",
    "to": "to target dst",
    "milliseconds": "milliseconds ms rtt latency",
}
_HEADER_WORDS = frozenset(word for words in _SYNONYMS.values() for word in words.split()) | {"id"}
_SPEC = re.compile(r"\s*([^=,\s]+)\s*=\s*([^,]+?)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the fields of a line are told apart, and which lines are headers or comments."""

    delimiter: str  # between columns; SPACE or JSON
    columns: tuple[int | str, ...] = ()  # where the format's columns are, by position or key; (): the leading ones
    headers: tuple[str, ...] = ()  # files of one input may spell theirs differently
    comments: str = "auto"  # lines that begin with a comment sign are none (no), comments (yes), or comments unless
    # they have a name behind the sign and as many columns as others (auto)

    @property
    def delimiter_name(self) -> str:
        """What users call the delimiter: one of NAMED_DELIMITERS, or the text itself."""
        return next((name for name, text in NAMED_DELIMITERS.items() if text == self.delimiter), self.delimiter)

    def width(self, format: Format) -> tuple[int, bool]:
        """How many columns a line has, and whether it may have more."""
        if self.columns:
            return (0 if self.delimiter == JSON else 1 + max(int(at) for at in self.columns)), True
        return len(format.columns), format.more_columns


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says of a layout; what is `auto` or empty is found out."""

    delimiter: str = "auto"  # a name of NAMED_DELIMITERS, or the text itself
    header: str = "auto"  # yes, no
    comments: str = "auto"  # yes, no
    columns: str = ""  # name=position or name=header, with commas between


def detect_layout(heads: Sequence[Sequence[str]], format: Format, asked: Asked) -> Layout:
    """The layout of files that begin with these lines. UsageError if the columns that were asked for are not there."""
    delimiter = _delimiter(heads, format, asked)
    plain = Layout(delimiter, (), (), asked.comments)
    data = [
        lines for head in heads if (lines := list(islice((t for t in head if is_data(t, plain, format)), _HEAD_LINES)))
    ]
    if delimiter == JSON:
        if not format.columns or format.lists:
            raise UsageError(f"{format.name}: is read from text alone, not from JSON or Parquet")
        return Layout(JSON, _keys(data, format, asked.columns), (), "no")
    rows = [[split(line, delimiter) for line in lines] for lines in data]
    headers = {
        lines[0]: found[0]
        for lines, found in zip(data, rows, strict=True)
        if asked.header == "yes" or (asked.header == "auto" and _is_header(found, format, asked.columns))
    }
    columns = _positions(list(headers.values()), format, asked.columns)
    return Layout(delimiter, columns, tuple(headers), asked.comments)


def preview(heads: Sequence[Sequence[str]], layout: Layout, format: Format) -> str:
    """One line for users: how the first row is read."""
    lines = (text for head in heads for text in head if is_data(text, layout, format) and text not in layout.headers)
    first = next(lines, None)
    shape = [layout.delimiter_name]
    if first is None:
        return f"no data in the first lines; {shape[0]}"
    fields = split(first, layout.delimiter)
    if layout.delimiter != JSON:
        shape.append(f"{len(fields)} column{'s' * (len(fields) != 1)}")
        shape.append(f"header {layout.headers[0].strip()!r}" if layout.headers else "no header")
    taken = pick(first, layout) if layout.columns else fields
    shown = ", ".join(f"{name}={_short(value)}" for name, value in zip(format.columns, taken, strict=False))
    return f"first row read as {shown or _short(first)}; {'; '.join(shape)}"


def pick(line: str, layout: Layout) -> list[str]:
    """The fields of a line that stand for the format's columns, as far as it has them."""
    if layout.delimiter == JSON:
        found = json.loads(line)
        return [str(found.get(key, "")) for key in layout.columns]
    fields = split(line, layout.delimiter)
    return [fields[int(at)] if int(at) < len(fields) else "" for at in layout.columns]


def is_data(text: str, layout: Layout, format: Format) -> bool:
    """Neither blank nor a comment."""
    stripped = text.strip()
    if not stripped or layout.comments == "no" or stripped[0] not in COMMENT_SIGNS:
        return bool(stripped)
    if layout.comments == "yes" or not format.named or not stripped[1:2].strip(COMMENT_SIGNS + " \t"):
        return False
    wanted, more = layout.width(format)
    count = len(split(text, layout.delimiter))
    return count == wanted or (more and count > wanted)


def split(line: str, delimiter: str) -> list[str]:
    """The fields of a line, without quotes and the space around them."""
    if delimiter == JSON:
        return [line]
    if delimiter == SPACE:
        return line.split()
    if len(delimiter) == 1 and delimiter != "\t" and '"' in line:
        with suppress(csv.Error):  # a field of more than 128 kB
            return [part.strip() for part in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    return [part.strip().removeprefix('"').removesuffix('"') for part in line.split(delimiter)]


def _delimiter(heads: Sequence[Sequence[str]], format: Format, asked: Asked) -> str:
    if asked.delimiter != "auto":
        if not asked.delimiter:
            raise UsageError("delimiter '': is empty; give a text, or one of auto, " + ", ".join(NAMED_DELIMITERS))
        return NAMED_DELIMITERS.get(asked.delimiter, asked.delimiter.replace("\\t", "\t"))
    if format.delimiter:
        return NAMED_DELIMITERS[format.delimiter]
    lines = [text for head in heads for text in head if text.strip()]
    plain = [text for text in lines if text.lstrip()[0] not in COMMENT_SIGNS][:_HEAD_LINES] or lines[:_HEAD_LINES]
    if plain and format.named and all(_is_object(text) for text in plain[:3]):
        return JSON
    wanted = max(2, len(format.columns))

    def agreement(delimiter: str) -> float:
        counts = Counter(len(split(text, delimiter)) for text in plain)
        usual, lines_so = max(counts.items(), key=lambda item: item[1]) if counts else (0, 0)
        return lines_so / len(plain) if usual >= wanted else 0.0

    best = max(_GUESSES, key=agreement)  # of equals, the first
    return best if plain and agreement(best) > 0 else SPACE


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _is_header(rows: list[list[str]], format: Format, columns: str) -> bool:
    """Words where numbers belong, or known words for all columns, or words over columns of numbers. Matrices and lists
    have no header; and one that is asked for by name is one."""
    first, others = rows[0], rows[1:]
    names = {text.lower() for text in first}
    if any(not value.isdigit() and value.lower() in names for _, value in _SPEC.findall(columns)):
        return True
    if (
        not format.named
        or format.lists
        or len(first) < len(format.columns)
        or any(_is_number(text) for text in first if text)
    ):
        return False
    if columns:
        return len(others) > 1 and any(all(map(_is_number, column)) for column in zip(*others, strict=False))
    if format.numeric:
        return True
    if all(first[i].lower() in _HEADER_WORDS for i in format.named) or by_name(first, format):
        return True
    return len(others) > 1 and all(_is_number(row[i]) for row in others for i in format.named if i < len(row))


def by_name(header: list[str], format: Format) -> tuple[int, ...]:
    """Where the format's columns are by the names in a header; () unless every one is there, and once."""
    names = [text.lower() for text in header]
    found: list[int] = []
    for column in format.columns:
        exact = [i for i, name in enumerate(names) if name == column]
        places = exact or [i for i, name in enumerate(names) if name in _SYNONYMS.get(column, "").split()]
        if len(places) != 1 or places[0] in found:
            return ()
        found.append(places[0])
    return tuple(found)


def _wanted(format: Format, columns: str) -> dict[str, str]:
    """The format's columns by name, as the user says where they are; {} if nothing is said."""
    if not columns.strip():
        return {}
    if not format.columns or format.lists or format.delimiter:
        raise UsageError(f"columns {columns!r}: {format.name} says itself where its columns are; leave it out")
    given = dict(_SPEC.findall(columns))
    if not given or _SPEC.sub("", columns).strip():
        raise UsageError(f"columns {columns!r}: needs the form NAME=POSITION,…, e.g. {_example(format)}")
    known: dict[str, str] = {}
    for name, place in given.items():
        column = name if name in format.columns else _column_called(name, format)
        if column is None:
            raise UsageError(unknown_names(format.name, [name], format.columns, noun="column")[0])
        known[column] = place
    if missing := [column for column in format.columns if column not in known]:
        raise UsageError(f"columns {columns!r}: {', '.join(missing)} is missing; e.g. {_example(format)}")
    return known


def _column_called(name: str, format: Format) -> str | None:
    called = [column for column in format.columns if name.lower() in _SYNONYMS.get(column, "").split()]
    return called[0] if len(called) == 1 else None


def _example(format: Format) -> str:
    return ",".join(f"{column}={i + 1}" for i, column in enumerate(format.columns))


def _positions(headers: list[list[str]], format: Format, columns: str) -> tuple[int, ...]:
    """Where the columns are: as the user says, or by the headers; () for the leading ones."""
    wanted = _wanted(format, columns)
    if wanted and all(place.isdigit() for place in wanted.values()):
        places = tuple(int(wanted[column]) - 1 for column in format.columns)
        if min(places) < 0:
            raise UsageError(f"columns {columns!r}: positions begin with 1")
        return places
    if wanted and not headers:
        raise UsageError(f"columns {columns!r}: the input has no header with such names; give positions from 1 on")
    named = {_named_places(header, format, wanted) if wanted else by_name(header, format) for header in headers}
    if len(named) > 1:
        raise UsageError("the files have their columns in different orders; ingest them apart, or give --columns")
    if not named or format.lists:
        return ()
    places, leading = named.pop(), tuple(range(len(headers[0])))
    return () if places == leading == tuple(range(len(format.columns))) else places


def _named_places(header: list[str], format: Format, wanted: dict[str, str]) -> tuple[int, ...]:
    names = [text.lower() for text in header]
    places = []
    for column in format.columns:
        place = wanted[column]
        if place.lower() not in names and not place.isdigit():
            raise UsageError(unknown_names("the header", [place], header, noun="column")[0])
        places.append(names.index(place.lower()) if place.lower() in names else int(place) - 1)
    return tuple(places)


def _keys(data: list[list[str]], format: Format, columns: str) -> tuple[str, ...]:
    """The keys of JSON objects that stand for the format's columns."""
    if wanted := _wanted(format, columns):
        return tuple(wanted[column] for column in format.columns)
    first = json.loads(data[0][0]) if data else {}
    names = [str(key) for key in first]
    places = by_name(names, format)
    if not places:
        raise UsageError(
            f"the first object has {', '.join(names) or 'no keys'}: say which are {', '.join(format.columns)}, "
            f"e.g. --columns {','.join(f'{column}=KEY' for column in format.columns)}"
        )
    return tuple(names[place] for place in places)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
