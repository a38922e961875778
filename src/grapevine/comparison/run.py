"""Compare: the whole way from what a user brings to a recommendation, its table and its page."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grapevine.comparison.candidates import CompareConfig, check_links, describe, fitting_systems
from grapevine.comparison.costs import Choice, Rates, choices
from grapevine.comparison.judgement import Judgement, judge
from grapevine.comparison.source import prepare
from grapevine.model.arguments import refuse
from grapevine.model.drafts import whole_file, write_whole
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.folder import one_sentence
from grapevine.model.settings import make
from grapevine.model.workload import Workload
from grapevine.pipeline.measure import series_rows
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.sweep import sweep
from grapevine.sim.simulate import make_config

ANSWER, PAGE = "comparison.json", "compare.html"
_SOURCE, _RUNS = "source", "runs"
LINKS = 10, 15, 25


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found. `judgement` says which choice to take, `choices` has all of them with their costs."""

    trace: str
    folder: Path
    rates: Rates
    choices: tuple[Choice, ...]
    judgement: Judgement
    failed: int = field(default=0)  # runs

    @property
    def page(self) -> Path:
        """The page that shows it."""
        return self.folder / PAGE

    @property
    def best(self) -> Choice:
        """The recommended choice."""
        return self.judgement.best

    @property
    def recommendation(self) -> str:
        """The answer in sentences."""
        return " ".join(self.judgement.sentences)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "trace": self.trace,
            "recommended": self.best.as_dict(),
            "delivers_enough": self.judgement.delivers,
            "sentences": list(self.judgement.sentences),
            "front": [choice.name for choice in self.judgement.front],
            "choices": [choice.as_dict() for choice in self.choices],
            "rates": asdict(self.rates),
            "failed": self.failed,
        }

    def to_pandas(self) -> Any:
        """All choices as a data frame, a row each."""
        import pandas as pd

        return pd.DataFrame([choice.as_dict() | {"name": choice.name} for choice in self.choices]).set_index("name")

    def __repr__(self) -> str:
        return f"Comparison({self.judgement.sentences[0]})"


def compare(
    source: str | Path | Sequence[str | Path] | Workload,
    *,
    out: str | Path | None = None,
    systems: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    links: Sequence[int] = LINKS,
    format: str | None = None,
    stage: Stage | None = None,
    **settings: Any,
) -> Comparison:
    """Run all fitting systems over budgets of connections, and say which one to take.

    `source` is a workload, the folder of one, or the files of a raw trace, of this `format` (None: it is guessed and
    said). `systems` names those to compare, or maps names to parameters; `links` are the budgets. `settings` are
    fields of `CompareConfig`: users, rounds, crash, seeds, payload, events, enough. Everything is stored in `out`
    (None: a new temporary folder); with the same folder a comparison goes on where it was stopped.

    UsageError for what cannot be compared; GrapevineError if no run was done.
    """
    config, budgets = make(CompareConfig, settings, owner="compare"), check_links(links)
    chosen = _parameters(systems)
    stage = stage or Stage()
    folder = _open(Path(tempfile.mkdtemp(prefix="grapevine-compare-")) if out is None else Path(out))
    given = source if isinstance(source, Workload) else _paths(source)
    prepared = prepare(stage, given, folder / _SOURCE, config, format)
    experiment = describe(prepared, chosen, budgets, config)
    manifest = sweep(stage, experiment, folder / _RUNS, resume=True)
    assert manifest is not None
    found = choices(series_rows(folder / _RUNS), prepared.rates, budgets)
    judgement = judge(found, prepared.rates, enough=config.enough, crash=config.crash, trace=prepared.name)
    if judgement is None:
        raise GrapevineError(f"{folder}: no run reached anybody; grapevine report {folder / _RUNS} says what failed")
    made = Comparison(
        prepared.name, folder, prepared.rates, tuple(found), judgement, int(manifest.counts.get("failed", 0))
    )
    _write(made, experiment.title)
    return made


def _write(made: Comparison, title: str) -> None:
    """The answer for programs and for people, and the pages, beside the runs."""
    from grapevine.report.comparison_page import (
        front_picture,
        make_comparison_page,
    )  # plotting takes a second to import
    from grapevine.report.page import FILE_NAME, write_page

    rows = [choice.as_dict() | {"name": choice.name, "kind": made.judgement.kind(choice)} for choice in made.choices]
    page = make_comparison_page(title, made.judgement.sentences, rows, f"{_RUNS}/{FILE_NAME}")
    with one_sentence(made.folder):
        write_whole(made.folder / ANSWER, json.dumps(made.as_dict(), indent=2, ensure_ascii=False))
        for suffix in ("svg", "png"):
            with whole_file(made.folder / f"front.{suffix}") as local:
                local.write_bytes(front_picture(rows, suffix))
        write_page(made.folder / _RUNS)
        write_whole(made.page, page)


def _parameters(systems: Sequence[str] | Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """The systems to compare with what is set of each; UsageError for parameters that they do not have."""
    if isinstance(systems, str):
        refuse("systems", systems, f"a list of names, e.g. [{systems!r}]")
    given = systems if isinstance(systems, Mapping) else {}
    chosen = {name: dict(given.get(name, {})) for name in fitting_systems(None if systems is None else list(systems))}
    for name, parameters in chosen.items():
        make_config(name, parameters, "rounds")
    return chosen


def _paths(source: str | Path | Sequence[str | Path]) -> list[str]:
    given = [source] if isinstance(source, str | Path) else list(source) if isinstance(source, Sequence) else []
    if not given or not all(isinstance(path, str | Path) for path in given):
        refuse("source", source, "a workload, its folder, or the files of a trace")
    return [str(path) for path in given]


def _open(folder: Path) -> Path:
    """A folder that is not there yet, or that of an earlier comparison."""
    if folder.is_file():
        raise UsageError(f"{folder}: is a file; choose another --out")
    if folder.is_dir() and any(folder.iterdir()) and not ((folder / _SOURCE).is_dir() or (folder / _RUNS).is_dir()):
        raise UsageError(f"{folder}: holds something else than a comparison; choose another --out")
    return folder
