"""`grapevine workload …`: from raw traces and models to workloads, and what they look like."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import (
    ConfOption,
    ForceOption,
    JsonOption,
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    out,
    print_json,
    table,
)
from grapevine.cli.from_config import add_config_command, option
from grapevine.kernels.jit import compiling_told
from grapevine.metrics.numbers import number
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.generate import generate as generate_stage
from grapevine.pipeline.ingest import IngestConfig
from grapevine.pipeline.ingest import ingest as ingest_stage
from grapevine.pipeline.profile import ProfileConfig
from grapevine.pipeline.profile import profile as profile_stage
from grapevine.pipeline.sample import SAMPLES
from grapevine.pipeline.sample import sample as sample_stage
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Make, cut and look at subscription workloads.")
sample_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Cut a smaller workload out of a large one."
)
generate_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Generate a workload from a published model."
)
app.add_typer(generate_app, name="generate")
app.add_typer(sample_app, name="sample")


def print_profile(folder: Location) -> None:
    """Print a stored profile for people: three tables with a column per workload. `folder` is where the tables lie."""
    statistics = read_table(folder, tables.DEGREE_STATISTICS).to_pylist()
    names = list(dict.fromkeys(row["workload"] for row in statistics))
    rows = ("count", "mean", "variance", "standard_deviation", "maximum", "gini")
    fits = (
        "exponent",
        "exponent_error",
        "tail_start",
        "tail_share",
        "fit_distance",
        "whole_exponent",
        "whole_fit_distance",
    )
    for degree, title in (("subscriptions", "Subscriptions per subscriber"), ("subscribers", "Subscribers per topic")):
        made = table(title, "", *names)
        chosen = {row["workload"]: row for row in statistics if row["degree"] == degree}
        for key in rows + fits:
            made.add_row(_LABELS.get(key, key.replace("_", " ")), *(number(chosen[name][key]) for name in names))
        out.print(made, "")
    made = table("Interests", "", *names)
    coverage, overlap = (read_table(folder, t).to_pylist() for t in (tables.INTEREST_COVERAGE, tables.INTEREST_OVERLAP))
    for friends in (1, 2, 4, 6, 8, 10):
        found = {row["workload"]: f"{row['complete']:.1%}" for row in coverage if row["friends"] == friends}
        made.add_row(
            f"fully covered by {friends} best friend{'s' * (friends > 1)}", *(found.get(n, "–") for n in names)
        )
    for measure in dict.fromkeys((row["measure"], row["d"]) for row in overlap):
        label = f"tdi({measure[1]}), %" if measure[0] == "tdi" else "mean pairwise Jaccard"
        found = {row["workload"]: number(row["value"]) for row in overlap if (row["measure"], row["d"]) == measure}
        made.add_row(label, *(found.get(name, "–") for name in names))
    out.print(made)


_LABELS = {
    "exponent": "power-law exponent of the tail",
    "exponent_error": "  standard error",
    "tail_start": "  tail starts at",
    "tail_share": "  share in the tail",
    "fit_distance": "  KS distance of the fit",
    "whole_exponent": "exponent fitted to all degrees",
    "whole_fit_distance": "  KS distance of that fit",
}


def _stage(master: str | None, driver_memory: str | None, conf: list[str] | None, quiet: bool) -> Stage:
    return Stage(SparkSettings.gather(master=master, driver_memory=driver_memory, conf=tuple(conf or ())), quiet=quiet)


def _print_workload(folder: Location, manifest: Manifest, json: bool) -> None:
    """Say what a workload stage wrote: the rows of its tables, and its counts."""
    if json:
        print_json({"folder": str(folder), **dataclasses.asdict(manifest)})
        return
    made = table(escape(str(folder)), "", "")
    made.show_header = False
    for name, rows in manifest.tables.items():
        made.add_row(name, number(rows))
    for name, value in manifest.counts.items():
        if name not in manifest.tables:
            made.add_row(f"[dim]{name.replace('_', ' ')}[/]", f"[dim]{escape(number(value).expandtabs(2))}[/]")
    out.print(made)


_OUT = option("out_", OutOption)
_COMMON = [
    option("seed", SeedOption, 1),
    option("force", ForceOption, False),
    option("json", JsonOption, False),
    option("master", MasterOption, None),
    option("driver_memory", MemoryOption, None),
    option("conf", ConfOption, None),
]
_PARTITIONS = option(
    "partitions", Annotated[int | None, typer.Option(min=1, help="Spark tasks; the rows do not depend on it.")], None
)
_SOURCE = option("source", Annotated[str, typer.Argument(metavar="DIR", help="The workload to sample.")])


def _run_generate(name: str) -> Callable[..., None]:
    def run(model: Any, *, out_: str, seed: int, force: bool, json: bool, partitions: int | None, **spark: Any) -> None:
        stage = _stage(**spark, quiet=json)
        target = stage.location(out_)
        with compiling_told(name):
            manifest = generate_stage(stage, name, model, target, seed=seed, partitions=partitions, force=force)
        _print_workload(target, manifest, json)

    return run


def _run_sample(config: Any, *, source: str, out_: str, seed: int, force: bool, json: bool, **spark: Any) -> None:
    stage = _stage(**spark, quiet=json)
    target = stage.location(out_)
    manifest = sample_stage(stage, stage.location(source), target, config, seed=seed, force=force)
    _print_workload(target, manifest, json)


def _run_ingest(
    config: IngestConfig, *, format: str, files: list[str], out_: str, force: bool, json: bool, **spark: Any
) -> None:
    stage = _stage(**spark, quiet=json)
    target = stage.location(out_)
    manifest = ingest_stage(stage, format, files, target, config, force=force)
    _print_workload(target, manifest, json)


def _run_profile(
    config: ProfileConfig, *, folders: list[str], out_: str | None, seed: int, force: bool, json: bool, **spark: Any
) -> None:
    from grapevine.report.profile_page import FILES, draw_profile  # here, because plotting takes 0.3 s to import

    stage = _stage(**spark, quiet=json)
    sources = [stage.location(folder) for folder in folders]
    first = sources[0].absolute()
    target = first.with_name(first.name + "-profile") if out_ is None else stage.location(out_)
    profile_stage(stage, sources, target, config, seed=seed, force=force, finish=draw_profile)
    stored = read_manifest(target, "profile").tables_in(target)
    pictures = [stored / name for name in FILES]
    if json:
        content = {
            t.name: read_table(stored, t).to_pylist() for t in tables.PROFILE_TABLES if t is not tables.DEGREE_CCDF
        }
        print_json({"folder": str(target), "pictures": [str(p) for p in pictures], **content})
        return
    print_profile(stored)
    out.print(f"\nTables and pictures: [bold]{escape(str(target))}[/] ({', '.join(p.name for p in pictures)})")


_INGEST_HELP = """Turn raw traces into a workload: Parquet tables and a manifest.

