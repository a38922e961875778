"""Markdown as generated pages need it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from rich.text import Text

_CODE_WITH_BAR = re.compile(r"`([^`]*\|[^`]*)`")
_READING = re.compile(r"docs/(papers\.md#[\w-]+)")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table. A bar would begin another cell, so it is written as a reference, and code with one in HTML:
    inside backticks a reference would be shown as it is written."""
    heads = list(heads)
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(_cell(text) for text in row) + " |"


def _cell(text: str) -> str:
    with_bars = _CODE_WITH_BAR.sub(lambda found: f"<code>{html.escape(found[1])}</code>", text)
    return with_bars.replace("|", "&#124;").replace("\n", " ")


def code(text: str) -> str:
    """As code; nothing for no text."""
    return f"`{text}`" if text else ""


def from_rich(text: str) -> str:
    """A help text with rich's markup: what is bold there is a name or a command, and becomes code."""
    parsed = Text.from_markup(text)
    bold = sorted((span.start, span.end) for span in parsed.spans if "bold" in str(span.style))
    made, at = "", 0
    for start, end in bold:
        made += parsed.plain[at:start] + code(parsed.plain[start:end])
        at = end
    return made + parsed.plain[at:]


def with_readings(text: str) -> str:
    """Mentions of docs/papers.md as links, for pages in a folder below docs/."""
    return _READING.sub(r"[our reading](../\1)", text)
