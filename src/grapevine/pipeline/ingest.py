"""Ingest: a raw trace becomes a workload. Self-loops and duplicates are counted and removed; what cannot be read goes
to `rejected` with its line and reason; an input with nothing readable is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, remove
from grapevine.model.manifest import Manifest
from grapevine.model.settings import none_of
from grapevine.pipeline.formats import FORMATS, Format
from grapevine.pipeline.inputs import check_inputs, open_inputs
from grapevine.pipeline.layout import JSON, NAMED_DELIMITERS, Asked, detect_layout, preview
from grapevine.pipeline.lines import parse, read_lines, rejected_rows, with_line_numbers
from grapevine.pipeline.raw_files import PARQUET
from grapevine.pipeline.relate.base import IngestRun
from grapevine.pipeline.stage import Stage
from grapevine.version import __version__

_SHOWN = 3  # lines of an input that is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig(Config):
    """How to read the input; what is not said is found out from its first lines."""

    delimiter: str = parameter(
        "auto",
        f"what separates columns: any text, or one of {', '.join(NAMED_DELIMITERS)}",
        source="ours",
    )
    header: str = parameter("auto", "whether the first line is a header", source="ours", choices=("auto", "yes", "no"))
    comments: str = parameter(
        "auto",
        "whether lines that start with # or % are comments; auto: unless a name follows at once and the columns are "
        "as many as in other lines",
        source="ours: SNAP, KONECT",
        choices=("auto", "yes", "no"),
    )
    columns: str = parameter(
        "", "where the columns are, by position from 1 on or by header, e.g. user=2,item=5", source="ours"
    )
    encoding: str = parameter("auto", "how text is encoded, e.g. utf-16 or latin-1", source="ours")
    most_rejected: float = parameter(
        0.1, "the largest share of lines that may be unreadable", source="ours", low=0, high=1
    )
    ids: str = parameter(
        "any",
        "any: ids are names; integer: reject ids that are not integers ≥ 0",
        source="ours",
        choices=("any", "integer"),
    )


def ingest(
    stage: Stage,
    format_name: str,
    paths: Sequence[str],
    out: Location,
    config: IngestConfig | None = None,
    *,
    force: bool = False,
) -> Manifest:
    """Read the files into a new workload folder and say what was found."""
    config = config or IngestConfig()
    if format_name not in FORMATS:
        raise UsageError(none_of(format_name, FORMATS, "format "))
    check_inputs(paths)
    format = FORMATS[format_name]
    if config.ids == "integer" and not format.named:
        raise UsageError(f"ids=integer: {format_name} has no ids; leave it out")
    asked = Asked(config.delimiter, config.header, config.comments, config.columns)
    with stage.expecting(*paths), new_folder(out, kind="workload", force=force) as folder:
        run = IngestRun(stage, folder, format.name)
        with stage.step("looking at the input"):
            inputs = open_inputs(stage, paths, config.encoding, run.scratch)
            lines = read_lines(stage.spark, inputs.paths, parquet=inputs.parquet, originals=inputs.originals)
            if inputs.parquet:
                asked = replace(asked, delimiter=JSON)
                inputs.heads = [[row.text for row in lines.select("text").limit(1).collect()]]
            layout = detect_layout(inputs.heads, format, asked)
        stage.tell(preview(inputs.heads, layout, format))
        parsed = parse(lines, format, layout, integer_ids=config.ids == "integer")
        rows = _store_rows(run, parsed, lines, format, config.most_rejected)
        format.meaning.write(run, rows)
        remove(run.scratch)
        run.counts["delimiter"] = PARQUET if inputs.parquet else layout.delimiter_name
        if inputs.packings - {PARQUET}:
            run.counts["unpacked"] = ", ".join(sorted(inputs.packings))
        if layout.headers:
            run.counts["header"] = " | ".join(layout.headers)
        manifest = Manifest(
            kind="workload",
            stage="ingest",
            version=__version__,
            config={"format": format_name} | config.as_dict(),
            inputs=list(paths),
            tables=run.written,
            counts=run.counts,
        )
        manifest.write(folder)
    return manifest


def _store_rows(run: IngestRun, parsed: DataFrame, lines: DataFrame, format: Format, most_rejected: float) -> DataFrame:
    """Store the readable rows for the steps after this, and the rejected ones for good.

    UsageError if no row is readable, if too many are not, or one where none may be missing.
    """
    meaning = format.meaning
    columns = ["file", "line", "fields"] if meaning.needs_lines else ["fields"]
    parsed = with_line_numbers(parsed, lines) if meaning.needs_lines else parsed
    seen = Observation()
    kinds = [
        F.count_if(F.col("kind") == kind).alias(kind) for kind in ("data", "rejected", "comment", "blank", "header")
    ]
    readable = parsed.observe(seen, *kinds).filter("kind = 'data'").select(*columns)
    rows = run.stage.keep(readable, run.scratch / "rows", "reading lines")
    found = seen.get
    run.counts |= {"lines": sum(found.values()), "rejected": found["rejected"], "comments": found["comment"]}
    if found["rejected"]:
        run.write(rejected_rows(parsed, lines), tables.REJECTED)
    allowed = 0 if meaning.needs_all else most_rejected * (found["data"] + found["rejected"])
    if not found["data"] or found["rejected"] > allowed:
        raise UsageError(f"not readable as {run.format}: {_why(run, found, most_rejected)}")
    run.counts["rows"] = found["data"]
    return rows


def _why(run: IngestRun, found: dict[str, int], most_rejected: float) -> str:
    """What is wrong with the input, with three lines that show it, and what to do."""
    if not found["rejected"]:
        return "the input has no data lines"
    first = run.stage.read(run.folder, tables.REJECTED).orderBy("file", "line").limit(_SHOWN).collect()
    shown = "; ".join(f"line {row.line} {row.reason}{_quote(row.content)}" for row in first)
    total = found["data"] + found["rejected"]
    said = f"{found['rejected']:,} of {total:,} lines were rejected, e.g. {shown}"
    if found["data"] and not FORMATS[run.format].meaning.needs_all:
        return f"{said}; say how to read them, or allow more than {most_rejected:.0%} with most_rejected"
    return said


def _quote(content: str) -> str:
    return f" ({content[:40]!r})" if content else ""
