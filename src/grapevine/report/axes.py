"""The axes of a chart: what lies along them, the part of it that is shown, and how many pixels it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Point = dict[str, Any]  # line, x, y, low, high, shown (for the tooltip), mark (whether it gets a marker)
_STEPS = 5  # that an axis is divided into, more or less


@dataclass(frozen=True, slots=True)
class XAxis:
    """What lies along x: numbers, or categories in this order."""

    title: str
    categories: tuple[Any, ...] | None = None
    ticks: tuple[float, ...] | None = None  # where few values occur, exactly these
    log: bool = False
    connected: bool = True  # neighbours are joined by a line
    shared: bool = True  # several series may stand at one place; else each has a place of its own, under its name
    percent: bool = False

    def place(self, x: Any) -> float:
        """Where a value lies, on a scale of no particular unit: only differences between places mean anything."""
        if self.categories is not None:
            return float(self.categories.index(x))
        return math.log(x) if self.log else float(x)


@dataclass(frozen=True, slots=True)
class YAxis:
    """What lies along y, and the part of it that is shown; panels of one figure share it."""

    title: str
    percent: bool
    domain: tuple[float, float]
    log: bool = False

    def pixel(self, value: float, height: int) -> float:
        """How far below the upper end a value lies."""
        low, high, at = (math.log(end) if self.log else end for end in (*self.domain, value))
        return height * (high - at) / (high - low)

    def value(self, pixel: float, height: int) -> float:
        """The value that lies so far below the upper end."""
        low, high = (math.log(end) if self.log else end for end in self.domain)
        at = high - (high - low) * pixel / height
        return math.exp(at) if self.log else at


def y_axis(
    title: str, points: Sequence[Point], *, percent: bool, more: Sequence[float] = (), log: bool = False
) -> YAxis:
    """An axis that holds all points, from 0 unless that would press them together, and that ends at round numbers.

    Confidence intervals of few seeds may reach beyond what is possible; the axis does not follow them there. `log` is
    heeded where all values allow it.
    """
    values = [point["y"] for point in points] + list(more)
    least, most = min(values), max(values)
    if log and least > 0:
        low, high = max(at for at in _powers(least) if at <= least), min(at for at in _powers(most) if at >= most)
        return YAxis(title, percent, (low, high if high > low else 10 * low), log=True)
    low = min([least, *(point["low"] for point in points)])
    high = max([most, *(point["high"] for point in points)])
    if least >= 0:
        low = max(low, 0.0)
    if percent and most <= 1:
        high = min(high, 1.0)
    if low < 0.6 * high or low == high:
        low = min(low, 0.0)
    if low == high:
        high = low + 1.0
    return YAxis(title, percent, round_ends(low, high))


def _powers(value: float) -> list[float]:
    """Round numbers on both sides of a value."""
    power = math.floor(math.log10(value))
    return [step * 10.0**k for k in (power - 1, power, power + 1) for step in (1, 2, 5)]


def round_ends(low: float, high: float) -> tuple[float, float]:
    """The range, widened to whole steps of 1, 2 or 5 times a power of ten."""
    step = round_step((high - low) / _STEPS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return float(f"{first * step:.12g}"), float(f"{last * step:.12g}")


def round_step(size: float) -> float:
    """1, 2, 5 or 10 times a power of ten, whichever is nearest to this size by ratio."""
    power = 10.0 ** math.floor(math.log10(size))
    bounds = (1, math.sqrt(2)), (2, math.sqrt(10)), (5, math.sqrt(50))
    return power * next((step for step, most in bounds if size / power < most), 10)
