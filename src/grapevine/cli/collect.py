"""`grapevine collect`: the diaries of a live network as an experiment of one run."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import (
    ConfOption,
    ForceOption,
    JsonOption,
    MasterOption,
    OutOption,
    add_metrics,
    out,
    print_json,
    table,
)
from grapevine.cli.storage import stage_of
from grapevine.metrics.structure import DEGREE
from grapevine.metrics.timed import DELAY_MS_AT
from grapevine.metrics.traffic import OUTCOME
from grapevine.model.numbers import number
from grapevine.pipeline.collect import collect as collect_diaries
from grapevine.pipeline.measure import series_rows

_COUNTS = {"nodes": "nodes", "events": "events", "rejected": "rejected lines"}
_MEASURES = *OUTCOME, DELAY_MS_AT.of(quantile="p50"), DELAY_MS_AT.of(quantile="p99"), DEGREE


def collect(
    diaries: Annotated[str, typer.Argument(metavar="DIARIES", help="The folder in which nodes keep their diaries.")],
    out_: OutOption,
    force: ForceOption = False,
    json: JsonOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Measure a live network from the diaries of its nodes: the tables of a simulation, for `measure` and `report`."""
    stage = stage_of(conf, master=master, quiet=json)
    target = stage.location(out_)
    counts = collect_diaries(stage, stage.location(diaries), target, force=force).counts
    measured = {row["metric"]: row["mean"] for row in series_rows(target)}
    if json:
        values = {metric.name: measured.get(metric.name) for metric in _MEASURES}
        print_json({"folder": str(target), **counts, **values})
        return
    made = table(escape(str(target)), "", "")
    made.show_header = False
    for name, label in _COUNTS.items():
        made.add_row(label, number(counts[name]))
    add_metrics(made, _MEASURES, measured)
    out.print(made)
    out.print(f"\nTables: [bold]{escape(str(target))}[/]    Next: grapevine report {escape(str(target))}")
