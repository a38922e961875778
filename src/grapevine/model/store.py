"""Reading and writing stored tables without Spark: a folder of Parquet files in the declared schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from grapevine.model.location import Location, local_copy, local_draft
from grapevine.model.tables import NODES, TOPICS, Table


def read_table(folder: Location, table: Table) -> pa.Table:
    """One stored table in its declared schema; nodes and topics in the order of their numbers, others as stored.

    `folder` is where the tables lie (`Manifest.tables_in`). An OSError or ArrowInvalid means that the folder is
    damaged: stages check its manifest first.
    """
    with local_copy(folder / table.name) as local:
        content = pq.read_table(local, columns=table.column_names).cast(table.schema)
    key = {NODES: "node", TOPICS: "topic"}.get(table)
    return content.sort_by(key) if key else content


def write_table(content: pa.Table, folder: Location, table: Table) -> int:
    """Store a table that is in memory as one file, in the declared columns and types; returns its rows."""
    with local_draft(folder) as local:
        (local / table.name).mkdir(parents=True)
        pq.write_table(content.select(table.column_names).cast(table.schema), local / table.name / "part-0.parquet")
    return int(content.num_rows)
