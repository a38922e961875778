"""`grapevine workload profile DIR…`: what workloads look like."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import out, print_json, table
from grapevine.cli.from_config import add_config_command, option
from grapevine.cli.storage import stage_of
from grapevine.cli.workload.common import COMMON
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.numbers import number
from grapevine.model.store import read_table
from grapevine.pipeline.profile import ProfileConfig, profile

_HELP = """Say what a workload looks like: degrees, power-law fits, inequality, interest locality, overlap.

Prints the rows of Vitis Fig. 9 and more, and writes tables and a picture of the distributions."""
_FOLDERS = Annotated[list[str], typer.Argument(metavar="DIR…", help="Workloads; several are shown side by side.")]
_OUT = Annotated[str | None, typer.Option("--out", "-o", metavar="DIR", help="New folder. Default: DIR-profile.")]


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


def _run(
    config: ProfileConfig, *, folders: list[str], out_: str | None, seed: int, force: bool, json: bool, **spark: Any
) -> None:
    from grapevine.report.profile_page import FILES, draw_profile  # here, because plotting takes 0.3 s to import

    stage = stage_of(**spark, quiet=json)
    sources = [stage.location(folder) for folder in folders]
    first = sources[0].absolute()
    target = first.with_name(first.name + "-profile") if out_ is None else stage.location(out_)
    profile(stage, sources, target, config, seed=seed, force=force, finish=draw_profile)
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


def add_to(app: typer.Typer) -> None:
    """Add the command: its options are the fields of `ProfileConfig`."""
    add_config_command(
        app,
        "profile",
        ProfileConfig,
        _run,
        first=[option("folders", _FOLDERS), option("out_", _OUT, None)],
        last=COMMON,
        help=_HELP,
    )
