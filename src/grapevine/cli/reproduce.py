"""`grapevine reproduce`: claimed beside measured."""

from __future__ import annotations

import json as json_text
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, JsonOption, MasterOption, err, out, print_json, table
from grapevine.cli.storage import stage_of, traces_folder
from grapevine.experiment.claims import CLAIMS, Claim, Effort, Evidence, Grade, Judgement, judge_all
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.model import tables
from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.folder import one_sentence
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.pipeline.measure import KIND, series_rows
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.sweep import sweep
from grapevine.version import __version__

_COLOURS = {Grade.MET: "green", Grade.NOT_MET: "red"}  # yellow: something between


def reproduce(
    what: Annotated[str, typer.Argument(help="A paper (vitis), a claim (V2), or all.")] = "all",
    folder: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the experiments' results.")
    ] = "results",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller networks: minutes instead of an hour.")] = False,
    write: Annotated[Path | None, typer.Option(help="Also write the table as Markdown, e.g. docs/results.md.")] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Judge what the folder holds; run nothing.")] = False,
    json: JsonOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Measure what the papers claim: run the experiments that are missing, and print claimed beside measured.

    Runs are kept by their id, so a second call only measures again.
    """
    chosen = choose_claims(what)
    stage = stage_of(conf, master=master, quiet=json)
    target = stage.location(f"{folder}/quick" if quick else folder)
    evidence = gather_evidence(chosen, target, quick=quick, stage=stage, stored=stored)
    judged = judge_all(chosen, evidence)
    rows = [_as_dict(item) for item in judged]
    with one_sentence(target):
        write_whole(target / "results.json", json_text.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    if write is not None:
        before = write.read_text() if write.is_file() else ""
        with one_sentence(write):
            write_whole(write, as_markdown(judged, evidence.efforts, quick=quick, before=before))
    if json:
        print_json(rows)
        return
    made = table(
        "Claimed and measured" + (" (quick: smaller networks)" if quick else ""), "", "claimed", "measured", ""
    )
    for column in made.columns:
        column.justify = "left"
    for item in judged:
        colour = _COLOURS.get(item.finding.grade, "yellow")
        remark = _remark(item)
        measured = escape(item.finding.measured) + (f"\n[dim]{escape(remark)}[/]" if remark else "")
        made.add_row(item.claim.id, escape(item.claim.claimed), measured, f"[{colour}]{item.finding.grade}[/]")
    out.print(made)
    out.print(_summary(judged))
    out.print(f"\nTables of the experiments: [bold]{escape(str(target))}[/]    A page: grapevine report {target}/NAME")


def choose_claims(what: str) -> list[Claim]:
    """The claims of a paper, or one, or all."""
    papers = sorted({claim.paper for claim in CLAIMS.values()})
    if what == "all":
        return sorted(CLAIMS.values(), key=lambda claim: (claim.paper, claim.number))
    if what in papers:
        return sorted((claim for claim in CLAIMS.values() if claim.paper == what), key=lambda claim: claim.number)
    if what.upper() in CLAIMS:
        return [CLAIMS[what.upper()]]
    raise UsageError(f"{what!r}: choose all, a paper ({', '.join(papers)}) or a claim ({', '.join(CLAIMS)})")


def gather_evidence(
    claims: list[Claim], folder: Location, *, quick: bool, stage: Stage, stored: bool = False
) -> Evidence:
    """Run what the claims need, or take what is stored; an experiment that cannot be had says why."""
    published = published_experiments()
    series, absent, efforts = {}, {}, {}
    names = list(dict.fromkeys(name for claim in claims for name in claim.experiments))
    for number, name in enumerate(names, start=1):
        experiment = read_experiment(published[name], quick=quick)
        if not stage.quiet:
            err.print(f"[bold]{number} of {len(names)}: {escape(experiment.title)}[/]", highlight=False)
        try:
            if not stored:
                sweep(stage, experiment, folder / name, traces=traces_folder(stage), resume=True)
            counts = read_manifest(folder / name, KIND).counts
        except UsageError as error:
            absent[name] = str(error)
            continue
        if counts["failed"]:
            absent[name] = f"{counts['failed']} of {counts['runs']} runs of {name} failed; its table `runs` says why"
        else:
            series[name], efforts[name] = series_rows(folder / name), _effort(folder / name)
    return Evidence(series, absent, efforts, quick)


def _effort(folder: Location) -> Effort:
    """What the runs of a measured experiment took, from its table of runs."""
    runs = read_table(read_manifest(folder, KIND).tables_in(folder), tables.RUNS)
    return Effort(len(runs), len(set(runs["seed"].to_pylist())), sum(filter(None, runs["cpu_s"].to_pylist())))


def _as_dict(item: Judgement) -> dict[str, str]:
    claim, finding = item.claim, item.finding
    return {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "claimed": claim.claimed,
        "band": claim.band,
        "measured": finding.measured,
        "grade": finding.grade,
        "remark": _remark(item),
        "experiments": ", ".join(claim.experiments),
    }


def _remark(item: Judgement) -> str:
    """The remark, and which run shows it; a cause that no run shows is called a guess."""
    finding = item.finding
    if finding.grade in (Grade.MET, Grade.NOT_HERE) or not finding.remark:
        return finding.remark
    shown = f"shown by {finding.cause}: `grapevine reproduce {item.claim.id}`" if finding.cause else "a guess"
    return f"{finding.remark} ({shown})"


def _summary(judged: list[Judgement]) -> str:
    """How many claims have each grade, e.g. "of 13 claims: 7 met, 2 direction, 4 not met"."""
    counts = Counter(item.finding.grade for item in judged)
    return f"of {len(judged)} claims: " + ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])


def as_markdown(
    judged: list[Judgement], efforts: dict[str, Effort] | None = None, *, quick: bool, before: str = ""
) -> str:
    """docs/results.md: a section per paper. In `before`, sections that were not asked for in full stay as they are."""
    sections = {section.split("\n", 1)[0]: section for section in before.split("\n## ")[1:]}
    for paper in dict.fromkeys(item.claim.paper for item in judged):
        of_paper = [item for item in judged if item.claim.paper == paper]
        if paper not in sections or len(of_paper) == sum(claim.paper == paper for claim in CLAIMS.values()):
            sections[paper] = _section(paper, of_paper, efforts or {})
    lines = [
        "# Claimed and measured",
        "",
        f"Written by `grapevine reproduce` ({__version__}); do not edit it by hand. `make results` writes it again,",
        "`grapevine reproduce PAPER --write docs/results.md` the section of one paper.",
        *(["", "**Quick version: smaller networks than the papers'.**"] if quick else []),
    ]
    order = {claim.paper: None for claim in CLAIMS.values()}
    return "\n".join([*lines, ""]) + "".join(f"\n## {sections[paper]}" for paper in order if paper in sections)


def _section(paper: str, judged: list[Judgement], efforts: dict[str, Effort]) -> str:
    lines = [
        paper,
        "",
        f"{_summary(judged).capitalize()}.",
        "",
        "| id | where | claimed | band | measured | grade | remark | experiment |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for item in judged:
        row = _as_dict(item)
        cells = [row[key] for key in ("id", "where", "claimed", "band", "measured", "grade", "remark", "experiments")]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    done = [name for item in judged for name in item.claim.experiments if name in efforts]
    if done:
        lines += ["", "| experiment | runs | seeds | CPU minutes |", "|---|---|---|---|"]
        for name in dict.fromkeys(done):
            effort = efforts[name]
            lines.append(f"| {name} | {effort.runs} | {effort.seeds} | {effort.cpu_s / 60:.1f} |")
    return "\n".join(lines) + "\n"
