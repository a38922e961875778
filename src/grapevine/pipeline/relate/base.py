"""What all meanings of rows share: the run of an ingest, and what a meaning has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.pipeline.dense import number_names
from grapevine.pipeline.stage import Stage

DAY_S = 86_400.0


@dataclass(slots=True)
class IngestRun:
    """What one ingest carries from step to step."""

    stage: Stage
    folder: Location
    format: str  # its name, for what is said to users
    written: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)

    @property
    def scratch(self) -> Location:
        """For what later steps of this ingest read again; below the output, where the workers of a cluster see it."""
        return self.folder / "_scratch"

    def write(self, frame: DataFrame, table: tables.Table) -> int:
        """Store a table and remember its size."""
        self.written[table.name] = self.stage.write(frame, self.folder, table)
        return self.written[table.name]

    def number(self, names: DataFrame, column: str) -> DataFrame:
        """Dense numbers for the `name`s."""
        return number_names(self.stage, names, column, self.scratch / column, f"numbering {column}s")

    def count(self, frame: DataFrame, label: str) -> int:
        """How many rows there are; the label tells users what is going on."""
        with self.stage.step(label):
            return frame.count()


class Meaning(ABC):
    """What the rows of a format mean. A new kind of trace is a subclass; its instances are the values of
    `Format.meaning`, and their fields say in what formats of one kind differ."""

    makes: ClassVar[tables.Table]  # the table that a user of this format is after
    needs_lines: ClassVar[bool] = False  # rows have `file` and `line` besides `fields`
    needs_all: ClassVar[bool] = False  # no line may be missing

    @abstractmethod
    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write the tables of the workload from all readable rows (`fields`: an array of texts), of which there is at
        least one, and add to `run.counts` what users want to know. UsageError if nothing can be made of them."""
