"""What a stored table is: its name, what its rows mean, and its columns with their types and meanings."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, Arrow type, what a value means (with its unit), and whether it may be null."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One stored table: a folder of Parquet files below the stage's output folder."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, as stored."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @property
    def column_names(self) -> list[str]:
        """Column names in stored order."""
        return [column.name for column in self.columns]


INT = pa.int32()
LONG = pa.int64()
REAL = pa.float64()
TEXT = pa.string()
