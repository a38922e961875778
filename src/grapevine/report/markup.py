"""The few pieces of HTML that a page is made of. Every text from outside passes through `text`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as text
from typing import Any

__all__ = ["Cell", "data_block", "definition_list", "link", "policy", "sortable_table", "text"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell: what is shown, and what it is sorted by."""

    html: str
    by: float | str | None = None

    @classmethod
    def of(cls, shown: str, by: float | str | None = None) -> Cell:
        """A cell of plain text."""
        return cls(text(shown), shown if by is None else by)


def sortable_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, numeric: set[int]) -> str:
    """A table in a box that scrolls by itself; its headings are buttons that page.js makes sort.

    The box takes the keyboard's focus, because a box that scrolls must be reachable without a mouse.
    """
    heads = "".join(
        f'<th scope="col"{_numeric(i in numeric)}><button type="button">{text(name)}</button></th>'
        for i, name in enumerate(columns)
    )
    body = "".join(
        f"<tr>{''.join(_cell(cell, i == 0, i in numeric) for i, cell in enumerate(row))}</tr>" for row in rows
    )
    title = f"<caption><span>{text(caption)}.</span></caption>"
    table = f'<table class="sortable">{title}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">{table}</div>'


def _cell(cell: Cell, first: bool, numeric: bool) -> str:
    tag = 'th scope="row"' if first else "td"
    by = f' data-by="{text(str(cell.by))}"' if cell.by is not None else ""
    return f"<{tag}{_numeric(numeric)}{by}>{cell.html}</{tag[:2]}>"


def _numeric(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def definition_list(entries: Sequence[tuple[str, str]]) -> str:
    """Terms with their descriptions; empty ones are left out."""
    items = "".join(f"<div><dt>{text(term)}</dt><dd>{text(meaning)}</dd></div>" for term, meaning in entries if meaning)
    return f'<dl class="facts">{items}</dl>'


def link(address: str, shown: str) -> str:
    """A link; the address is already quoted for URLs."""
    return f'<a href="{text(address)}">{text(shown)}</a>'


def data_block(identifier: str, content: Any) -> str:
    """JSON inside a page. `<` is written as an escape, so no content can end the block."""
    written = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f'<script type="application/json" id="{identifier}">{safe}</script>'


def policy(scripts: Sequence[str]) -> str:
    """A content security policy that runs exactly these inline scripts and loads nothing from anywhere."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
