"""`grapevine workload sample KIND`: a command for every way to cut a workload."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from grapevine.cli.from_config import add_config_command, option
from grapevine.cli.storage import stage_of
from grapevine.cli.workload.common import COMMON, OUT, print_workload
from grapevine.pipeline.sample import SAMPLES, sample

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Cut a smaller workload out of a large one.")
_SOURCE = option("source", Annotated[str, typer.Argument(metavar="DIR", help="The workload to sample.")])


def _run(config: Any, *, source: str, out_: str, seed: int, force: bool, json: bool, **spark: Any) -> None:
    stage = stage_of(**spark, quiet=json)
    target = stage.location(out_)
    print_workload(target, sample(stage, stage.location(source), target, config, seed=seed, force=force), json)


for _kind in SAMPLES:
    add_config_command(app, _kind.name, _kind, _run, first=[_SOURCE, OUT], last=COMMON)
