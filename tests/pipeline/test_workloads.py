"""What experiments lend each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.pipeline import workloads
from grapevine.pipeline.workloads import borrow
from tests.folder_promises import read, write
from tests.memory_store import MemoryLocation, MemoryStore


@pytest.mark.parametrize("where", ["path", "store"])
def test_a_neighbour_lends_what_it_has_and_one_that_may_not_be_looked_into_nothing(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home: Location = tmp_path if where == "path" else MemoryLocation(MemoryStore(renames_at_once=False), "home")
    is_complete = workloads.is_complete

    def looked_into(folder: Location) -> bool:
        if "private" in str(folder):
            raise UsageError(f"{folder}: permission was denied")
        return is_complete(folder)

    monkeypatch.setattr(workloads, "is_complete", looked_into)
    target = home / "out" / "workloads" / "key"
    write(home / "private" / "workloads" / "key", "hidden")
    assert not borrow(target, home / "out", "workload")
    write(home / "shown" / "workloads" / "key", "lent")
    assert borrow(target, home / "out", "workload")
    assert read(target) == "lent"
