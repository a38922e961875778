"""The data dictionary: every declared table as Markdown, grouped by the stage that writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grapevine.model.tables.experiment import EXPERIMENT_TABLES, TOPIC_GRAPHS
from grapevine.model.tables.profile import PROFILE_TABLES
from grapevine.model.tables.schema import Table
from grapevine.model.tables.simulation import SIMULATION_TABLES
from grapevine.model.tables.workload import WORKLOAD_TABLES

ALL_TABLES = {
    "Workload (`grapevine workload ingest | sample | generate`)": WORKLOAD_TABLES,
    "Profile (`grapevine workload profile`)": PROFILE_TABLES,
    "Simulation (`grapevine simulate`), or a live run (`grapevine collect`)": SIMULATION_TABLES,
    "Experiment (`grapevine run`)": EXPERIMENT_TABLES,
    "Graphs (`grapevine measure`)": (TOPIC_GRAPHS,),
}


def data_dictionary(own: Mapping[str, Iterable[Table]]) -> str:
    """The part of docs/tables.md that tells of tables, as Markdown; `own` are those of single systems, by name."""
    parts = [
        "# Tables: the data dictionary",
        "",
        "Written by `make pages` from `src/grapevine/model/tables/`; do not edit it by hand.",
        "",
        "Every table is a folder of Parquet files with exactly these columns; `manifest.json` beside them tells the",
        "stage, config, seed, code version and row counts. A folder without a manifest is not complete, and no stage",
        "reads it.",
    ]
    for heading, tables in ALL_TABLES.items():
        parts += ["", f"## {heading}"]
        parts += [line for table in tables for line in _describe(table)]
    parts += ["", "## Tables of single systems, beside those of every simulation"]
    for systems, found in own.items():
        parts += ["", f"Of {systems}:"]
        parts += [line for table in found for line in _describe(table)]
    return "\n".join(parts) + "\n"


def _describe(table: Table) -> Iterable[str]:
    yield from ("", f"### `{table.name}`", "", table.meaning, "", "| column | type | meaning |", "|---|---|---|")
    for column in table.columns:
        kind = f"{column.type}{' or empty' if column.nullable else ''}"
        yield f"| `{column.name}` | {kind} | {column.meaning} |"
