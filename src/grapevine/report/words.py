"""Names, times and lists as a person reads them; how numbers are written is said in `model/numbers.py`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from grapevine.model.numbers import number


def parameter_name(key: str) -> str:
    """A parameter's key in words."""
    return key.replace("_", " ")


def duration(seconds: float | None) -> str:
    """Seconds as 0.4 s, 3 min 20 s or 2 h 5 min."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def value_name(value: Any) -> str:
    """A parameter's value; JSON's null is what the command line calls `none`."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else number(value)


def setting(key: str, value: Any) -> str:
    """A parameter with its value, as one label."""
    return f"{parameter_name(key)} {value_name(value)}"


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def seed_range(seeds: Iterable[int]) -> str:
    """1, 2, 5 — and 1–20 where none is left out."""
    ordered = sorted(set(seeds))
    if len(ordered) > 3 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}–{ordered[-1]}"
    return ", ".join(map(str, ordered))


def sentence(text: str) -> str:
    """With a capital at the start, whatever else is in it."""
    return text[:1].upper() + text[1:]
