"""A page as one HTML file: its head, its style, and the scripts that it carries, so that it loads nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

import vl_convert

from grapevine.report.markup import policy, text

CREDITS = "Charts are drawn by Vega, Vega-Lite and Vega-Embed (BSD-3-Clause), which this page carries."


def document(title: str, body: Sequence[str], *, charts: bool) -> str:
    """The whole file. `body` is HTML; with `charts` it has places for them, and the page carries what draws them."""
    css, *scripts = map(_part, ("page.css", "page.js", "downloads.js"))
    if charts:
        scripts.insert(0, chart_library())
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">',
            f'<title>{text(title)}</title>\n<style id="style">\n{css}</style>\n</head>\n<body>',
            *body,
            *(f'<script type="module">{part}</script>' for part in scripts),
            "</body>\n</html>\n",
        ]
    )


def light_colours() -> dict[str, str]:
    """The style sheet's variables as they are where the page is light: its first block gives them."""
    root = _part("page.css").partition("}")[0]
    return dict(re.findall(r"(--[\w-]+):\s*([^;]+);", root))


def _part(name: str) -> str:
    return resources.files("grapevine.report").joinpath(name).read_text("utf-8")


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; to bundle them takes two seconds."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle
