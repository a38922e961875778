"""What would lie on each other, side by side: the lines of a chart, and the labels at their ends.

Nothing is moved farther than it takes to see it, and tooltips and tables tell the values themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from grapevine.report.axes import Point, XAxis, YAxis

LINE_GAP, LABEL_GAP = 3.5, 14.0  # pixels between neighbours: a line with some ground beside it; a line of text
_HELD = 1e6  # the weight of what stays where it is
_SEEN = 0.1  # pixels; less is a rounding error


def moved_apart(places: Sequence[float], gap: float, held: Collection[int] = ()) -> list[float]:
    """The places, in pixels, moved as little as possible (by least squares) until neighbours are this far apart.

    Places in the same pixel stand in the order in which they are given. Those whose numbers are `held` stay, as far as
    they are far enough from each other.
    """
    order = sorted(range(len(places)), key=lambda i: (round(places[i]), i))
    blocks: list[tuple[float, float, int]] = []  # weight, where its first one begins, how many
    for rank, i in enumerate(order):
        blocks.append((_HELD if i in held else 1.0, places[i] - rank * gap, 1))
        while len(blocks) > 1 and blocks[-2][1] > blocks[-1][1]:
            (first, at, before), (second, other, after) = blocks[-2:]
            mean = (first * at + second * other) / (first + second)
            blocks[-2:] = [(first + second, mean, before + after)]
    begins = [at for _, at, count in blocks for _ in range(count)]
    found = [0.0] * len(places)
    for rank, i in enumerate(order):
        found[i] = begins[rank] + rank * gap
    return found


def side_by_side(series: Mapping[str, list[Point]], x: XAxis, y: YAxis, height: int) -> bool:
    """Move the points of lines that would hide each other, with their intervals; says whether any was moved.

    Lines come in the order in which they are to lie, the first above. A series whose points have no x is level. Where
    a line has no point of its own, it is where its neighbours put it.
    """
    levels = {name: points[0] for name, points in series.items() if "x" not in points[0]}
    starts = {name: y.pixel(point["y"], height) for name, point in levels.items()}
    # Twice as far from each other, so that a line that meets them finds room in between.
    level = dict(zip(starts, moved_apart(list(starts.values()), 2 * LINE_GAP), strict=True))
    moves = [(point, level[name] - starts[name]) for name, point in levels.items()]
    lines = {name: _Line(points, x, y, height) for name, points in series.items() if name not in levels}
    for at in sorted({place for line in lines.values() for place in line.places}):
        here = {name: level[name] if name in level else lines[name].pixel(at) for name in series}
        present = {name: pixel for name, pixel in here.items() if pixel is not None}
        held = [i for i, name in enumerate(present) if name in level]
        moved = dict(zip(present, moved_apart(list(present.values()), LINE_GAP, held), strict=True))
        own = ((name, point) for name, line in lines.items() if (point := line.points.get(at)) is not None)
        moves += [(point, moved[name] - present[name]) for name, point in own]
    for point, by in moves:
        if abs(by) > _SEEN:
            for end in ("y", "low", "high"):
                point[end] = y.value(y.pixel(point[end], height) + by, height)
    return any(abs(by) > _SEEN for _, by in moves)


class _Line:
    """A line in pixels: its points by their places on x, and where it is between them."""

    def __init__(self, points: list[Point], x: XAxis, y: YAxis, height: int) -> None:
        self.points = {x.place(point["x"]): point for point in points}
        self.places = sorted(self.points)
        self._pixels = [y.pixel(self.points[place]["y"], height) for place in self.places]

    def pixel(self, at: float) -> float | None:
        """How far below the upper end it is at a place on x; None beyond its ends."""
        if not self.places[0] <= at <= self.places[-1]:
            return None
        i = bisect_left(self.places, at)
        if self.places[i] == at:
            return self._pixels[i]
        share = (at - self.places[i - 1]) / (self.places[i] - self.places[i - 1])
        return self._pixels[i - 1] + share * (self._pixels[i] - self._pixels[i - 1])
