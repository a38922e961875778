"""`grapevine report`: an experiment as one page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import JsonOption, out, print_json


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An experiment that `grapevine run` wrote.")],
    target: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page. Default: report.html in the experiment's folder."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write an experiment's figures, overlay and tables as one HTML file, which opens anywhere and loads nothing."""
    from grapevine.report.page import write_page  # here, because plotting takes a second to import

    page = write_page(folder, target)
    if json:
        print_json({"experiment": str(folder), "page": str(page), "bytes": page.stat().st_size})
        return
    out.print(f"The page: [bold]{escape(str(page))}[/]", highlight=False)
