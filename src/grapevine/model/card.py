"""What a thing says of itself to people: facts in a line, and in a notebook as a small table.

All HTML of notebooks is made here, and every text is escaped here. The looks are inline and without colours of their
own, so that a card fits light and dark notebooks, and survives being exported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

Facts = Sequence[tuple[str, str]]  # what it is called, and its value with the unit

_SIDE = "text-align:left;vertical-align:top;padding:0 1.5em 0 0"
_VALUE = "text-align:right;padding:0"
_GROUP = "text-align:left;padding:0.5em 0 0 0"


def card(title: str, about: str, groups: Mapping[str, Facts]) -> str:
    """HTML: a title, a line about it, and groups of facts below their names. Groups without facts are left out."""
    rows = "".join(_group(name, facts) for name, facts in groups.items() if facts)
    subtitle = f'<div style="opacity:0.7">{escape(about)}</div>' if about else ""
    return f'<div><b>{escape(title)}</b>{subtitle}<table style="border-collapse:collapse">{rows}</table></div>'


def _group(name: str, facts: Facts) -> str:
    head = f'<tr><th colspan="2" style="{_GROUP}">{escape(name)}</th></tr>'
    return head + "".join(
        f'<tr><td style="{_SIDE}">{escape(fact)}</td><td style="{_VALUE}">{escape(value)}</td></tr>'
        for fact, value in facts
    )


def counted(count: int, one: str, more: str = "") -> str:
    """1 node, 2,000 nodes; `more` where the plural is not made by an s."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
