"""How a raw input is laid out: which files there are, what separates their columns, which lines are headers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession

from grapevine.model.errors import UsageError
from grapevine.model.location import is_url
from grapevine.pipeline.formats import Format
from grapevine.pipeline.stage import spark_path

COMMENT_SIGNS = "#%"  # SNAP and KONECT
_HEAD_LINES, _HEAD_BYTES = 20, 1 << 16  # what the layout is told from
_HEADER_WORDS = frozenset(
    """follower followee followed following source target src dst from to u v user user_id userid users friend item
    item_id page page_id topic feed node node_id id name time t seconds t_seconds timestamp state event""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the fields of a line are told apart, and which lines are headers or comments."""

    delimiter: str
    headers: tuple[str, ...] = ()  # files of one input may spell theirs differently
    comments: bool = True


def find_inputs(paths: Sequence[str]) -> list[str]:
    """The inputs as Spark wants them; a local path that Spark could not read is the caller's mistake."""
    local = [Path(path) for path in paths if not is_url(path)]
    missing = [str(path) for path in local if not path.exists()]
    if missing:
        raise UsageError(f"{', '.join(missing)}: no such file or folder")
    for path in local:
        if path.absolute().name.startswith(("_", ".")) or ":" in path.name:
            raise UsageError(f"{path}: Spark does not read names that start with _ or . or hold a colon; rename it")
    return [path if is_url(path) else spark_path(Path(path).absolute()) for path in paths]


def detect_layout(lines: DataFrame, format: Format, *, delimiter: str, header: str, comments: bool) -> Layout:
    """Delimiter and headers from the first lines of each file, where the caller does not say."""
    heads = [head for file in sorted(lines.inputFiles()) if (head := _head(lines.sparkSession, file, comments))]
    found = delimiter if delimiter != "auto" else format.delimiter or _guess_delimiter(heads)
    if header == "no":
        return Layout(found, (), comments)
    headers = {
        head[0]: None
        for head in heads
        if header == "yes" or _looks_like_header([_split(line, found) for line in head], format)
    }
    return Layout(found, tuple(headers), comments)


def _head(spark: SparkSession, file: str, comments: bool) -> list[str]:
    """The first data lines of a file; read directly where it is local, because a job for each file takes longer."""
    parsed = urlparse(file)
    path = Path(unquote(parsed.path))
    if parsed.scheme not in ("", "file") or path.suffix not in ("", ".txt", ".tsv", ".csv", ".avt", ".gz"):
        first = spark.read.text(spark_path(unquote(file))).limit(_HEAD_LINES * 10).collect()
        texts = [row.value for row in first]
    else:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                whole = stream.read(_HEAD_BYTES).decode(errors="replace").splitlines()
        except (OSError, EOFError, zlib.error):
            return []  # Spark will say what is wrong with it
        texts = whole[:-1] or whole  # the last line may be cut
    return list(islice((text for text in texts if is_data(text, comments)), _HEAD_LINES))


def is_data(text: str, comments: bool) -> bool:
    """Neither blank nor a comment."""
    stripped = text.strip()
    return bool(stripped) and not (comments and stripped[0] in COMMENT_SIGNS)


def _guess_delimiter(heads: list[list[str]]) -> str:
    """Tabs may stand between names that hold commas and spaces, and commas between names that hold spaces."""
    text = "\n".join(line for head in heads for line in head)
    return "tab" if "\t" in text else "comma" if "," in text else "space"


def _split(line: str, delimiter: str) -> list[str]:
    parts = line.split() if delimiter == "space" else line.split("\t" if delimiter == "tab" else ",")
    return [part.strip().strip('"') for part in parts]


def _looks_like_header(lines: list[list[str]], format: Format) -> bool:
    """Words where numbers belong, or known words for names, or words over numbers. A matrix has no header."""
    first = lines[0]
    if not format.named or len(first) < len(format.columns) or any(_is_number(first[i]) for i in format.named):
        return False
    if format.numeric:
        return not any(_is_number(first[i]) for i in format.numeric)
    if all(first[i].lower() in _HEADER_WORDS for i in format.named):
        return True
    return len(lines) > 1 and all(_is_number(field) for field in lines[1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
