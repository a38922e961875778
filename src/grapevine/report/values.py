"""The tables of a page: the series behind the figures, and the runs behind the series."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from grapevine.metrics.catalogue import Metric, described
from grapevine.metrics.findings import CPU_S, WALL_S
from grapevine.metrics.structure import DEGREE, DEGREE_MAX
from grapevine.metrics.traffic import BYTES_PER_EVENT, HIT_RATIO, HOPS, NOTIFICATIONS_PER_EVENT, OVERHEAD
from grapevine.model.numbers import number
from grapevine.report.looks import Looks, extra_label
from grapevine.report.markup import Cell, definition_list, link, sortable_table, text
from grapevine.report.words import duration, parameter_name, value_name
from grapevine.sim.result import SIMULATIONS
from grapevine.systems.registry import all_systems

# What every table begins with. Overhead counts what nobody wanted, and a flood has none: its cost stands beside it.
FIRST = HIT_RATIO, OVERHEAD, NOTIFICATIONS_PER_EVENT, BYTES_PER_EVENT, HOPS, DEGREE, DEGREE_MAX
Row = dict[str, Any]
Point = tuple[str, str, str]  # system, workload, parameters as stored


def series_tables(rows: list[Row], plotted: list[str], looks: Looks) -> str:
    """Means over seeds, a row per system, workload and grid point; first what the figures show, then everything."""
    if not rows:
        return ""
    present = list(dict.fromkeys(sorted(row["metric"] for row in rows)))
    main = [name for name in _first(plotted) if name in present]
    several = any(row["runs"] > 1 for row in rows)
    means = "means over seeds ± half their 95% confidence interval" if several else "one seed each"
    made = _series_table(
        f"What became of events, what it cost, and what the figures show: {means}", rows, main or present, looks
    )
    if main and len(present) > len(main):
        ordered = main + [name for name in present if name not in main]
        inner = _series_table(f"All measures: {means}", rows, ordered, looks)
        made += f"<details><summary>All {len(present)} measures</summary>{inner}</details>"
    return made


def _first(plotted: list[str]) -> list[str]:
    """The measures that tables begin with: what became of events and what it cost, and those of the figures."""
    return list(dict.fromkeys((*(metric.name for metric in FIRST), *plotted)))


def _needs(system: str) -> str | None:
    """What a system knows of the whole network; None of one that is not here."""
    found = all_systems().get(system)
    return None if found is None else found.needs


def _series_table(caption: str, rows: list[Row], names: list[str], looks: Looks) -> str:
    measures = [described(name) for name in names]
    points: dict[Point, dict[str, Row]] = {}
    for row in rows:
        points.setdefault(_point(row), {})[row["metric"]] = row
    keys = _parameter_keys(rows)
    columns = ["system", "workload", *map(parameter_name, keys), *(metric.heading for metric in measures), "seeds"]
    body = []
    for (system, workload, parameters), found in sorted(points.items(), key=lambda item: _order(item[0], looks)):
        cells = [Cell.of(system), Cell.of(workload), *_parameter_cells(parameters, keys)]
        cells += [_mean(found.get(metric.name), metric) for metric in measures]
        seeds = max(row["runs"] for row in found.values())
        body.append([*cells, Cell.of(number(seeds), seeds)])
    return sortable_table(caption, columns, body, numeric=set(range(2, len(columns))))


def runs_table(runs: list[Row], metrics: list[Row], plotted: list[str], looks: Looks, base: str) -> str:
    """Every run with its own values; its name leads to its folder."""
    if not runs:
        return ""
    values = {(row["run_id"], row["metric"]): row["value"] for row in metrics}
    measures = [described(name) for name in _first(plotted) if any(key[1] == name for key in values)]
    keys = _parameter_keys(runs)
    parameters = [parameter_name(key) for key in keys]
    headings = [*(metric.heading for metric in measures), WALL_S.label, CPU_S.label]
    columns = ["system", "workload", *parameters, "seed", "status", "global knowledge", *headings, "run"]
    body = []
    for run in sorted(runs, key=lambda run: (*_order(_point(run), looks), run["seed"])):
        name, done = run["run_id"], run["status"] == "done"
        shown = link(f"{base}/{SIMULATIONS}/{quote(f'run_id={name}', safe='=')}/", name[:8]) if done else text(name[:8])
        cells = [Cell.of(run["system"]), Cell.of(run["workload"])]
        cells += [*_parameter_cells(run["parameters"], keys), Cell.of(str(run["seed"]), run["seed"])]
        cells.append(Cell.of("done") if done else Cell(f'<b class="failed">{text(run["status"])}</b>', run["status"]))
        needs = _needs(run["system"])
        cells.append(Cell.of("–" if needs is None else "yes" if needs else "no"))
        for metric in measures:
            value = values.get((name, metric.name))
            cells.append(_number(value, metric.shown(value)))
        cells += [_number(run[metric.name], duration(run[metric.name])) for metric in (WALL_S, CPU_S)]
        body.append([*cells, Cell(shown, name)])
    texts = {0, 1, 3 + len(keys), 4 + len(keys), len(columns) - 1}
    known = [(name, f"needs {needs}") for name in looks.systems if (needs := _needs(name))]
    return sortable_table("All runs", columns, body, numeric=set(range(len(columns))) - texts) + (
        f"<p>Global knowledge, which no network has:</p>{definition_list(known)}" if known else ""
    )


def _mean(row: Row | None, metric: Metric) -> Cell:
    if row is None:
        return _number(None, "–")
    half = (row["high"] - row["low"]) / 2 if row["runs"] > 1 else 0.0
    return _number(row["mean"], metric.shown_with_spread(row["mean"], half))


def _number(value: float | None, shown: str) -> Cell:
    """A number's cell; what is not there has nothing to sort by, and page.js puts it last."""
    missing = value is None or not math.isfinite(value)
    return Cell(text(shown), None if missing else value)


def _parameter_keys(rows: Iterable[Row]) -> list[str]:
    return sorted({key for row in rows for key in json.loads(row["parameters"])})


def _parameter_cells(parameters: str, keys: list[str]) -> list[Cell]:
    found = json.loads(parameters)
    return [_parameter(found[key]) if key in found else _number(None, "–") for key in keys]


def _parameter(value: Any) -> Cell:
    return _number(value, value_name(value)) if isinstance(value, int | float) else Cell.of(value_name(value))


def _point(row: Row) -> Point:
    return row["system"], row["workload"], row["parameters"]


def _order(point: Point, looks: Looks) -> tuple[Any, ...]:
    system, workload, parameters = point
    return looks.rank((system, workload, extra_label(json.loads(parameters), None)))
