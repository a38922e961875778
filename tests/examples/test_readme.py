"""The list of examples: every one of them is in it, with its command, and has a test."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.programs import EXAMPLES

NAMES = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb", ".html")}
TEXT = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_every_example_is_listed_and_what_is_listed_exists() -> None:
    assert set(re.findall(r"^\| \[([\w.]+)\]\(\1\) \|", TEXT, re.MULTILINE)) == NAMES


def test_every_program_is_shown_with_its_command_as_its_own_head_has_it() -> None:
    commands = re.findall(r"^\$ \.venv/bin/(python examples/(\w+\.py).*?)(?: +#.*)?$", TEXT, re.MULTILINE)
    assert {name for _, name in commands} == {name for name in NAMES if name.endswith(".py")}
    for command, name in commands:
        assert command in (EXAMPLES / name).read_text(encoding="utf-8")


def test_every_example_has_a_test() -> None:
    # of a page, beside the door that it uses
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parents[1].rglob("test_*.py")}
    assert {name.partition(".")[0] for name in NAMES} <= tests
