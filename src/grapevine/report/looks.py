"""How a series looks, the same in every figure of a page: colour, dash and shape, and the legend's swatch of it.

Colours are names of CSS variables, so one drawing serves light and dark pages; page.css gives them values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grapevine.report.words import setting

COLOURS = tuple(f"var(--series-{i})" for i in range(1, 8))
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (4, 2), (9, 3, 2, 3))
# Outlines between -1 and 1, as Vega takes them; the legend and the overlay drawing use the same ones.
CIRCLE = "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z"
DIAMOND = "M0,-1.25L1.25,0L0,1.25L-1.25,0Z"
STAR = "M0,-1.5L0.35,-0.49L1.43,-0.46L0.57,0.19L0.88,1.21L0,0.6L-0.88,1.21L-0.57,0.19L-1.43,-0.46L-0.35,-0.49Z"
SHAPES = (
    CIRCLE,
    "M-0.9,-0.9H0.9V0.9H-0.9Z",
    "M0,-1.15L1.15,0.9H-1.15Z",
    DIAMOND,
    "M0,1.15L1.15,-0.9H-1.15Z",
    "M-0.4,-1.1H0.4V-0.4H1.1V0.4H0.4V1.1H-0.4V0.4H-1.1V-0.4H-0.4Z",
    STAR,
)
CROSS = "M-0.8,-0.8L0.8,0.8M-0.8,0.8L0.8,-0.8"  # only ever stroked: a value that a paper claims

Key = tuple[str, str, str]  # system, workload, further parameters


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a figure."""

    label: str
    colour: str
    dash: tuple[float, ...]
    shape: str
    flat: bool = False  # a horizontal line: no value depends on x


class Looks:
    """The page's systems and workloads, in the order in which they get colours and shapes."""

    def __init__(self, systems: Iterable[str], workloads: Iterable[str]) -> None:
        self.systems = list(dict.fromkeys(systems))
        self.workloads = list(dict.fromkeys(workloads))

    def lines(self, flat: Mapping[Key, bool]) -> dict[Key, Line]:
        """The look of every series (each with: is it flat?); labels name only what differs between them."""
        keys = sorted(flat, key=self.rank)
        extras = list(dict.fromkeys(key[2] for key in keys))
        varying = [part for part in range(3) if len({key[part] for key in keys}) > 1]
        found, taken = {}, set()
        for key in keys:
            first, second = self._places(key, extras)
            # Past the last colour they come again, dashed differently.
            dash = first // len(COLOURS) + (first if second is not None else 0)
            label = " · ".join(key[part] for part in varying if key[part]) or key[0] or key[1] or "all"
            while label in taken:  # a workload may be called like a parameter; Vega needs distinct names
                label += "′"
            taken.add(label)
            shape = SHAPES[(first if second is None else second) % len(SHAPES)]
            found[key] = Line(label, COLOURS[first % len(COLOURS)], DASHES[dash % len(DASHES)], shape, flat[key])
        return found

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Sort key of a series: baselines without parameters before those with, numbers by value."""
        return _place(key[0], self.systems), _place(key[1], self.workloads), key[2] != "", natural(key[2])

    def _places(self, key: Key, extras: list[str]) -> tuple[int, int | None]:
        """The number of its colour and of its shape; None where one thing varies and decides both.

        The first of system, workload and parameters that varies gives the colour, the others the shape.
        """
        known = self.systems, self.workloads, extras
        places = [
            (_place(part, names), len(names))
            for part, names in zip(key, known, strict=True)
            if len(names) > 1 and (part or names is extras)
        ] or [(0, 1)]
        if len(places) == 1:
            return places[0][0], None
        second = 0
        for place, size in places[1:]:
            second = second * size + place
        return places[0][0], second


def _place(part: str, names: list[str]) -> int:
    return names.index(part) if part in names else 0  # a part that lies along x is empty


def natural(text: str) -> list[Any]:
    """Sort key: numbers inside the text by value, so that `size 8` stands before `size 15`."""
    return [(0, float(word), "") if _is_number(word) else (1, 0.0, word) for word in text.replace(",", "").split()]


def _is_number(word: str) -> bool:
    try:
        return float(word) == float(word)
    except ValueError:
        return False


def extra_label(parameters: dict[str, Any], without: str | None) -> str:
    """What the grid set beyond the plot's own axis, as part of a series' name."""
    return ", ".join(setting(key, value) for key, value in sorted(parameters.items()) if key != without)


def swatch(line: Line, *, joined: bool = True) -> str:
    """The legend's picture of a series, as inline SVG."""
    dash = f' stroke-dasharray="{" ".join(map(str, line.dash))}"' if line.dash else ""
    stroke = f'<path d="M1 7H33" stroke="{line.colour}" stroke-width="2" fill="none"{dash}/>' if joined else ""
    mark = "" if line.flat else f'<path d="{line.shape}" transform="translate(17 7) scale(4.2)" fill="{line.colour}"/>'
    return f'<svg class="swatch" viewBox="0 0 34 14" aria-hidden="true">{stroke}{mark}</svg>'
