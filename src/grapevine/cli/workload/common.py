"""What the commands about workloads share: their options, and what they say of a workload."""

from __future__ import annotations

import dataclasses

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
from grapevine.cli.from_config import option
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest
from grapevine.model.numbers import number

OUT = option("out_", OutOption)
WITHOUT_SEED = [
    option("force", ForceOption, False),
    option("json", JsonOption, False),
    option("master", MasterOption, None),
    option("driver_memory", MemoryOption, None),
    option("conf", ConfOption, None),
]
COMMON = [option("seed", SeedOption, 1), *WITHOUT_SEED]


def print_workload(folder: Location, manifest: Manifest, json: bool) -> None:
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
