"""`grapevine torture`: whole networks of live nodes in virtual time, under faults that seeds decide."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import Progress

from grapevine.cli.console import JsonOption, err, out, print_json, table
from grapevine.cli.from_config import add_config_command, option
from grapevine.net.torture import Campaign, Outcome, Settings, run_seed, run_seeds, shrunk

_SHOWN = 5  # broken promises of a seed


def _run_torture(
    settings: Settings,
    *,
    seeds: int,
    first_seed: int,
    seed: int | None,
    transcript: bool,
    shrink: bool,
    json: bool,
) -> None:
    """Run the command; the arguments are its options (`add_to`)."""
    if seed is not None:
        campaign = _one(seed, settings, transcript=transcript, shrink=shrink, json=json)
    else:
        campaign = _many(range(first_seed, first_seed + seeds), settings, shrink=shrink, json=json)
    if json:
        print_json(campaign.as_dict())
    else:
        _print_totals(campaign)
    if campaign.failed:
        raise SystemExit(1)


def _one(seed: int, settings: Settings, *, transcript: bool, shrink: bool, json: bool) -> Campaign:
    outcome, campaign = run_seed(seed, settings), Campaign()
    campaign.add(outcome)
    if not json:
        if transcript:
            out.print("\n".join(outcome.transcript), markup=False, highlight=False, soft_wrap=True)
        out.print(f"seed {seed}: digest {outcome.digest}", highlight=False)
        if not outcome.is_sound:
            _print_failure(outcome, settings, shrink=shrink)
    return campaign


def _many(seeds: range, settings: Settings, *, shrink: bool, json: bool) -> Campaign:
    campaign, first_failed = Campaign(), None
    with Progress(console=err, transient=True, disable=json) as progress:
        task = progress.add_task(f"{len(seeds)} seeds", total=len(seeds))
        for outcome in run_seeds(seeds, settings):
            campaign.add(outcome)
            if not outcome.is_sound:
                first_failed = first_failed or outcome
                progress.console.print(f"seed {outcome.seed} broke a promise: {outcome.violations[0]}", markup=False)
            progress.update(task, advance=1, description=f"seed {outcome.seed}, {len(campaign.failed)} failed")
    if first_failed is not None and not json:
        _print_failure(first_failed, settings, shrink=shrink)
    return campaign


def _print_failure(outcome: Outcome, settings: Settings, *, shrink: bool) -> None:
    """Say what was broken, how to see it again, and with which few faults it still happens."""
    for violation in outcome.violations[:_SHOWN]:
        out.print(f"  {violation}", markup=False, highlight=False, soft_wrap=True)
    if len(outcome.violations) > _SHOWN:
        out.print(f"  and {len(outcome.violations) - _SHOWN} more", highlight=False)
    out.print(f"Replay: {_command(outcome.seed, settings)}", markup=False, highlight=False, soft_wrap=True)
    if not shrink:
        return
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("leaving faults out", total=None)
        short = shrunk(
            outcome,
            settings,
            tell=lambda runs, left: progress.update(task, description=f"run {runs}: {left} faults left"),
        )
    out.print(f"With {len(short.faults)} of its {len(outcome.faults)} faults seed {short.seed} still fails:")
    out.print("\n".join(short.transcript), markup=False, highlight=False, soft_wrap=True)


def _command(seed: int, settings: Settings) -> str:
    """What to type to see this very run again."""
    default = Settings().as_dict()
    changed = {key: value for key, value in settings.as_dict().items() if value != default[key]}
    options = [f"--{key.replace('_', '-')} {value:g}" for key, value in changed.items()]
    return " ".join(["grapevine torture", f"--seed {seed}", *options, "--transcript"])


def _print_totals(campaign: Campaign) -> None:
    found = campaign.as_dict()
    made = table("", "", "")
    made.show_header = False
    rows = {
        "seeds": f"{campaign.seeds:,}",
        "virtual node-hours": f"{found['virtual_node_hours']:,.1f}",
        "CPU time, s": f"{campaign.cpu_s:,.1f}",
        "virtual node-hours per CPU hour": f"{found['virtual_node_hours_per_cpu_hour']:,.0f}",
        "events published": f"{found['published']:,}",
        "  acknowledged": f"{found['acknowledged']:,}",
        "  refused by a full disk": f"{found['refused']:,}",
        "events read": f"{found['read']:,}",
        "events recovered": f"{found['recovered']:,}",
        "losses that nodes reported": f"{found['losses_reported']:,}",
        "slowest healing, s": f"{campaign.slowest_healing_s:,}",
        **{f"faults: {kind}": f"{count:,}" for kind, count in campaign.faults.items()},
        "seeds that broke a promise": ", ".join(map(str, campaign.failed)) or "none",
    }
    for name, value in rows.items():
        made.add_row(name, value)
    out.print(made)


_HELP = """Run networks of live nodes in virtual time, under crashes, cuts and full disks that a seed decides.

Nodes, stores and signatures are the real ones; time, network and disks are simulated, so that a run is a function of
its seed. Every event that was acknowledged has to reach every durable subscriber, once and unchanged, after the faults
have stopped. A seed that breaks a promise is said, with how to replay it and with the few faults that matter; the exit
code is 1 then."""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app: an option for every field of `Settings`, and those below."""
    first = [
        option("seeds", Annotated[int, typer.Option(min=1, help="How many seeds.")], 100),
        option("first_seed", Annotated[int, typer.Option(min=0, help="The first of them.")], 1),
        option("seed", Annotated[int | None, typer.Option(min=0, help="This one only.")], None),
        option(
            "transcript", Annotated[bool, typer.Option("--transcript", help="Print what happened in --seed.")], False
        ),
        option(
            "shrink",
            Annotated[bool, typer.Option(help="Look for the few faults with which the first failing seed fails.")],
            True,
        ),
    ]
    last = [option("json", JsonOption, False)]
    add_config_command(app, "torture", Settings, _run_torture, first=first, last=last, help=_HELP)
