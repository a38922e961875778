"""How numbers are written for people, the same on the command line and on the page."""

from __future__ import annotations

import math
from typing import Any


def number(value: Any, *, percent: bool = False) -> str:
    """One value: 12,345 or 0.1234 or 9.04%; a dash for what is not there. What is no number is written as it is."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if percent:
        return f"{value:.2%}"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def interval(mean: float, half: float, *, percent: bool = False) -> str:
    """A mean with half its confidence interval, both to the digits that the interval supports."""
    if not half > 0 or not math.isfinite(half):
        return number(mean, percent=percent)
    if percent:
        return f"{mean:.2%} ± {half:.2%}"
    digits = max(0, min(3, 1 - math.floor(math.log10(half))))
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"
