"""Ingest: a raw trace becomes a workload. Self-loops and duplicates are counted and removed; what cannot be read goes
to `rejected` with its line and reason; an input with nothing readable is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from grapevine import __version__
from grapevine.model import tables
from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, remove
from grapevine.model.manifest import Manifest
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.layout import detect_layout, find_inputs
from grapevine.pipeline.lines import parse, read_lines, rejected_rows, with_line_numbers
from grapevine.pipeline.relate.base import IngestRun
from grapevine.pipeline.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig(Config):
    """How to read the input; what is not said is found out from its first lines."""

    delimiter: str = parameter(
        "auto", "what separates columns", source="ours", choices=("auto", "tab", "comma", "space")
    )
    header: str = parameter("auto", "whether the first line is a header", source="ours", choices=("auto", "yes", "no"))
    comments: str = parameter(
        "yes", "whether lines that start with # or % are comments", source="ours: SNAP, KONECT", choices=("yes", "no")
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
        raise UsageError(f"format {format_name!r}: choose one of {', '.join(FORMATS)}")
    inputs, format = find_inputs(paths), FORMATS[format_name]
    if config.ids == "integer" and not format.named:
        raise UsageError(f"ids=integer: {format_name} has no ids; leave it out")
    with new_folder(out, kind="workload", force=force) as folder:
        run = IngestRun(stage, folder, format.name)
        with stage.step("looking at the input"):
            lines = read_lines(stage.spark, inputs)
            layout = detect_layout(
                lines, format, delimiter=config.delimiter, header=config.header, comments=config.comments == "yes"
            )
        parsed = parse(lines, format, layout, integer_ids=config.ids == "integer")
        format.meaning.write(run, _store_rows(run, parsed, lines, with_lines=format.meaning.needs_lines))
        remove(run.scratch)
        run.counts["delimiter"] = layout.delimiter
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


def _store_rows(run: IngestRun, parsed: DataFrame, lines: DataFrame, *, with_lines: bool) -> DataFrame:
    """Store the readable rows for the steps after this, and the rejected ones for good.

    UsageError if no row is readable; or, when rows are told apart by their place (`with_lines`), if one is not.
    """
    columns = ["file", "line", "fields"] if with_lines else ["fields"]
    parsed = with_line_numbers(parsed, lines) if with_lines else parsed
    seen = Observation()
    kinds = [
        F.count_if(F.col("kind") == kind).alias(kind) for kind in ("data", "rejected", "comment", "blank", "header")
    ]
    readable = parsed.observe(seen, *kinds).filter("kind = 'data'").select(*columns)
    rows = run.stage.keep(readable, run.scratch / "rows", "reading lines")
    found = seen.get
    run.counts |= {"lines": sum(found.values()), "rejected": found["rejected"], "comments": found["comment"]}
    if found["rejected"]:
        rejected = rejected_rows(parsed, lines)
        run.write(rejected, tables.REJECTED)
    if not found["data"] or (found["rejected"] and with_lines):
        raise UsageError(f"not readable as {run.format}: {_why(run)}")
    run.counts["rows"] = found["data"]
    return rows


def _why(run: IngestRun) -> str:
    if "rejected" not in run.written:
        return "the input has no data lines"
    first = run.stage.read(run.folder, tables.REJECTED).orderBy("file", "line").first()
    assert first is not None
    return f"{run.written['rejected']:,} lines were rejected; line {first.line} {first.reason}"
