"""Raw text to fields: tokenising, and the reason why a line cannot be read, with its number.

Spark splits large files and packs small ones, so a line does not know its number. Each line carries its file, the
start of its block and a running number; numbers are worked out only for what is rejected (or a matrix's rows).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from grapevine.pipeline.formats import Format
from grapevine.pipeline.layout import COMMENT_SIGNS, Layout
from grapevine.pipeline.reasons import first_reason
from grapevine.pipeline.stage import plain_path

LONGEST_LINE = 1 << 20  # characters; no format has a use for more, and a stray binary file has no line ends
# A comma and the field after it, quoted or not. Possessive, so that no line makes the matcher recurse or go back.
_CSV_FIELD = r',\s*+(?:"(?:[^"]++|"")*+"[^,]*+|[^,]*+)'


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """All lines of all files: text, file, block, row."""
    text = spark.read.option("recursiveFileLookup", "true").text(list(paths))
    return text.select(
        F.col("value").alias("text"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
    )


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
    )
    if layout.comments:
        shape = shape.when(text.rlike(rf"^\s*[{COMMENT_SIGNS}]"), F.lit("comment"))
    if layout.headers:
        shape = shape.when(text.isin(*layout.headers), F.lit("header"))
    return shape.otherwise(F.lit("data"))


def _tokenise(text: Column, delimiter: str) -> Column:
    if delimiter == "space":
        return F.split(F.trim(F.regexp_replace(text, r"\s+", " ")), " ")
    if delimiter == "tab":
        return F.transform(F.split(text, "\t"), _unquote)
    quoted = F.regexp_extract_all(F.concat(F.lit(","), text), F.lit(_CSV_FIELD), F.lit(0))
    unquoted = F.transform(quoted, lambda field: _unquote(F.substring(field, 2, LONGEST_LINE)))
    return F.when(text.contains('"'), unquoted).otherwise(F.transform(F.split(text, ","), lambda field: F.trim(field)))


def _unquote(field: Column) -> Column:
    """A field without its surrounding quotes; doubled quotes inside stand for one."""
    field = F.trim(field)
    inner = F.regexp_replace(F.substring(field, 2, F.length(field) - 2), '""', '"')
    return F.when((F.length(field) >= 2) & field.startswith('"') & field.endswith('"'), inner).otherwise(field)


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
    """Rows of the `rejected` table: every line that could not be read, with its number and the reason."""
    rejected = with_line_numbers(parsed.filter("kind = 'rejected'"), lines)
    content = F.when(F.is_valid_utf8("text"), F.substring("text", 1, 200)).otherwise(F.lit(""))
    return rejected.select(plain_path(F.col("file")).alias("file"), "line", "reason", content.alias("content"))
