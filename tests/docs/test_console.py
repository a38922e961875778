"""Commands that the documentation shows exist, with these options; they are parsed and not run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grapevine.cli.lazy import load_whole
from grapevine.cli.main import COMMANDS
from grapevine.experiment.description import read_experiment
from grapevine.model.errors import UsageError
from tests.docs.markdown import PAGES, TREE, blocks_of, names

PROMPT = "$ "
BETWEEN = {"&&", "||", "|", "&", ";"}  # commands of one line


def commands_of(text: str) -> Iterator[list[str]]:
    """The words of every command behind a prompt in the console blocks of a page."""
    for block in blocks_of(text):
        if block.language != "console":
            continue
        joined = re.sub(r"\\\n\s*", " ", block.text)
        for line in joined.splitlines():
            if line.startswith(PROMPT):
                yield from _split(line.removeprefix(PROMPT))


def _split(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if word not in BETWEEN:
            words.append(word)
        elif words:
            yield words
            words = []


def mistake_of(words: list[str]) -> str | None:
    """What is wrong with a command of ours, or a target of make; None for what is right, or somebody else's."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]  # set for this command
    if not words:
        return None
    if words[0] == "make":
        known = set(re.findall(r"^([a-z-]+):", (TREE / "Makefile").read_text(), re.MULTILINE))
        wrong = [word for word in words[1:] if "=" not in word and word not in known]
        return f"make has no {wrong[0]}" if wrong else None
    return _parse(words[1:]) if words[0].rsplit("/")[-1] == "grapevine" else None


def _parse(words: list[str]) -> str | None:
    if not words or words[0] not in COMMANDS:
        return None if words in (["--help"], ["--version"]) else f"there is no command {' '.join(words)}"
    command: Any = load_whole(words[0], COMMANDS[words[0]])
    rest = words[1:]
    while hasattr(command, "commands") and rest:
        if rest[0] not in command.commands:
            return f"{command.name} has no {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    if "--help" in rest:
        return None
    try:
        command.make_context(command.name, list(rest))
    except Exception as error:  # whatever the parser calls its own
        said = error.format_message() if hasattr(error, "format_message") else error
        return f"{' '.join(words)}: {said}"
    return None


WITH_COMMANDS = [page for page in PAGES if list(commands_of(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=names(WITH_COMMANDS))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    mistakes = [mistake_of(words) for words in commands_of(page.read_text(encoding="utf-8"))]
    assert not [mistake for mistake in mistakes if mistake]


@pytest.mark.parametrize(
    "right",
    [
        "grapevine simulate vitis -w high --set table_size=20 --out a",
        ".venv/bin/grapevine workload sample bfs twitter --users 10000 --out sample   # a comment",
        "GRAPEVINE_DATA=hdfs:///traces grapevine run a.toml --out b && grapevine report b",
        "grapevine node --help",
        "make test ARGS=--large",
        "curl -s --data-binary @- http://127.0.0.1/publish",
    ],
)
def test_right_commands_are_taken(right: str) -> None:
    assert [mistake_of(words) for words in commands_of(f"```console\n$ {right}\n```")] == [None] * (1 + ("&&" in right))


@pytest.mark.parametrize(
    "wrong",
    [
        "grapevine simulat vitis",
        "grapevine simulate vitis --workload a --out b --tabel-size 3",
        "grapevine simulate vitis --out b",
        "grapevine simulate vitis --workload a --out b --rounds many",
        "grapevine workload sample dfs a --out b",
        "true && grapevine report",
        "make everything",
    ],
)
def test_a_wrong_command_is_noticed(wrong: str) -> None:
    *_, last = [mistake_of(words) for words in commands_of(f"```console\n$ {wrong}\n```")]
    assert last


def test_lines_are_joined_and_output_is_no_command() -> None:
    page = "```console\n$ grapevine report \\\n    a\ngrapevine said this\n```\n```python\n$ grapevine no\n```\n"
    assert list(commands_of(page)) == [["grapevine", "report", "a"]]


EXPERIMENTS = [
    (page, block.text)
    for page in PAGES
    for block in blocks_of(page.read_text(encoding="utf-8"))
    if block.language == "toml" and "[[systems]]" in block.text
]


@pytest.mark.parametrize(("page", "text"), EXPERIMENTS, ids=names([page for page, _ in EXPERIMENTS]))
def test_the_experiments_of_a_page_have_no_mistakes(page: Path, text: str, tmp_path: Path) -> None:
    (tmp_path / "shown.toml").write_text(text)
    try:
        read_experiment(tmp_path / "shown.toml")
    except UsageError as error:
        pytest.fail(f"{page.name}: {error}")
