"""`grapevine demo`: the whole way on small defaults, from workload to report."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, MasterOption, out
from grapevine.cli.experiment import print_series
from grapevine.cli.storage import stage_of
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.pipeline.sweep import sweep


def demo(
    out_: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results and the page.")
    ] = "demo-out",
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Run the quickstart experiment: Vitis, RVR and OPT on two small workloads, and a page that compares them."""
    from grapevine.report.page import write_page  # here, because plotting takes a second to import

    experiment = read_experiment(published_experiments()["quickstart"])
    stage = stage_of(conf, master=master)
    folder = stage.location(out_)
    manifest = sweep(stage, experiment, folder, resume=True)
    assert manifest is not None
    page = write_page(folder)
    print_series(folder, manifest)
    out.print(f"\nThe page: [bold]{escape(str(page))}[/]    Next: grapevine run --help")
