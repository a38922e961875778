"""`grapevine report`: an experiment as one page for the browser."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, JsonOption, out, print_json
from grapevine.cli.storage import for_files
from grapevine.model.location import local_copy


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="An experiment that `grapevine run` wrote.")],
    target: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page. Default: report.html in the experiment's folder."),
    ] = None,
    json: JsonOption = False,
    conf: ConfOption = None,
) -> None:
    """Write an experiment's figures, overlay and tables as one HTML file, which opens anywhere and loads nothing."""
    from grapevine.report.page import write_page  # here, because plotting takes a second to import

    files = for_files(conf, quiet=json)
    experiment = files.location(folder)
    page = write_page(experiment, None if target is None else files.location(target))
    if json:
        with local_copy(page) as local:
            print_json({"experiment": str(experiment), "page": str(page), "bytes": local.stat().st_size})
        return
    out.print(f"The page: [bold]{escape(str(page))}[/]", highlight=False)
