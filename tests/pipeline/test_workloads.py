"""The workloads of experiments: what they lend each other, and what is taken as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.experiment.description import read_experiment
from grapevine.experiment.plan import RunPlan, plan
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.workload import Workload
from grapevine.pipeline import workloads
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.workloads import WorkloadMaker, borrow
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


def with_folder(where: Path) -> list[RunPlan]:
    """The runs of an experiment on the workload `../mine`, seen from `where`."""
    where.mkdir(exist_ok=True)
    text = '[[workloads]]\nname = "m"\nfolder = "../mine"\n[[systems]]\nsystem = "vitis"\n'
    (where / "e.toml").write_text(f'title = "Mine"\n{text}')
    return plan(read_experiment(where / "e.toml"))


def test_a_workload_that_is_there_is_taken_as_it_is(tmp_path: Path) -> None:
    """It was ingested, sampled or saved before; no Spark is needed, and its key follows its content."""
    Workload.from_dict({"ann": ["x", "y"], "bob": ["x"]}).save(tmp_path / "mine")
    (run,) = with_folder(tmp_path / "experiments")
    stage = Stage(quiet=True)
    maker = WorkloadMaker(stage, tmp_path / "out", None)
    maker.make([run.workload])
    assert list(Workload.load(maker.folder(run.workload.key)).node_names) == ["ann", "bob"]
    assert "spark" not in vars(stage)
    (again,) = with_folder(tmp_path / "elsewhere")
    assert again.run_id == run.run_id
    Workload.from_dict({"eve": ["x"]}).save(tmp_path / "mine", force=True)
    (other,) = with_folder(tmp_path / "experiments")
    assert other.workload.key != run.workload.key


def test_a_workload_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    (run,) = with_folder(tmp_path / "experiments")
    with pytest.raises(UsageError, match="mine: no such folder"):
        WorkloadMaker(Stage(quiet=True), tmp_path / "out", None).make([run.workload])
    assert not (tmp_path / "out" / "workloads" / run.workload.key).exists()
