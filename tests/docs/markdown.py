"""Markdown as the tests of the documentation read it: blocks of code, links, and what links may lead to.

No renderer is needed. An anchor counts when the site and a forge that shows the files agree on it: both make it of the
heading's words, each by a rule of its own. `{#name}` behind a heading, which the site knows, counts as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).resolve().parents[2]
DOCS = TREE / "docs"
PAGES = [TREE / "README.md", TREE / "CONTRIBUTING.md", TREE / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^\s*(```+|~~~+)\s*([\w-]*)")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*(?:\{#([\w-]+)\})?\s*$")
_CODE = re.compile(r"`[^`]*`")
_ID = re.compile(r"""<\w+[^>]*\sid="([\w-]+)\"""")
_LINK = re.compile(r"""!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?[^)]*\)""")
_HTML_LINK = re.compile(r"""<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)\"""")


class Block(NamedTuple):
    """A fenced block of code."""

    language: str
    text: str
    line: int  # of its first line in the file, from 1
    not_run: str  # why it is not run: what a comment before it says; empty if there is none
    prints: str | None  # the text block that follows at once: what it prints


def names(pages: list[Path]) -> list[str]:
    """Pages as the tests call them."""
    return [str(page.relative_to(TREE)) for page in pages]


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = text.splitlines()
    before, i = "", 0  # what stands between a block and the one before
    while i < len(lines):
        opened = _FENCE.match(lines[i])
        if opened is None:
            before += lines[i].strip()
            i += 1
            continue
        end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == opened[1])
        content = "\n".join(lines[i + 1 : end]) + "\n"
        if opened[2] == "text" and found and not before:
            found[-1] = found[-1]._replace(prints=content)
        excuse = _NOT_RUN.search(before)
        reason = excuse[1] if excuse and before.endswith(excuse[0]) else ""
        found.append(Block(opened[2], content, i + 2, reason, None))
        before, i = "", end + 1
    return found


def prose_of(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of blocks, with their numbers."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        opened = _FENCE.match(line)
        if fence is None and opened:
            fence = opened[1]
        elif fence is not None:
            fence = None if line.strip() == fence else fence
        else:
            yield number, line


def links_of(text: str) -> Iterator[tuple[int, str]]:
    """Every link and picture of a page, with its line; those that stand as code do not count."""
    for number, line in prose_of(text):
        for pattern in (_LINK, _HTML_LINK):
            yield from ((number, found[1]) for found in pattern.finditer(_CODE.sub("`code`", line)))


def anchors_of(text: str) -> set[str]:
    """What a link to this page may name after `#`."""
    found: set[str] = set()
    for _, line in prose_of(text):
        found |= set(_ID.findall(line))
        if heading := _HEADING.match(line):
            words = _LINK.sub(lambda link: link[0].partition("](")[0].strip("!["), heading[1]).replace("`", "")
            found |= {heading[2]} if heading[2] else {_on_site(words)} & {_on_forge(words)}
    return found


def _on_site(words: str) -> str:
    """Python-Markdown's rule: ASCII alone, and one hyphen for any number of spaces and hyphens."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _on_forge(words: str) -> str:
    """The rule of forges: letters of any script, and a hyphen for each space."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())
