"""`grapevine report`: an experiment as one page of HTML that needs nothing but a browser."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, overload
from urllib.parse import quote

from grapevine.model import tables
from grapevine.model.card import counted
from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.folder import one_sentence
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table
from grapevine.report.cards import figures_section
from grapevine.report.document import CREDITS, document
from grapevine.report.figures import make_figure, plotted_measures
from grapevine.report.looks import Looks, natural
from grapevine.report.markup import definition_list, link, text
from grapevine.report.overlay import overlay_section
from grapevine.report.values import runs_table, series_tables
from grapevine.report.words import (
    duration,
    listed,
    parameter_name,
    seed_range,
    sentence,
    setting,
    value_name,
)
from grapevine.sim.result import SIMULATIONS, simulations_of

FILE_NAME = "report.html"
KIND = "experiment"
Rows = list[dict[str, Any]]


@overload
def write_page(folder: Path, target: Path | None = None) -> Path: ...
@overload
def write_page(folder: Location, target: Location | None = None) -> Location: ...
def write_page(folder: Location, target: Location | None = None) -> Location:
    """Write the page of an experiment; by default `report.html` in its folder. Returns the file."""
    manifest = read_manifest(folder, KIND)
    target = folder / FILE_NAME if target is None else target
    if target.is_dir():
        raise UsageError(f"{target}: is a folder; give the name of a file")
    page = make_page(folder, manifest, target.absolute().parent)
    with one_sentence(target):
        write_whole(target, page)
    return target


def make_page(folder: Location, manifest: Manifest, seen_from: Location) -> str:
    """The page's HTML; its links are relative to the folder that it will lie in, as far as there is such a way."""
    config = manifest.config
    held, runs_in = manifest.tables_in(folder), simulations_of(folder, manifest).parent
    stored = {table.name: _rows(held, table) for table in tables.EXPERIMENT_TABLES}
    looks = Looks(*(_names(config, stored["runs"], *place) for place in (("systems", "system"), ("workloads", "name"))))
    plots = config.get("plots") or []
    figures, measures = [make_figure(plot, stored, looks) for plot in plots], plotted_measures(plots)
    home, base = _way(seen_from, folder), _way(seen_from, runs_in)
    title = config.get("title") or config.get("name") or folder.name
    sections = [
        ("figures", "Figures", figures_section(figures)),
        ("overlay", "Overlay", overlay_section(runs_in, stored["runs"], looks)),
        ("values", "Values", series_tables(stored["series"], measures, looks)),
        ("runs", "Runs", runs_table(stored["runs"], stored["metrics"], measures, looks, base)),
        ("data", "Data", _data(stored, (held, _way(seen_from, held)), (runs_in, base))),
    ]
    shown = [section for section in sections if section[2]]
    body = [
        _header(config, title, [section[:2] for section in shown]),
        "<main>",
        _what_was_run(manifest, stored["runs"], looks),
        *(f'<section id="{name}"><h2>{heading}</h2>{html}</section>' for name, heading, html in shown),
        "</main>",
        f"<footer><p>Written by Grapevine from {link(f'{home}/manifest.json', 'the experiment’s folder')}. "
        f"{CREDITS}</p></footer>",
    ]
    return document(title, body, charts=any(figure.panels for figure in figures))


def _way(seen_from: Location, folder: Location) -> str:
    """A link from a page in one folder to another folder: relative on one machine, else its whole URL."""
    if isinstance(seen_from, Path) and isinstance(folder, Path):
        return quote(Path(os.path.relpath(folder.absolute(), seen_from)).as_posix())
    return "." if folder == seen_from else quote(str(folder.absolute()), safe="/:")


def _rows(folder: Location, table: tables.Table) -> Rows:
    """A stored table; one that was never written, as when no run finished, is empty."""
    written = (folder / table.name).is_dir() and any((folder / table.name).glob("*.parquet"))
    found: Rows = read_table(folder, table).to_pylist() if written else []
    return found