Reads text, JSON lines and Parquet; plain, .gz, .bz2, .zst, .xz or .zip; UTF-8 or UTF-16; many files or folders. Says
before it begins how the first row is read. Lines that cannot be read go to the [bold]rejected[/] table with their
number and the reason; if they are too many, nothing is written."""
_PROFILE_HELP = """Say what a workload looks like: degrees, power-law fits, inequality, interest locality, overlap.

Prints the rows of Vitis Fig. 9 and more, and writes tables and a picture of the distributions."""
_FORMAT_HELP = "\n\n".join(f"[bold]{name}[/]: {escape(format.summary)}" for name, format in FORMATS.items())

_FORMAT = Annotated[
    str,
    typer.Argument(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.", autocompletion=lambda: list(FORMATS)),
]
_FILES = Annotated[list[str], typer.Argument(metavar="FILE…", help="Files or folders.")]
_FOLDERS = Annotated[list[str], typer.Argument(metavar="DIR…", help="Workloads; several are shown side by side.")]
_PROFILE_OUT = Annotated[
    str | None, typer.Option("--out", "-o", metavar="DIR", help="New folder. Default: DIR-profile.")
]

add_config_command(
    app,
    "ingest",
    IngestConfig,
    _run_ingest,
    first=[option("format", _FORMAT), option("files", _FILES), _OUT],
    last=[parameter for parameter in _COMMON if parameter.name != "seed"],
    help=_INGEST_HELP,
    epilog="Formats:\n\n" + _FORMAT_HELP,
)
add_config_command(
    app,
    "profile",
    ProfileConfig,
    _run_profile,
    first=[option("folders", _FOLDERS), option("out_", _PROFILE_OUT, None)],
    last=_COMMON,
    help=_PROFILE_HELP,
)
for _name, _model in MODELS.items():
    add_config_command(generate_app, _name, _model, _run_generate(_name), first=[_OUT], last=[*_COMMON, _PARTITIONS])
for _kind in SAMPLES:
    add_config_command(sample_app, _kind.name, _kind, _run_sample, first=[_SOURCE, _OUT], last=_COMMON)
