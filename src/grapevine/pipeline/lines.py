"""Raw text to fields: tokenising, and the reason why a line cannot be read, with its number.

Spark splits large files and packs small ones, so a line does not know its number. Each line carries its file, the
start of its block and a running number; numbers are worked out only for what is rejected (or a matrix's rows).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from grapevine.pipeline.formats import Format
from grapevine.pipeline.layout import COMMENT_SIGNS, JSON, SPACE, Layout
from grapevine.pipeline.reasons import first_reason
from grapevine.pipeline.stage import plain_path

LONGEST_LINE = 1 << 20  # characters; no format has a use for more, and a stray binary file has no line ends
_NOT_TEXT = "not text (binary, or not UTF-8: give its encoding)"


def read_lines(
    spark: SparkSession, paths: Sequence[str], *, parquet: bool = False, originals: Mapping[str, str] | None = None
) -> DataFrame:
    """All lines of all files: text, file, block, row. The rows of Parquet files become JSON objects.

    `file` is what the user calls it; `originals` has that name of files that were copied to be read, by their copies.
    """
    reader = spark.read.option("recursiveFileLookup", "true")
    if parquet:
        table = reader.parquet(*paths)
        text = F.to_json(F.struct(*(F.col(f"`{name}`") for name in table.columns)))
    else:
        table, text = reader.text(list(paths)), F.col("value")
    return table.select(
        text.alias("text"),
        _called(F.col("_metadata.file_path"), originals or {}).alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
    )


def _called(path: Column, originals: Mapping[str, str]) -> Column:
    file = plain_path(path)
    if not originals:
        return file
    names = F.create_map(*(F.lit(text) for pair in originals.items() for text in pair))
    return F.coalesce(F.try_element_at(names, file), file)


def parse(lines: DataFrame, format: Format, layout: Layout, *, integer_ids: bool) -> DataFrame:
    """Add `kind` (data, blank, comment, header or rejected), the `fields` and the `reason` of a rejection.

    Fields are in the order of the format's columns, whatever the order in the line.
    """
    whole = _tokenise(F.col("text"), layout)
    shaped = lines.withColumn("shape", _shape(F.col("text"), whole, layout, format)).withColumn(
        "whole", F.when(F.col("shape") == "data", whole)
    )
    miscounted, wrong = _miscounted(F.col("whole"), layout, format)
    meaningless = F.when(~miscounted, _reason(F.col("fields"), format, integer_ids))
    reason = F.when(F.col("shape") == "data", first_reason(F.when(miscounted, wrong), meaningless)).when(
        F.col("shape").startswith("!"), F.substring("shape", 2, 1000)
    )
    picked = shaped.withColumn("fields", _pick(F.col("whole"), layout))
    kind = F.when(F.col("reason").isNotNull(), F.lit("rejected")).otherwise(F.col("shape"))
    return picked.withColumn("reason", reason).withColumn("kind", kind).drop("shape", "whole")


def _pick(whole: Column, layout: Layout) -> Column:
    """The fields that stand for the format's columns, out of all fields of a line."""
    if not layout.columns or layout.delimiter == JSON:
        return whole
    return F.when(whole.isNotNull(), F.array(*(F.coalesce(F.get(whole, int(at)), F.lit("")) for at in layout.columns)))


def _miscounted(whole: Column, layout: Layout, format: Format) -> tuple[Column, Column]:
    """Whether a line has not as many fields as it should, and the reason."""
    wanted, more = layout.width(format)
    count = F.size(whole)
    expected = f" expected {wanted}{' or more' if more else ''} ({', '.join(format.columns)})"
    reason = F.concat(F.lit("has "), count.cast("string"), F.lit(" columns,"), F.lit(expected))
    return (count < wanted) if more else (count != wanted), reason


