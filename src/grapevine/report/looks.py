"""How a series looks, the same in every figure of a page: colour, dash and shape, and the legend's swatch of it.

Colours are names of CSS variables, so one drawing serves light and dark pages; page.css gives them values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grapevine.report.words import setting

COLOURS = tuple(f"var(--series-{i})" for i in range(1, 8))
GREY = COLOURS[4]
PLAIN = "var(--ink)"  # of a series whose colour would say nothing
DASHES: tuple[tuple[float, ...], ...] = (
    *((), (7, 3), (2, 3), (9, 3, 2, 3)),
    *((14, 4), (4, 6), (9, 3, 2, 3, 2, 3), (1, 5)),
)
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
DIMENSIONS = "system", "workload", "parameters"


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a figure."""

    label: str
    colour: str
    dash: tuple[float, ...]
    shape: str
    flat: bool = False  # a horizontal line: no value depends on x
    key: Key = ("", "", "")


class Looks:
    """The page's systems and workloads, in the order in which they get colours and shapes.

    What a colour, a shape or a dash stands for is the same in every figure: the first of system, workload and
    parameters that varies on the page has the colours, the second the shapes, the third the dashes. Parameters vary by
    figure; where they come first or second, it is among the figures of a page that has nothing else to tell apart.
    """

    def __init__(self, systems: Iterable[str], workloads: Iterable[str]) -> None:
        self.systems = list(dict.fromkeys(systems))
        self.workloads = list(dict.fromkeys(workloads))

    @property
    def spare_colours(self) -> list[str]:
        """All colours, those that no system has first, and grey last."""
        taken = len(self.systems) if len(self.systems) > 1 else 0
        return sorted((*COLOURS[taken:], *COLOURS[:taken]), key=lambda colour: colour == GREY)

    def lines(self, flat: Mapping[Key, bool], split: str = "", *, joined: bool = True) -> dict[Key, Line]:
        """The look of every series (each with: is it flat?); labels name only what differs between them.

        `split` is the dimension that has a panel for each of its values, if any: labels leave it out, and tell apart
        what is in one panel. Where points are not `joined`, no dash could be seen: shapes tell parameters apart.
        """
        keys = sorted(flat, key=self.rank)
        parts = [part for part, name in enumerate(DIMENSIONS) if name != split]
        varying = [part for part in parts if len({key[part] for key in keys}) > 1]
        extras = _extras(keys) if 2 in varying else []
        found, taken = {}, set()
        for key in keys:
            colour, shape, dash = self._places(key, extras)
            if extras and not joined:
                shape, dash = _place(key[2], extras), 0
            label = " · ".join(key[part] for part in varying if key[part])
            label = label or next((key[part] for part in parts if key[part]), "all")
            panel = key[DIMENSIONS.index(split)] if split else ""
            # A workload may be called like a parameter, and a baseline is in every panel; Vega needs distinct names.
            while {(panel, label), ("", label)} & taken:
                label += "′"
            taken.add((panel, label))
            found[key] = Line(
                label,
                PLAIN if colour is None else COLOURS[colour % len(COLOURS)],
                # Past the last colour they come again, dashed differently.
                DASHES[(dash + max(1, len(extras)) * ((colour or 0) // len(COLOURS))) % len(DASHES)],
                SHAPES[shape % len(SHAPES)],
                flat[key],
                key,
            )
        return found

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Sort key of a series: baselines without parameters before those with, numbers by value."""
        return _place(key[0], self.systems), _place(key[1], self.workloads), key[2] != "", natural(key[2])

    def _places(self, key: Key, extras: list[str]) -> tuple[int | None, int, int]:
        """The numbers of its colour, shape and dash; of the colour None where what has the colours lies along x.

        Where one thing varies it decides colour and shape.
        """
        found: list[int | None] = [
            names.index(part) if part in names else None
            for part, names in zip(key, (self.systems, self.workloads, extras), strict=True)
            if len(names) > 1
        ]
        if len(found) < 2:
            found = [*(found or [0]), *(found or [0])]
        colour, shape, *dash = found
        return colour, shape or 0, (dash[0] or 0) if dash else 0


def _place(part: str, names: list[str]) -> int:
    return names.index(part) if part in names else 0  # a part that lies along x is empty


def _extras(keys: Sequence[Key]) -> list[str]:
    """The parameters that tell series apart. A baseline that has none looks like the first, unless it would be mistaken
    for a series of its own system."""
    beside = {key[:2] for key in keys if not key[2]} & {key[:2] for key in keys if key[2]}
    named = dict.fromkeys(key[2] for key in keys if key[2])
    return ["", *named] if beside else list(named)


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


def in_common(label: str, lines: Sequence[Line]) -> Line:
    """How a legend shows what these lines have in common, with nothing that only some of them have."""
    colours, dashes, shapes = {line.colour for line in lines}, {line.dash for line in lines}, _shapes(lines)
    return Line(
        label,
        colours.pop() if len(colours) == 1 else PLAIN,
        dashes.pop() if len(dashes) == 1 else (),
        shapes.pop() if len(shapes) == 1 else "",
    )


def _shapes(lines: Sequence[Line]) -> set[str]:
    """Of their markers; flat lines have none."""
    return {line.shape for line in lines if not line.flat}


def swatch(line: Line, *, joined: bool = True) -> str:
    """The legend's picture of a series, as inline SVG; `joined`: its points are joined by a line."""
    dash = f' stroke-dasharray="{" ".join(map(str, line.dash))}"' if line.dash else ""
    stroke = f'<path d="M1 7H33" stroke="{line.colour}" stroke-width="2" fill="none"{dash}/>' if joined else ""
    marked = bool(line.shape) and not line.flat
    mark = f'<path d="{line.shape}" transform="translate(17 7) scale(4.2)" fill="{line.colour}"/>' if marked else ""
    return f'<svg class="swatch" viewBox="0 0 34 14" aria-hidden="true">{stroke}{mark}</svg>'
