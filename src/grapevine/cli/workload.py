"""`grapevine workload …`: from raw traces and models to workloads, and what they look like."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
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
    one_line_errors,
    out,
    print_json,
    shown,
    table,
)
from grapevine.model import tables
from grapevine.model.config import Config, field_types
from grapevine.model.errors import UsageError
from grapevine.model.folder import refuse_unless_replaceable
from grapevine.model.manifest import Manifest
from grapevine.model.workload import read_table
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.generate import generate as generate_stage
from grapevine.pipeline.ingest import IngestConfig
from grapevine.pipeline.ingest import ingest as ingest_stage
from grapevine.pipeline.profile import ProfileConfig
from grapevine.pipeline.profile import profile as profile_stage
from grapevine.pipeline.sample import BfsSample, SubscriberSample, TopicSample
from grapevine.pipeline.sample import sample as sample_stage
from grapevine.pipeline.session import SparkSettings, open_session
from grapevine.pipeline.stage import Stage
from grapevine.report.profile_page import draw_profile
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

_FORMAT_HELP = "\n\n".join(f"[bold]{name}[/]: {escape(format.summary)}" for name, format in FORMATS.items())


@app.command(
    epilog="Formats:\n\n" + _FORMAT_HELP,
)
def ingest(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files or folders.")],
    out_: OutOption,
    delimiter: Annotated[str, typer.Option(help="auto, tab, comma or space.")] = "auto",
    header: Annotated[str, typer.Option(help="auto, yes or no.")] = "auto",
    ids: Annotated[
        str, typer.Option(help="any: ids are names. integer: reject ids that are not integers ≥ 0.")
    ] = "any",
    force: ForceOption = False,
    json: JsonOption = False,
    master: MasterOption = None,
    driver_memory: MemoryOption = None,
    conf: ConfOption = None,
) -> None:
    """Turn raw traces into a workload: Parquet tables and a manifest.

    Reads .gz, many files or folders, with or without header and comments. Lines that cannot be read go to the
    [bold]rejected[/] table with their number and the reason.
    """
    config = IngestConfig(format=format, delimiter=delimiter, header=header, ids=ids)
    refuse_unless_replaceable(out_, force=force)
    manifest = ingest_stage(_stage(master, driver_memory, conf, json), files, out_, config, force=force)
    _print_workload(out_, manifest, json)


@app.command()
def profile(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Workloads; several are shown side by side.")],
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", help="New folder for tables and pictures. Default: DIR-profile.")
    ] = None,
    sample: Annotated[int, typer.Option(help="Subscribers sampled for overlap measures (Rappel §1).")] = 1_000,
    tdi_depth: Annotated[int, typer.Option(help="d of tdi(d) (SpiderCast §3.4).")] = 20,
    seed: SeedOption = 1,
    force: ForceOption = False,
    json: JsonOption = False,
    master: MasterOption = None,
    driver_memory: MemoryOption = None,
    conf: ConfOption = None,
) -> None:
    """Say what a workload looks like: degrees, power-law fits, inequality, interest locality, overlap.

    Prints the rows of Vitis Fig. 9 and more, and writes tables and a picture of the distributions.
    """
    first = folders[0].absolute()
    target = out_ or first.with_name(first.name + "-profile")
    config = ProfileConfig(sample=sample, tdi_depth=tdi_depth)
    refuse_unless_replaceable(target, force=force)
    profile_stage(_stage(master, driver_memory, conf, json), folders, target, config, seed=seed, force=force)
    pictures = draw_profile(target)
    if json:
        names = [table.name for table in tables.PROFILE_TABLES if table is not tables.DEGREE_CCDF]
        content = {t.name: read_table(target, t).to_pylist() for t in tables.PROFILE_TABLES if t.name in names}
        print_json({"folder": str(target), "pictures": [str(p) for p in pictures], **content})
    else:
        print_profile(target)
        out.print(f"\nTables and pictures: [bold]{escape(str(target))}[/] ({', '.join(p.name for p in pictures)})")


def print_profile(folder: Path) -> None:
    """The profile as a person reads it: one column per workload."""
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
            made.add_row(_LABELS.get(key, key.replace("_", " ")), *(shown(chosen[name][key]) for name in names))
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
        found = {row["workload"]: shown(row["value"]) for row in overlap if (row["measure"], row["d"]) == measure}
        made.add_row(label, *(found.get(name, "–") for name in names))
    out.print(made)


_LABELS = {
    "exponent": "power-law exponent of the tail",
    "exponent_error": "  standard error",
    "tail_start": "  tail starts at",
    "tail_share": "  share in the tail",
    "fit_distance": "  KS distance of the fit",
    "whole_exponent": "exponent fitted from degree 1",
    "whole_fit_distance": "  KS distance of that fit",
}


def _stage(master: str | None, driver_memory: str | None, conf: list[str] | None, quiet: bool) -> Stage:
    settings = SparkSettings.gather(master=master, driver_memory=driver_memory, conf=tuple(conf or ()))
    with out.status("starting Spark") if not quiet and out.is_terminal else one_line_errors():
        return Stage(open_session(settings), quiet=quiet)


def _print_workload(folder: Path, manifest: Manifest, json: bool) -> None:
    if json:
        print_json({"folder": str(folder), **dataclasses.asdict(manifest)})
        return
    made = table(str(folder), "", "")
    made.show_header = False
    for name, rows in manifest.tables.items():
        made.add_row(name, shown(rows))
    for name, value in manifest.counts.items():
        if name not in manifest.tables:
            made.add_row(f"[dim]{name.replace('_', ' ')}[/]", f"[dim]{escape(shown(value).expandtabs(2))}[/]")
    out.print(made)


def _add_config_command(
    group: typer.Typer,
    name: str,
    config: type[Config],
    run: Callable[..., None],
    first: list[inspect.Parameter],
    last: list[inspect.Parameter],
) -> None:
    """A command whose options are the config's fields: their meaning, source and default stand in the help."""
    parameters = list(first)
    types = field_types(config)
    for field in dataclasses.fields(config):
        meta = field.metadata
        choices = f" One of {', '.join(meta['choices'])}." if meta["choices"] else ""
        text = f"{meta['help'][0].upper()}{meta['help'][1:]}.{choices} [{meta['source']}]"
        option = typer.Option(f"--{field.name.replace('_', '-')}", help=escape(text))
        kind: Any = Annotated[types[field.name] | None, option]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
        )

    parameters += last

    def command(**options: Any) -> None:
        chosen = {field.name: options.pop(field.name) for field in dataclasses.fields(config)}
        run(config(**chosen), **options)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    group.command(name, help=config.__doc__)(command)


