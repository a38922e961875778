"""Pages of docs/ that are written from the sources, so that they cannot say anything else: `python -m pages`.

A module a page (or two), each a function without arguments that returns Markdown; `PAGES` names them by their path.
`tests/docs/test_pages.py` compares what is stored with what they would write now.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grapevine.systems.dictionary import tables_and_metrics
from pages.commands import commands_page, models_page
from pages.programs import python_page
from pages.systems import systems_page

DOCS = Path(__file__).resolve().parents[1] / "docs"

PAGES: dict[str, Callable[[], str]] = {  # by path below docs/
    "tables.md": tables_and_metrics,
    "reference/commands.md": commands_page,
    "reference/models.md": models_page,
    "reference/python.md": python_page,
    "reference/systems.md": systems_page,
}
