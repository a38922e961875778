"""Pages that are written from the sources say what the sources say."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from pages import DOCS, PAGES
from pages.commands import all_commands
from pages.programs import FOR_US, MODULES
from pages.systems import EXPLAINED

from grapevine.systems.registry import all_systems


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_is_up_to_date(path: str) -> None:
    assert (DOCS / path).read_text(encoding="utf-8") == PAGES[path](), "run `make pages`"


def test_every_command_and_every_option_has_its_place() -> None:
    text = (DOCS / "reference/commands.md").read_text() + (DOCS / "reference/models.md").read_text()
    for path, command in all_commands():
        assert re.search(rf"^#+ grapevine {' '.join(path)}$", text, re.MULTILINE), path
        for parameter in command.params:
            assert parameter.opts[0] == "--help" or f"{parameter.opts[0]}" in text or parameter.metavar in text


def test_every_public_name_has_its_place() -> None:
    text = (DOCS / "reference/python.md").read_text()
    for module in MODULES:
        for name in import_module(module).__all__:
            if callable(getattr(import_module(module), name)):
                assert f"### {name}\n" in text


def test_what_is_left_out_of_the_python_reference_is_still_there() -> None:
    public = {
        name: getattr(import_module(module), name) for module in MODULES for name in import_module(module).__all__
    }
    for owner, _, name in (left_out.partition(".") for left_out in FOR_US):
        assert hasattr(public[owner], name)


def test_every_system_has_its_place_and_the_papers_are_explained() -> None:
    text = (DOCS / "reference/systems.md").read_text()
    assert re.findall(r"^## ([a-z-]+)$", text, re.MULTILINE) == list(all_systems())
    for page in EXPLAINED.values():
        assert (DOCS / page).is_file()
        assert not page.startswith("explain/") or (DOCS / page).with_suffix(".svg").is_file()
