"""Tables and what is measured of them: declarations that the pipeline reads, and nothing of Spark.

A declaration says for one stored table which metrics are aggregated from its rows, run by run. Whoever has a table or a
metric of its own declares it when its module is imported (`declare`); the pipeline measures all that is declared, and
the metrics are in the catalogue from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from grapevine.metrics.catalogue import Metric, add
from grapevine.metrics.definitions import Definition, Where
from grapevine.model.tables import Table


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as an SQL aggregate over the rows of a run, e.g. `avg(finished - round)`.

    With `by` the rows are grouped by this column, too, and `metric` is a family: each value of the column, except for
    an empty one, gives a metric whose name has it in the place of the braces.
    """

    metric: Metric
    sql: str
    by: str | None = None
    definition: Definition | None = None  # where it is computed in memory, too

    @classmethod
    def defined(cls, metric: Metric, definition: Definition) -> Measure:
        """A metric that is computed in memory and by Spark, from one definition."""
        return cls(metric, definition.sql(), definition=definition)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Nearest-rank quantiles of a value that every row has, given as an SQL expression and rounded to so many digits.

    `metric` is a family by `{quantile}`. Rows without a value do not count.
    """

    metric: Metric
    sql: str
    digits: int
    where: Where | None = None
    shares: tuple[float, ...] = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column whose distribution over online nodes is measured, of a table with `node` and `online`.

    With `steps`, values are of 0 … 1, and counted in so many steps.
    """

    column: str
    label: str
    share: bool = False
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """What is measured of a table.

    `where` leaves out rows before anything is counted, so that a run without any other has no metrics of it.
    `derived` adds columns first, in this order: names with SQL expressions, which may be windows over a run's rows.
    """

    table: Table
    measures: tuple[Measure, ...] = ()
    quantiles: tuple[Quantiles, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    where: Where | None = None
    derived: tuple[tuple[str, str], ...] = ()

    @property
    def metrics(self) -> list[Metric]:
        """All metrics that it gives, families as such."""
        return [*(measure.metric for measure in self.measures), *(family.metric for family in self.quantiles)]

    def in_memory(self, content: pa.Table) -> dict[str, float | None]:
        """The metrics that have a definition, of the table of one run, by name."""
        return self.of_columns({name: content[name].to_numpy() for name in content.column_names})

    def of_columns(self, columns: dict[str, Any]) -> dict[str, float | None]:
        """The metrics that have a definition, of columns as arrays, by name."""
        if self.where is not None:
            chosen = self.where.of(columns)
            columns = {name: values[chosen] for name, values in columns.items()}
        return {
            measure.metric.name: measure.definition.of(columns)
            for measure in self.measures
            if measure.definition is not None
        }


_DECLARED: list[MeasuredTable] = []


def declare(measured: MeasuredTable) -> MeasuredTable:
    """Have a table measured from now on, and its metrics in the catalogue. Returns the declaration."""
    if measured not in _DECLARED:  # systems may share one
        for metric in measured.metrics:
            add(metric)
        _DECLARED.append(measured)
    return measured


def measured_tables() -> tuple[MeasuredTable, ...]:
    """All declarations, in the order in which they were made; a table may occur in several."""
    return tuple(_DECLARED)


def quantities() -> dict[str, Quantity]:
    """The columns whose distribution over online nodes is measured, by name."""
    return {quantity.column: quantity for measured in _DECLARED for quantity in measured.quantities}