def _names(config: dict[str, Any], runs: Rows, key: str, name: str) -> list[str]:
    """Systems or workloads, in the order of the description as far as it names them."""
    described = [entry[name] for entry in config.get(key) or [] if isinstance(entry, dict) and name in entry]
    present = {run["system" if key == "systems" else "workload"] for run in runs}
    return [entry for entry in dict.fromkeys(described) if entry in present] + sorted(present - set(described))


def _header(config: dict[str, Any], title: str, sections: list[tuple[str, str]]) -> str:
    source = ["Grapevine experiment", *(str(config[key]) for key in ("paper", "figure") if config.get(key))]
    if config.get("claims"):
        source.append(f"claims {listed([str(claim) for claim in config['claims']])}")
    notes = "".join(f"<p>{text(part)}</p>" for part in str(config.get("notes") or "").split("\n\n") if part.strip())
    if config.get("quick"):
        notes += (
            '<p class="note"><strong>A quick run:</strong> sizes may be smaller than the experiment describes, so '
            "compare its numbers with a paper’s only with care.</p>"
        )
    anchors = "".join(f'<a href="#{name}">{heading}</a>' for name, heading in sections)
    return (
        f'<header><p class="eyebrow">{text(" · ".join(source))}</p><h1>{text(title)}</h1>'
        f'<div class="notes">{notes}</div><nav aria-label="Sections">{anchors}</nav></header>'
    )


def _what_was_run(manifest: Manifest, runs: Rows, looks: Looks) -> str:
    failed = [run for run in runs if run["status"] != "done"]
    grid: dict[str, set[str]] = {}
    for run in runs:
        for key, value in json.loads(run["parameters"]).items():
            grid.setdefault(sentence(parameter_name(key)), set()).add(value_name(value))
    done, seconds = len(runs) - len(failed), sum(run["cpu_s"] or 0.0 for run in runs)
    facts = [
        ("Systems", ", ".join(looks.systems)),
        ("Workloads", ", ".join(looks.workloads)),
        *((name, " · ".join(sorted(values, key=natural))) for name, values in sorted(grid.items())),
        ("Seeds", seed_range(run["seed"] for run in runs)),
        ("Runs", f"{done:,} done" + (f", {len(failed):,} failed" if failed else "")),
        ("CPU time", duration(seconds) if seconds else ""),
        ("Code version", manifest.version),
    ]
    return (
        f'<section id="run" aria-label="What was run">{definition_list(facts)}{_failures(failed, len(runs))}</section>'
    )


def _failures(failed: Rows, total: int) -> str:
    """Which runs failed, by their reasons: one mistake often takes many runs with it."""
    if not failed:
        return "" if total else '<p class="note">This experiment has no runs.</p>'
    reasons: dict[str, list[str]] = {}
    for run in failed:
        grid = (setting(key, value) for key, value in json.loads(run["parameters"]).items())
        name = ", ".join([f"{run['system']} on {run['workload']}", *grid, f"seed {run['seed']}"])
        reasons.setdefault(run["error"] or "no reason is recorded", []).append(name)
    items = "".join(
        f"<li><strong>{text('; '.join(sorted(names, key=natural)))}</strong><span>{text(reason)}</span></li>"
        for reason, names in sorted(reasons.items())
    )
    none = " None finished, so there is nothing to draw." if len(failed) == total else ""
    head = f"<p><strong>{counted(len(failed), 'run')} failed.</strong>{none}</p>"
    return f'<div class="note bad">{head}<ul>{items}</ul></div>'


def _data(stored: dict[str, Rows], tables_in: tuple[Location, str], runs_in: tuple[Location, str]) -> str:
    """The folders, each with a link; where tables and runs lie is given with the way there."""
    meanings = {table.name: table.meaning for table in tables.EXPERIMENT_TABLES}
    entries = [(tables_in, name, f"{counted(len(rows), 'row')}. {meanings[name]}") for name, rows in stored.items()]
    entries.append((runs_in, SIMULATIONS, "The tables of each run."))
    items = "".join(
        f"<li>{link(f'{way}/{name}/', f'{name}/')} <span>{text(content.replace('`', ''))}</span></li>"
        for (folder, way), name, content in entries
        if (folder / name).is_dir()
    )
    return f'<p>Every number here comes from these folders of Parquet files.</p><ul class="folders">{items}</ul>'
