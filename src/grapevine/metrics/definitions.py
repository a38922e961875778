"""Definitions of measures as data, with two readings: numpy over columns in memory, and SQL text for Spark.

A definition aggregates the rows of one table of one run to a number, or to None (SQL: NULL) where there is nothing to
aggregate. Both readings stand beside each other here and give the same number; the tests compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Columns = Mapping[str, ArrayLike]  # of one table; an empty cell is NaN

_RELATIONS = {">": np.greater, "<": np.less, "=": np.equal}


class Definition(Protocol):
    """How a measure follows from the rows of a table."""

    def sql(self) -> str:
        """The aggregate as Spark reads it."""

    def of(self, columns: Columns) -> float | None:
        """The same of columns in memory."""


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a column: a comparison with a constant, or `known`, which is true of cells that are not empty.

    A comparison is neither true nor false of an empty cell.
    """

    column: str
    relation: Literal[">", "<", "=", "known"]
    value: float | bool = True

    def sql(self) -> str:
        """The condition as Spark reads it; fractions are doubles, because Spark's own are decimals."""
        if self.relation == "known":
            return f"{self.column} IS NOT NULL"
        constant = f"{self.value}D" if isinstance(self.value, float) else str(self.value).lower()
        return f"{self.column} {self.relation} {constant}"

    def of(self, columns: Columns) -> NDArray[np.bool_]:
        """The rows of which it is true."""
        values = np.asarray(columns[self.column])
        if self.relation == "known":
            return ~_empty(values)
        return np.asarray(_RELATIONS[self.relation](values, self.value), np.bool_)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Sums of columns over sums of others, each row weighted by its column `rate`; None where the lower sum is 0.

    Without columns below, the sum of the rates themselves is: what a mean event has of the columns above.
    """

    part: tuple[str, ...]
    whole: tuple[str, ...] = ()

    def sql(self) -> str:
        part, whole = (self._sql(names) for names in (self.part, self.whole))
        return f"CASE WHEN {whole} != 0 THEN ({part}) / ({whole}) END"

    def of(self, columns: Columns) -> float | None:
        rate = np.asarray(columns["rate"], np.float64)
        part, whole = (self._of(names, rate, columns) for names in (self.part, self.whole))
        return part / whole if whole else None

    @staticmethod
    def _sql(names: tuple[str, ...]) -> str:
        return " + ".join(f"sum(rate * {name})" for name in names) if names else "sum(rate)"

    @staticmethod
    def _of(names: tuple[str, ...], rate: NDArray[np.float64], columns: Columns) -> float:
        totals = [float(np.dot(rate, np.asarray(columns[name], np.float64))) for name in names]
        return sum(totals) if names else float(rate.sum())


@dataclass(frozen=True, slots=True)
class Costs:
    """What a mean event costs: columns times the cost of one, each row weighted by its column `rate`; None where no row
    has a rate."""

    of_one: Mapping[str, int]

    def sql(self) -> str:
        terms = " + ".join(f"{cost}D * {name}" for name, cost in self.of_one.items())
        return f"CASE WHEN sum(rate) != 0 THEN sum(rate * ({terms})) / sum(rate) END"

    def of(self, columns: Columns) -> float | None:
        rate = np.asarray(columns["rate"], np.float64)
        each = sum(cost * np.asarray(columns[name], np.float64) for name, cost in self.of_one.items())
        return float(np.dot(rate, each)) / float(rate.sum()) if rate.sum() else None


@dataclass(frozen=True, slots=True)
class Rank:
    """The smallest value within which so many percent of the weight lie (nearest rank); None where nothing weighs.

    Weights that are whole multiples of a power of two are summed exactly, so that both readings agree on a tie.
    """

    value: str
    weight: str
    percent: int

    def derived(self) -> tuple[tuple[str, str], ...]:
        """The columns that the table needs besides (`MeasuredTable.derived`), since no aggregate has a running sum."""
        return (
            ("_below", f"sum({self.weight}) OVER (PARTITION BY run_id ORDER BY {self.value})"),
            ("_total", f"sum({self.weight}) OVER (PARTITION BY run_id)"),
        )

    def sql(self) -> str:
        return (
            f"CAST(min({self.value}) FILTER (WHERE _below > 0 AND _below * 100 >= _total * {self.percent}) AS DOUBLE)"
        )

    def of(self, columns: Columns) -> float | None:
        values, weights = (np.asarray(columns[name], np.float64) for name in (self.value, self.weight))
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[order])
        if not len(below) or below[-1] <= 0:
            return None
        return float(values[order][np.searchsorted(below * 100, below[-1] * self.percent)])


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a column's known cells, over the rows of which a condition is true."""

    column: str
    where: Where | None = None

    def sql(self) -> str:
        return f"avg({self.column}){_filter(self.where)}"

    def of(self, columns: Columns) -> float | None:
        known = _chosen(self.column, self.where, columns)
        return float(known.mean()) if len(known) else None


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest of a column's known cells, over the rows of which a condition is true."""

    column: str
    where: Where | None = None

    def sql(self) -> str:
        return f"max({self.column}){_filter(self.where)}"

    def of(self, columns: Columns) -> float | None:
        known = _chosen(self.column, self.where, columns)
        return float(known.max()) if len(known) else None


@dataclass(frozen=True, slots=True)
class Share:
    """The share of rows that fulfil a condition, among those whose cell is known and of which another one is true."""

    fulfilling: Where
    where: Where | None = None

    def sql(self) -> str:
        return f"avg(CAST({self.fulfilling.sql()} AS DOUBLE)){_filter(self.where)}"

    def of(self, columns: Columns) -> float | None:
        column = self.fulfilling.column
        known = _chosen(column, self.where, columns)
        return float(self.fulfilling.of({column: known}).mean()) if len(known) else None


def _filter(where: Where | None) -> str:
    return f" FILTER (WHERE {where.sql()})" if where else ""


def _chosen(column: str, where: Where | None, columns: Columns) -> NDArray[Any]:
    values = np.asarray(columns[column])
    known = ~_empty(values)
    return np.asarray(values[known & where.of(columns) if where else known])


def _empty(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_), np.bool_)
