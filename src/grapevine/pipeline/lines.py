"""Raw text to fields: layout detection, tokenising, and the reason why a line cannot be read, with its number.

Spark splits large files and packs small ones, so a line does not know its number. Each line carries its file, the
start of its block and a running number; numbers are worked out only for what is rejected (or a matrix's rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from grapevine.model.errors import UsageError
from grapevine.pipeline.formats import Format, first_reason

LONGEST_LINE = 1 << 20  # characters; no format has a use for more, and a stray binary file has no line ends
_HEAD_LINES = 20  # what the layout is told from
DELIMITERS = {"tab": r"\t", "comma": ",", "space": r"\s+"}
_QUOTED_COMMA = r',(?=(?:[^"]*"[^"]*")*[^"]*$)'  # a comma that an even number of quotes follows
_HEADER_WORDS = frozenset(
    """follower followee followed following source target src dst from to u v user user_id userid users friend item
    item_id page page_id topic feed node node_id id name time t seconds t_seconds timestamp state event""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the fields of a line are told apart, and the line that is a header."""

    delimiter: str
    header: str | None


def local_inputs(paths: Sequence[str]) -> list[str]:
    """The inputs as Spark wants them; a local path that does not exist is the caller's mistake."""
    missing = [path for path in paths if "://" not in path and not Path(path).exists()]
    if missing:
        raise UsageError(f"{', '.join(missing)}: no such file or folder")
    return [path if "://" in path else str(Path(path).absolute()) for path in paths]


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """All lines of all files: text, file, block, row."""
    text = spark.read.option("recursiveFileLookup", "true").text(list(paths))
    return text.select(
        F.col("value").alias("text"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
    )


def detect_layout(lines: DataFrame, format: Format, delimiter: str | None, header: str) -> Layout:
    """Delimiter and header from the first lines of the first file, where the caller does not say."""
    file = min(lines.inputFiles(), default=None)
    head: list[str] = []
    if file is not None:
        one = lines.sparkSession.read.text(file).select(F.substring("value", 1, LONGEST_LINE).alias("text"))
        head = [row.text for row in one.filter(_is_data(F.col("text"))).limit(_HEAD_LINES).collect()]
    found = delimiter or format.delimiter or _guess_delimiter(head)
    if header == "no" or not head:
        return Layout(found, None)
    fields = [_split_text(line, found) for line in head]
    is_header = header == "yes" or _looks_like_header(fields, format)
    return Layout(found, head[0] if is_header else None)


def _is_data(text: Column) -> Column:
    return ~text.rlike(r"^\s*([#%]|$)")


def _guess_delimiter(head: list[str]) -> str:
    """Tabs may stand between names that hold commas and spaces, and commas between names that hold spaces."""
    text = "\n".join(head)
    return "tab" if "\t" in text else "comma" if "," in text else "space"


def _split_text(line: str, delimiter: str) -> list[str]:
    parts = line.split() if delimiter == "space" else line.split("\t" if delimiter == "tab" else ",")
    return [part.strip().strip('"') for part in parts]


def _looks_like_header(lines: list[list[str]], format: Format) -> bool:
    first = lines[0]
    if format.numeric:
        return any(i < len(first) and not _is_number(first[i]) for i in format.numeric)
    if not format.named:
        return not any(_is_number(field) for field in first)
    if len(first) < len(format.columns):
        return False
    names = [first[i] for i in format.named]
    if all(name.lower() in _HEADER_WORDS for name in names):
        return True
    words = not any(_is_number(name) for name in names)
    return words and len(lines) > 1 and all(_is_number(field) for field in lines[1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse(lines: DataFrame, format: Format, layout: Layout, *, integer_ids: bool) -> DataFrame:
    """Add `kind` (data, blank, comment, header or rejected), the `fields` and the `reason` of a rejection."""
    fields = _tokenise(F.col("text"), layout.delimiter)
    shaped = lines.withColumn("shape", _shape(F.col("text"), layout)).withColumn(
        "fields", F.when(F.col("shape") == "data", fields)
    )
    reason = F.when(F.col("shape") == "data", _reason(F.col("fields"), format, integer_ids)).when(
        F.col("shape").startswith("!"), F.substring("shape", 2, 1000)
    )
    kind = F.when(F.col("reason").isNotNull(), F.lit("rejected")).otherwise(F.col("shape"))
    return shaped.withColumn("reason", reason).withColumn("kind", kind).drop("shape")


def _shape(text: Column, layout: Layout) -> Column:
    shape = (
        F.when(F.length(text) > LONGEST_LINE, F.lit(f"!longer than {LONGEST_LINE:,} characters"))
        .when(~F.is_valid_utf8(text) | text.contains("\x00"), F.lit("!not text (binary, or not UTF-8)"))
        .when(text.rlike(r"^\s*$"), F.lit("blank"))
        .when(text.rlike(r"^\s*[#%]"), F.lit("comment"))
    )
    if layout.header is not None:
        shape = shape.when(text == F.lit(layout.header), F.lit("header"))
    return shape.otherwise(F.lit("data"))


def _tokenise(text: Column, delimiter: str) -> Column:
    if delimiter == "space":
        return F.split(F.trim(F.regexp_replace(text, r"\s+", " ")), " ")
    plain = F.split(text, DELIMITERS[delimiter])
    if delimiter == "comma":
        plain = F.when(text.contains('"'), F.split(text, _QUOTED_COMMA)).otherwise(plain)
    return F.transform(plain, lambda field: F.regexp_replace(F.trim(field), r'^"(.*)"$', "$1"))


def _reason(fields: Column, format: Format, integer_ids: bool) -> Column:
    wanted = len(format.columns)
    count = F.size(fields)
    miscounted = (count < wanted) if format.more_columns else (count != wanted)
    expected = f" expected {wanted}{' or more' if format.more_columns else ''} ({', '.join(format.columns)})"
    reasons = [F.when(miscounted, F.concat(F.lit("has "), count.cast("string"), F.lit(" columns,"), F.lit(expected)))]
    for position in format.named:
        what = format.columns[position]
        name = F.get(fields, position)
        reasons.append(F.when(name == "", F.lit(f"{what} is empty")))
        if integer_ids:
            wrong = F.concat(F.lit(f"{what} "), F.substring(name, 1, 40), F.lit(" is not an integer of zero or more"))
            reasons.append(F.when(~name.rlike(r"^\d+$"), wrong))
    judged = F.when(~miscounted, format.check(fields))
    return first_reason(*reasons, judged)


def with_line_numbers(selected: DataFrame, lines: DataFrame) -> DataFrame:
    """Add `line`, from 1, to rows selected from `lines`: rows before it in its block, plus the blocks before that."""
    blocks = lines.groupBy("file", "block").agg(F.count("*").alias("size"), F.min("row").alias("first"))
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    offsets = blocks.select("file", "block", "first", F.coalesce(F.sum("size").over(before), F.lit(0)).alias("offset"))
    joined = selected.join(F.broadcast(offsets), ["file", "block"])
    return joined.withColumn("line", F.col("row") - F.col("first") + F.col("offset") + 1).drop("first", "offset")


def rejected_rows(parsed: DataFrame, lines: DataFrame) -> DataFrame:
    """The `rejected` table."""
    rejected = with_line_numbers(parsed.filter("kind = 'rejected'"), lines)
    content = F.when(F.is_valid_utf8("text"), F.substring("text", 1, 200)).otherwise(F.lit(""))
    return rejected.select("file", "line", "reason", content.alias("content"))