def _shape(text: Column, whole: Column, layout: Layout, format: Format) -> Column:
    shape = (
        F.when(F.length(text) > LONGEST_LINE, F.lit(f"!longer than {LONGEST_LINE:,} characters"))
        .when(~F.is_valid_utf8(text) | text.contains("\x00"), F.lit(f"!{_NOT_TEXT}"))
        .when(text.rlike(r"^\s*$"), F.lit("blank"))
    )
    if layout.headers:
        shape = shape.when(text.isin(*layout.headers), F.lit("header"))
    if layout.comments != "no":
        comment = text.rlike(rf"^\s*[{COMMENT_SIGNS}]")
        if layout.comments == "auto" and format.named:  # as `layout.is_data` has it
            bare = text.rlike(rf"^\s*[{COMMENT_SIGNS}]([{COMMENT_SIGNS}\s]|$)")
            comment &= bare | _miscounted(whole, layout, format)[0]
        shape = shape.when(comment, F.lit("comment"))
    return shape.otherwise(F.lit("data"))


def _tokenise(text: Column, layout: Layout) -> Column:
    """All fields of a line; of a JSON object those that are wanted."""
    delimiter = layout.delimiter
    if delimiter == JSON:
        return F.array(*(F.coalesce(F.get_json_object(text, f"$['{key}']"), F.lit("")) for key in layout.columns))
    if delimiter == SPACE:
        return F.split(F.trim(F.regexp_replace(text, r"\s+", " ")), " ")
    parts = F.split(text, re.escape(delimiter))
    if delimiter == "\t" or len(delimiter) > 1:
        return F.transform(parts, _unquote)
    quoted = F.regexp_extract_all(F.concat(F.lit(delimiter), text), F.lit(_quoted_field(delimiter)), F.lit(0))
    unquoted = F.transform(quoted, lambda field: _unquote(F.substring(field, 2, LONGEST_LINE)))
    return F.when(text.contains('"'), unquoted).otherwise(F.transform(parts, lambda field: F.trim(field)))


def _quoted_field(delimiter: str) -> str:
    """A delimiter and the field after it, quoted or not. Possessive, so that no line makes the matcher recurse or go
    back."""
    sign = re.escape(delimiter)
    other = rf"[^{sign}]*+"
    return rf'{sign}\s*+(?:"(?:[^"]++|"")*+"{other}|{other})'


def _unquote(field: Column) -> Column:
    """A field without its surrounding quotes; doubled quotes inside stand for one."""
    field = F.trim(field)
    inner = F.regexp_replace(F.substring(field, 2, F.length(field) - 2), '""', '"')
    return F.when((F.length(field) >= 2) & field.startswith('"') & field.endswith('"'), inner).otherwise(field)


def _reason(fields: Column, format: Format, integer_ids: bool) -> Column:
    """Why fields of the right number mean nothing; null if they do."""
    reasons = []
    if format.lists:
        reasons.append(F.when(F.exists(fields, lambda name: name == ""), F.lit("a name is empty")))
        if integer_ids:
            wrong = F.exists(fields, lambda name: ~name.rlike(r"^\d+$"))
            reasons.append(F.when(wrong, F.lit("a name is not an integer of zero or more")))
        return first_reason(*reasons, format.check(fields))
    for position in format.named:
        what = format.columns[position]
        name = F.get(fields, position)
        reasons.append(F.when(name == "", F.lit(f"{what} is empty")))
        if integer_ids:
            wrong = F.concat(F.lit(f"{what} "), F.substring(name, 1, 40), F.lit(" is not an integer of zero or more"))
            reasons.append(F.when(~name.rlike(r"^\d+$"), wrong))
    return first_reason(*reasons, format.check(fields))


def with_line_numbers(selected: DataFrame, lines: DataFrame) -> DataFrame:
    """Add `line`, from 1, to rows selected from `lines`: rows before it in its block, plus the blocks before that."""
    blocks = lines.groupBy("file", "block").agg(F.count("*").alias("size"), F.min("row").alias("first"))
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    offsets = blocks.select("file", "block", "first", F.coalesce(F.sum("size").over(before), F.lit(0)).alias("offset"))
    joined = selected.join(F.broadcast(offsets), ["file", "block"])
    return joined.withColumn("line", F.col("row") - F.col("first") + F.col("offset") + 1).drop("first", "offset")


def rejected_rows(parsed: DataFrame, lines: DataFrame) -> DataFrame:
    """Rows of the `rejected` table: every line that could not be read, with its number and the reason."""
    rejected = with_line_numbers(parsed.filter("kind = 'rejected'"), lines)
    content = F.when(F.is_valid_utf8("text"), F.substring("text", 1, 200)).otherwise(F.lit(""))
    return rejected.select("file", "line", "reason", content.alias("content"))
