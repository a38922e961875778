"""What a figure shows, in a sentence or two that follow from its points alone.

Two values are *alike* when they are written alike, or when their confidence intervals overlap: such a difference is
none that this many seeds could tell. Series are named by what tells them apart, and a system by itself where all its
series are meant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from grapevine.model.numbers import number
from grapevine.report.axes import Point
from grapevine.report.looks import Key
from grapevine.report.points import PlotData
from grapevine.report.words import listed, sentence, value_name

MOST_NAMED, MOST_GROUPS = 3, 4  # series in one breath; ranges in one sentence
_TAIL = 0.99
_SETTLED = 0.02  # of the range of all values: so near to its final level a line has reached it
_LAST = 0.1  # of a line's points: their mean is its final level


class Value(NamedTuple):
    """A value with its confidence interval."""

    mean: float
    low: float
    high: float


def conclude(data: PlotData) -> str:
    """The sentence above a figure of these points; empty where there is nothing to tell."""
    if not data.points:
        return ""
    if data.kind == "distribution":
        return _spread_over_nodes(data)
    if data.kind == "progress":
        return _course(data)
    if not data.x.connected:
        return _side_by_side(data)
    return _along_x(data)


def _along_x(data: PlotData) -> str:
    """Who is best at the ends, and whether lines cross."""
    lines, names = _lines(data), _Names(key for key, _ in data.points)
    places = sorted({at for line in lines.values() for at in line if at is not None}, key=data.x.place)
    edges = list(dict.fromkeys((places[0], places[-1])))
    ends = [_at(lines, at) for at in edges]
    if len(lines) == 1:
        return _alone(data, [(at, next(iter(found.values()))) for at, found in zip(edges, ends, strict=True)])
    text = f"At {data.x.title} {value_name(edges[0])}, {_ranking(ends[0], data, names)}"
    if len(edges) == 1:
        return f"{text}."
    text += f"; {_ranking_again(ends, value_name(edges[1]), data, names)}"
    return f"{text}. {_crossings(lines, places, names, data)}."


def _ranking_again(ends: Sequence[Mapping[Key, Value]], at: str, data: PlotData, names: _Names) -> str:
    """Who is best and worst at the other end; in short where they are the same."""
    before, now = ends
    if len(now) > 1 and _best_and_worst(before, data) == _best_and_worst(now, data):
        shown = dict.fromkeys(_written(_end(now, data, best=which).mean, data.percent) for which in (True, False))
        return f"likewise at {at} ({' and '.join(shown)})"
    return f"at {at}, {_ranking(now, data, names)}"


def _alone(data: PlotData, ends: Sequence[tuple[Any, Value]]) -> str:
    """One line: from where to where it goes."""
    (first, start), (last, end) = ends[0], ends[-1]
    shown = [_written(value.mean, data.percent) for _, value in ends]
    if len(ends) == 1:
        return f"{sentence(data.y_title)} is {shown[0]} at {data.x.title} {value_name(first)}."
    where = f"at {data.x.title} {value_name(first)}", f"at {value_name(last)}"
    if _alike(start, end, data.percent):
        return f"{sentence(data.y_title)} is about the same {where[0]} ({shown[0]}) and {where[1]} ({shown[1]})."
    way = "rises" if end.mean > start.mean else "falls"
    return f"{sentence(data.y_title)} {way} from {shown[0]} {where[0]} to {shown[1]} {where[1]}."


def _side_by_side(data: PlotData) -> str:
    """Where marks stand side by side: who is best in each category, or of all if each has a place of its own."""
    names = _Names(key for key, _ in data.points)
    if not data.x.shared:
        found = {key: _value(point) for key, point in data.points}
        return f"{sentence(_ranking(found, data, names))}." if len(found) > 1 else ""
    categories = list(dict.fromkeys(point["x"] for _, point in data.points if "x" in point))
    lines = _lines(data)
    if len(lines) == 1:
        line = next(iter(lines.values()))
        across = {(str(at), "", ""): line[at] for at in categories}
        return f"{sentence(_ranking(across, data, _Names(across)))}." if len(across) > 1 else ""
    if len(categories) > MOST_NAMED:
        return _wins(lines, categories, data, names)
    told = [f"on {at}, {_ranking(_at(lines, at), data, names)}" for at in categories]
    return f"{sentence('; '.join(told))}."


def _wins(lines: Mapping[Key, Mapping[Any, Value]], categories: Sequence[Any], data: PlotData, names: _Names) -> str:
    """Of many categories: how often each series is among the best."""
    best = [_best_and_worst(_at(lines, at), data)[0] for at in categories]
    counts = {key: sum(key in group for group in best) for key in lines}
    (first, *others) = sorted((key for key in counts if counts[key]), key=lambda key: -counts[key])[:MOST_NAMED]
    text = f"{names.of([first])} is {_words(data)[0]} on {counts[first]} of {len(categories)} {data.x.title}s"
    return sentence(", ".join([text, *(f"{names.of([key])} on {counts[key]}" for key in others)])) + "."


def _ranking(values: Mapping[Key, Value], data: PlotData, names: _Names) -> str:
    """Who is best and who worst of these."""
    if len(values) == 1:
        ((key, value),) = values.items()
        return f"{names.of([key])} has {_written(value.mean, data.percent)}"
    best, worst = _best_and_worst(values, data)
    top, bottom = (_written(_end(values, data, best=which).mean, data.percent) for which in (True, False))
    if not worst:
        return f"{names.of(best)} are alike ({top if top == bottom else f'{top} to {bottom}'})"
    first, last = _words(data)
    return f"{names.of(best)} {names.verb(best)} {first} ({top}), {names.of(worst)} {last} ({bottom})"


def _best_and_worst(values: Mapping[Key, Value], data: PlotData) -> tuple[list[Key], list[Key]]:
    """Whose values are like the best, and whose are like the worst; of the latter none if all are alike."""
    good, bad = (_end(values, data, best=which) for which in (True, False))
    if _alike(good, bad, data.percent):
        return list(values), []
    best = [key for key, value in values.items() if _alike(value, good, data.percent)]
    return best, [key for key, value in values.items() if key not in best and _alike(value, bad, data.percent)]


def _words(data: PlotData) -> tuple[str, str]:
    return ("best", "worst") if data.better else ("highest", "lowest")


def _end(values: Mapping[Key, Value], data: PlotData, *, best: bool) -> Value:
    """The best or the worst value; where none is better, the highest counts as best."""
    choose = max if (data.better != "low") == best else min
    return choose(values.values(), key=lambda value: value.mean)


def _crossings(lines: Mapping[Key, Mapping[Any, Value]], places: Sequence[Any], names: _Names, data: PlotData) -> str:
    """Which pairs of lines change their order, and between which places on x."""
    found = []
    for one, other in combinations(lines, 2):
        signs = []
        for at in places:
            here = _at({key: lines[key] for key in (one, other)}, at)
            if len(here) == 2 and not _alike(here[one], here[other], data.percent):
                signs.append((at, here[one].mean > here[other].mean))
        changes = [(before, after) for (before, up), (after, then) in pairwise(signs) if up != then]
        if changes:
            found.append((one, other, changes[0]))
    if not found:
        return "No two lines cross"
    if len(found) > 2:
        return f"{len(found)} pairs of lines cross"
    told = [
        f"{names.of([one])} and {names.of([other])} cross between {value_name(before)} and {value_name(after)}"
        for one, other, (before, after) in found
    ]
    return sentence("; ".join(told))


def _spread_over_nodes(data: PlotData) -> str:
    """Medians and tails: what half of the nodes have at most, and what 99 of a hundred; for each system a range."""
    shares: dict[Key, dict[float, float]] = {}
    for key, point in data.points:
        shares.setdefault(key, {})[point["x"]] = point["y"]
    part = next((part for part in range(3) if len({key[part] for key in shares}) > 1), None)
    groups: dict[str, list[dict[float, float]]] = {}
    for key, by_value in shares.items():
        groups.setdefault("" if part is None else key[part] or "others", []).append(by_value)
    told = []
    for what, share in (("the median is", 0.5), ("the 99th percentile is", _TAIL)):
        found = {name: [_quantile(by_value, share) for by_value in group] for name, group in groups.items()}
        ranges: dict[str, list[str]] = {}  # from low to high, with those that share one
        for name in sorted(found, key=lambda name: (max(found[name]), min(found[name]))):
            ranges.setdefault(_range(found[name], data), []).append(name)
        told.append(f"{what} {_with_names(ranges, len(groups))}")
    return f"{sentence(data.x.title)}: {'; '.join(told)}."


def _with_names(ranges: Mapping[str, Sequence[str]], groups: int) -> str:
    """Ranges with those that they belong to; of many the first and the last."""
    if len(ranges) == 1:
        return f"{next(iter(ranges))} with {'both' if groups == 2 else 'all'}" if groups > 1 else next(iter(ranges))
    told = [f"{shown} with {listed(names)}" for shown, names in ranges.items()]
    return listed(told) if groups <= MOST_GROUPS else f"{told[0]} to {told[-1]}"


def _quantile(shares: Mapping[float, float], share: float) -> float:
    """The smallest value that so many of the nodes do not exceed."""
    total, below = sum(shares.values()), 0.0
    for at in sorted(shares):
        below += shares[at]
        if below >= share * total - 1e-12:
            return at
    return max(shares)


def _range(values: Sequence[float], data: PlotData) -> str:
    """From the least to the most of some values of a distribution; those that were counted in steps are ranges."""
    ends = min(values), max(values) + (data.step or 0.0)
    low, high = (f"{end:.0%}" if data.x.percent else number(float(f"{end:.9g}")) for end in ends)
    return low if low == high else f"{low} to {high}"


def _course(data: PlotData) -> str:
    """When each line reaches its final level, and the worst point after that."""
    lines = {key: sorted(line.items()) for key, line in _lines(data).items()}
    names = _Names(lines)
    every = [value.mean for line in lines.values() for _, value in line]
    near = _SETTLED * (max(every) - min(every)) + 1e-9 * abs(max(every))
    settled = {key: _settled(line, near) for key, line in lines.items()}
    order = sorted(lines, key=lambda key: settled[key][0])
    told = [
        f"{names.of([key])} {'' if i else 'reaches its final level '}({_written(settled[key][1], data.percent)}) "
        f"at {'' if i else f'{data.x.title} '}{value_name(settled[key][0])}"
        for i, key in enumerate(order)
    ]
    if len(order) > MOST_NAMED:
        told = [f"of {len(order)} lines, {told[0]} first", f"{told[-1]} last"]
    return f"{sentence(', '.join(told))}; {_worst_point(lines, settled, near, names, data)}."


def _settled(line: Sequence[tuple[Any, Value]], near: float) -> tuple[Any, float]:
    """Where a line first is at its final level, the mean of its last points, and that level."""
    last = line[-max(1, math.ceil(_LAST * len(line))) :]
    level = sum(value.mean for _, value in last) / len(last)
    at = next((at for at, value in line if abs(value.mean - level) <= near), line[-1][0])
    return at, level


def _worst_point(
    lines: Mapping[Key, Sequence[tuple[Any, Value]]],
    settled: Mapping[Key, tuple[Any, float]],
    near: float,
    names: _Names,
    data: PlotData,
) -> str:
    sign = -1.0 if data.better == "low" else 1.0
    falls = [
        (sign * (value.mean - level), key, at, value.mean)
        for key, (reached, level) in settled.items()
        for at, value in lines[key]
        if at > reached
    ]
    depth, key, at, mean = min(falls, key=lambda fall: fall[0], default=(0.0, None, None, 0.0))
    if key is None or depth >= -near:
        return "after that none leaves it" if len(lines) > 1 else "after that it stays there"
    word = "highest" if data.better == "low" else "lowest"
    whose = f" of {names.of([key])}" if len(lines) > 1 else ""
    return f"the {word} point after that is {_written(mean, data.percent)}{whose} at {data.x.title} {value_name(at)}"


class _Names:
    """Names of series, and of groups of them."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._all = list(dict.fromkeys(keys))
        self._varying = [part for part in range(3) if len({key[part] for key in self._all}) > 1]

    def of(self, some: Collection[Key]) -> str:
        """A group in words: a system for all its series, and what is left out where that is shorter."""
        if len(self._all) > 1 and set(some) == set(self._all):
            return "both" if len(self._all) == 2 else "all"
        inside = self._listed(some)
        if len(inside) <= MOST_NAMED:
            return listed(inside)
        outside = self._listed([key for key in self._all if key not in some])
        if len(outside) < MOST_NAMED:
            return f"all but {listed(outside)}"
        return f"{', '.join(inside[:2])} and {len(inside) - 2} more"

    def verb(self, some: Collection[Key]) -> str:
        """What follows the name of a group."""
        return "is" if len(self._listed(some)) == 1 else "are"

    def _listed(self, some: Collection[Key]) -> list[str]:
        if 0 not in self._varying:
            return [self._name(key) for key in some]
        whole = {key[0] for key in some} - {key[0] for key in self._all if key not in some}
        return list(dict.fromkeys(key[0] if key[0] in whole else self._name(key) for key in some))

    def _name(self, key: Key) -> str:
        named = " · ".join(key[part] for part in self._varying if key[part])
        return named or next((part for part in key if part), "it")


def _lines(data: PlotData) -> dict[Key, dict[Any, Value]]:
    """The values of each series by their place on x; None is the place of what holds everywhere."""
    found: dict[Key, dict[Any, Value]] = {}
    for key, point in data.points:
        found.setdefault(key, {})[point.get("x")] = _value(point)
    return found


def _at(lines: Mapping[Key, Mapping[Any, Value]], at: Any) -> dict[Key, Value]:
    """The values at a place on x, of the series that have one there."""
    found = {key: line.get(at, line.get(None)) for key, line in lines.items()}
    return {key: value for key, value in found.items() if value is not None}


def _value(point: Point) -> Value:
    return Value(point["y"], point["low"], point["high"])


def _alike(one: Value, other: Value, percent: bool) -> bool:
    if _written(one.mean, percent) == _written(other.mean, percent):
        return True
    return one.low <= other.high and other.low <= one.high


def _written(value: float, percent: bool) -> str:
    return f"{100 * value:.4g}%" if percent else number(value)
