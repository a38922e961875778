"""The catalogue of metrics: what each is called, what it means and how its values are written.

A metric is declared once, in the module that defines how it is computed (`traffic`, `structure`, `course`, `timed`,
`findings`, `live`, or the system that it belongs to), and added here. The command line, the page, the judges of claims,
experiment files and docs/tables.md read it from here, so that no label or format is written down twice.

A *family* is a metric whose name has a part in braces, e.g. `rejoins_at_height_{number}`: it stands for all metrics
that a value for the part gives. `{quantile}` is p50, p95 …, `{number}` a whole number, `{kind}` a word.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from grapevine.model.errors import UsageError
from grapevine.model.numbers import interval, number

_PARTS = {"quantile": r"p\d{1,2}", "number": r"\d+", "kind": r"[a-z][a-z_]*"}  # what may stand for a family's part
_WORDS = {"p50": "median"}  # where the label says something else than the name


@dataclass(frozen=True, slots=True)
class Metric:
    """One number that a run is measured by. Equal to another if all that is said of it is."""

    name: str  # in tables, files and code
    label: str  # for people: in tables of the command line, and on the page
    definition: str  # a sentence
    unit: str = ""  # empty for counts, ratios and shares
    share: bool = False  # of a whole, so 0.5 is written as 50.00%
    better: Literal["high", "low"] | None = None  # None: it depends
    per_unit: float = 1.0  # so much of the value is one unit, e.g. 2**20 bytes are a MiB

    @property
    def is_family(self) -> bool:
        """Whether its name still has a part in braces."""
        return "{" in self.name

    @property
    def heading(self) -> str:
        """The label with the unit, for a table's column or an axis, where values are written without it."""
        return (
            self.label if not self.unit or self.unit in re.findall(r"\w+", self.label) else f"{self.label}, {self.unit}"
        )

    def shown(self, value: float | None) -> str:
        """A value as a person reads it: 93.10% of a share, else 12,345 or 3.142; a dash for what is not there."""
        return number(value if value is None or self.per_unit == 1 else value / self.per_unit, percent=self.share)

    def shown_with_unit(self, value: float | None) -> str:
        """A value where no heading tells its unit, as in a line of text."""
        return f"{self.shown(value)} {self.unit}" if self.unit and value is not None else self.shown(value)

    def shown_with_spread(self, mean: float, half: float) -> str:
        """A mean with half its confidence interval."""
        return interval(mean / self.per_unit, half / self.per_unit, percent=self.share)

    def of(self, **parts: object) -> Metric:
        """The member of a family with these values for the parts in braces, e.g. `DELAY_AT.of(quantile="p95")`."""
        words = {part: _WORDS.get(str(value), str(value).replace("_", " ")) for part, value in parts.items()}
        made = replace(
            self,
            name=self.name.format(**parts),
            label=self.label.format(**words),
            definition=self.definition.format(**words),
        )
        if not re.fullmatch(_pattern(self), made.name):
            raise UsageError(f"{self.name}: no member of this family is called {made.name}")
        return made

    def member(self, name: str) -> Metric | None:
        """The member of a family that has this name; None if none has."""
        found = re.fullmatch(_pattern(self), name)
        return self.of(**found.groupdict()) if found else None


CATALOGUE: dict[str, Metric] = {}


def add(metric: Metric) -> Metric:
    """Add a metric, and return it. Whoever declares a metric calls this when its module is imported.

    A member of a family that is there already needs no entry of its own. Two declarations of one name are a mistake in
    the program, unless they say the same.
    """
    known = CATALOGUE.get(metric.name) or find(metric.name)
    if known != metric:
        if metric.name in CATALOGUE:
            raise ValueError(f"metric {metric.name}: declared twice, and not alike; give one of the two another name")
        CATALOGUE[metric.name] = metric
    return metric


def find(name: str) -> Metric | None:
    """The metric of this name, also a member of a family; None if the catalogue does not know it."""
    known = CATALOGUE.get(name)
    if known is not None and not known.is_family:
        return known
    families = (metric for metric in CATALOGUE.values() if metric.is_family)
    return next((member for family in families if (member := family.member(name)) is not None), None)


def metric(name: str) -> Metric:
    """The metric of this name; an unknown one is answered with the known ones."""
    found = find(name)
    if found is None:
        raise UsageError(unknown(name, CATALOGUE))
    return found


def unknown(name: object, known: Iterable[str]) -> str:
    """What to say of a name that is none of the measures that are known at this place."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ";"
    return f"{name!r} is not measured{meant} known are {', '.join(names)}"


def described(name: str) -> Metric:
    """The metric of this name, for showing stored results; what another version measured is a plain number."""
    return find(name) or Metric(name, name.replace("_", " "), "")


def dictionary() -> str:
    """The part of docs/tables.md that tells of the metrics, as Markdown."""
    parts = [
        "",
        "## Metrics",
        "",
        "Written from `src/grapevine/metrics/`: the names in `metrics`, `series` and `progress`, and of headline",
        "numbers. `{quantile}` stands for p50, p95 or p99, `{number}` for a whole number, `{kind}` for a word.",
        "",
        "| metric | label | unit | better | definition |",
        "|---|---|---|---|---|",
    ]
    for entry in sorted(CATALOGUE.values(), key=lambda entry: entry.name):
        unit = "share" if entry.share else entry.unit
        parts.append(f"| `{entry.name}` | {entry.label} | {unit} | {entry.better or ''} | {entry.definition} |")
    return "\n".join(parts) + "\n"


def _pattern(family: Metric) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{_PARTS[part[1]]})", family.name)
