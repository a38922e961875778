"""`grapevine demo`: the whole way on small defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import MasterOption, out
from grapevine.cli.workload import print_profile
from grapevine.pipeline.generate import generate
from grapevine.pipeline.profile import profile
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage
from grapevine.synthetic.vitis import VitisHigh, VitisLow, VitisRandom

PATTERNS = {"random": VitisRandom, "low": VitisLow, "high": VitisHigh}


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the workloads and the picture.")] = Path(
        "demo-out"
    ),
    nodes: Annotated[int, typer.Option(min=10, help="Nodes of each workload.")] = 5_000,
    master: MasterOption = None,
) -> None:
    """Generate the three subscription patterns of Vitis §IV-A and show how differently interests overlap in them."""
    from grapevine.report.profile_page import FILES, draw_profile  # here, because plotting takes 0.3 s to import

    models = {name: pattern(nodes=nodes) for name, pattern in PATTERNS.items()}
    stage = Stage(SparkSettings.gather(master=master))
    for name, model in models.items():
        generate(stage, f"vitis-{name}", model, folder / f"vitis-{name}", force=True)
    target = folder / "profile"
    profile(stage, [folder / f"vitis-{name}" for name in models], target, force=True, finish=draw_profile)
    print_profile(target)
    out.print(f"\nThe picture: [bold]{escape(str(target / FILES[0]))}[/]    Next: grapevine workload --help")
