"""Stored tables come back in their declared schema."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapevine.model.store import read_table, write_table
from grapevine.model.tables import NODES, SUBSCRIPTIONS


def test_a_table_is_stored_in_its_declared_columns_and_types(tmp_path: Path) -> None:
    given = pa.table({"more": [0, 0], "topic": pa.array([4, 5], pa.int64()), "node": pa.array([1, 2], pa.int64())})
    assert write_table(given, tmp_path, SUBSCRIPTIONS) == 2
    stored = read_table(tmp_path, SUBSCRIPTIONS)
    assert stored.schema.equals(SUBSCRIPTIONS.schema)
    assert stored.to_pylist() == [{"node": 1, "topic": 4}, {"node": 2, "topic": 5}]


def test_nodes_are_read_in_the_order_of_their_numbers_whatever_files_hold_them(tmp_path: Path) -> None:
    (tmp_path / NODES.name).mkdir()
    for part, numbers in enumerate(([3, 1], [0, 2])):
        rows = pa.table({"node": numbers, "name": [f"n{number}" for number in numbers]}).cast(NODES.schema)
        pq.write_table(rows, tmp_path / NODES.name / f"part-{part}.parquet")
    assert read_table(tmp_path, NODES)["name"].to_pylist() == ["n0", "n1", "n2", "n3"]


def test_a_table_is_never_written_over(tmp_path: Path) -> None:
    content = pa.table({"node": [1], "topic": [2]})
    write_table(content, tmp_path, SUBSCRIPTIONS)
    with pytest.raises(FileExistsError):
        write_table(content, tmp_path, SUBSCRIPTIONS)
