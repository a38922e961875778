"""Every link of the documentation leads somewhere, on the site and where the files are shown as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import DOCS, PAGES, TREE, anchors_of, links_of, names

ELSEWHERE = re.compile(r"^[a-z]+:")  # https:, mailto:
MENTION = re.compile(r"\bdocs/([\w/.-]+\.(?:md|png|svg))(?:#([\w-]+))?")


def mistakes_of(page: Path) -> list[str]:
    """Links of a page that lead nowhere: their line, and why."""
    text = page.read_text(encoding="utf-8")
    found = []
    for line, link in links_of(text):
        if ELSEWHERE.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file():
            found.append(f"line {line}: {link}: there is no such file")
        elif page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
            found.append(f"line {line}: {link}: is outside of docs/, so the site has no such page")
        elif anchor and anchor not in anchors_of(target.read_text(encoding="utf-8")):
            found.append(f"line {line}: {link}: there is no such heading")
    return found


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not mistakes_of(page)


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# Here\n")
    page = tmp_path / "a.md"
    page.write_text("[1](b.md) [2](b.md#here) [3](#top) [4](c.md) [5](b.md#there) [6](https://example.org)\n# Top\n")
    assert mistakes_of(page) == [
        "line 1: c.md: there is no such file",
        "line 1: b.md#there: there is no such heading",
    ]


def test_what_sources_say_of_the_documentation_is_there() -> None:
    """Docstrings and parameters name pages and headings: `docs/papers.md#ring`."""
    found = []
    for folder in ("src", "tests", "bench", "pages", "experiments"):
        for source in sorted((TREE / folder).rglob("*")):
            if source.suffix not in (".py", ".toml") or source == Path(__file__):
                continue
            for path, anchor in MENTION.findall(source.read_text(encoding="utf-8")):
                target = DOCS / path
                if not target.is_file() or (anchor and anchor not in anchors_of(target.read_text(encoding="utf-8"))):
                    found.append(f"{source.relative_to(TREE)}: docs/{path}{'#' * bool(anchor)}{anchor}")
    assert not found