def _option(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_OUT = _option("out_", OutOption)
_COMMON = [
    _option("seed", SeedOption, 1),
    _option("force", ForceOption, False),
    _option("json", JsonOption, False),
    _option("master", MasterOption, None),
    _option("driver_memory", MemoryOption, None),
    _option("conf", ConfOption, None),
]
_PARTITIONS = _option(
    "partitions", Annotated[int | None, typer.Option(min=1, help="Spark tasks; the rows do not depend on it.")], None
)
_SOURCE = _option("source", Annotated[Path, typer.Argument(metavar="DIR", help="The workload to sample.")])


def _run_generate(name: str) -> Callable[..., None]:
    def run(
        model: Any, *, out_: Path, seed: int, force: bool, json: bool, partitions: int | None, **spark: Any
    ) -> None:
        refuse_unless_replaceable(out_, force=force)
        stage = _stage(**spark, quiet=json)
        manifest = generate_stage(stage, name, model, out_, seed=seed, partitions=partitions, force=force)
        _print_workload(out_, manifest, json)

    return run


def _run_sample(config: Any, *, source: Path, out_: Path, seed: int, force: bool, json: bool, **spark: Any) -> None:
    refuse_unless_replaceable(out_, force=force)
    if out_.absolute() == source.absolute():
        raise UsageError(f"{out_}: is the workload to sample; choose another --out")
    manifest = sample_stage(_stage(**spark, quiet=json), source, out_, config, seed=seed, force=force)
    _print_workload(out_, manifest, json)


for _name, _model in MODELS.items():
    _add_config_command(generate_app, _name, _model, _run_generate(_name), [_OUT], [*_COMMON, _PARTITIONS])
for _kind in (BfsSample, SubscriberSample, TopicSample):
    _add_config_command(sample_app, _kind.name, _kind, _run_sample, [_SOURCE, _OUT], _COMMON)
