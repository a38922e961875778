"""`grapevine workload generate MODEL`: a command for every model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from grapevine.cli.from_config import add_config_command, option
from grapevine.cli.workload.common import COMMON, OUT, print_workload
from grapevine.kernels.jit import compiling_told
from grapevine.model.config import check_seed
from grapevine.model.location import is_url
from grapevine.synthetic import MODELS
from grapevine.synthetic.folder import fits_a_task, generate_here

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Generate a workload from a published model.")
_PARTITIONS = option(
    "partitions", Annotated[int | None, typer.Option(min=1, help="Spark tasks; the rows do not depend on it.")], None
)


def _run(name: str) -> Callable[..., None]:
    def run(model: Any, *, out_: str, seed: int, force: bool, json: bool, partitions: int | None, **spark: Any) -> None:
        asked_for_spark = partitions is not None or is_url(out_) or any(spark.values())
        if not asked_for_spark and fits_a_task(model):
            check_seed(seed)
            with compiling_told(name):
                manifest = generate_here(name, model, Path(out_), seed=seed, force=force)
            print_workload(Path(out_), manifest, json)
            return
        from grapevine.cli.storage import stage_of  # here, since Spark takes a second to import
        from grapevine.pipeline.generate import generate

        stage = stage_of(**spark, quiet=json)
        target = stage.location(out_)
        manifest = generate(stage, name, model, target, seed=seed, partitions=partitions, force=force)
        print_workload(target, manifest, json)

    return run


for _name, _model in MODELS.items():
    add_config_command(app, _name, _model, _run(_name), first=[OUT], last=[*COMMON, _PARTITIONS])
