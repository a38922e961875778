"""Line numbers of the keys in a TOML file: the standard reader tells values, but not where they stood."""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]  # ("workloads", 0, "nodes")

_HEADER = re.compile(r"^\s*(\[\[?)\s*([\w.\-\"]+)\s*\]\]?")
_KEY = re.compile(r"^\s*([\w\-]+|\"[^\"]+\")\s*=")


def key_lines(text: str) -> dict[Path, int]:
    """The line of every table header and key. Good for files with one key a line, as people write them."""
    found: dict[Path, int] = {}
    seen: Counter[str] = Counter()
    section: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = header[2].strip('"')
            section = (name, seen[name]) if header[1] == "[[" else tuple(name.split("."))
            seen[name] += 1
            found.setdefault(section, number)
        elif key := _KEY.match(line):
            found.setdefault((*section, key[1].strip('"')), number)
    return found


def nearest_line(lines: dict[Path, int], path: Path) -> int:
    """The line of this key, or of the nearest table above it; 1 when nothing is known."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)
