"""Simulations whose rounds run on Spark: the tables of one machine, whatever is killed on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload
from grapevine.pipeline.parted import check_system, forget_rounds, simulate_in_blocks
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.supersteps import SparkRunner
from grapevine.sim.churn import flash_crowd
from grapevine.sim.parts import files
from grapevine.sim.parts.moves import Job
from grapevine.sim.parts.network import Report
from grapevine.sim.result import Simulation
from grapevine.sim.round_run import RunConfig
from grapevine.sim.simulate import simulate
from grapevine.synthetic import generate

RUN = RunConfig(rounds=6, measure_every=2, grace_rounds=2, diameter_topics=2)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-low", nodes=120, topics=40, subscriptions_per_node=8, buckets=10, buckets_per_node=2, seed=3)


def tables_of(done: Simulation) -> dict[str, list[dict[str, Any]]]:
    return {name: table.to_pylist() for name, table in done.tables.items()}


@pytest.mark.parametrize("system", ["vitis", pytest.param("magnet", marks=pytest.mark.slow)])
def test_a_run_that_was_killed_goes_on_to_the_tables_of_one_machine(
    system: str, stage: Stage, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = flash_crowd(workload.node_count, share=0.3, round=3)
    how: dict[str, Any] = {"run": RUN, "seed": 5, "schedule": crowd, "table_size": 8}
    jobs: list[int] = []
    run_job = SparkRunner.__call__

    def dies_once(runner: SparkRunner, job: Job) -> Report:
        jobs.append(job.now)
        if jobs == [1, 2, 3, 4, 5]:
            raise KeyboardInterrupt
        return run_job(runner, job)

    monkeypatch.setattr(SparkRunner, "__call__", dies_once)
    with pytest.raises(KeyboardInterrupt):
        simulate_in_blocks(stage, system, workload, tmp_path / "run", blocks=3, **how)
    with pytest.raises(UsageError, match="not finished; go on with --resume"):
        simulate_in_blocks(stage, system, workload, tmp_path / "run", blocks=3, **how)
    with pytest.raises(UsageError, match="other values of blocks, seed"):
        simulate_in_blocks(stage, system, workload, tmp_path / "run", blocks=4, resume=True, **how | {"seed": 6})
    done = simulate_in_blocks(stage, system, workload, tmp_path / "run", blocks=3, resume=True, **how)
    assert jobs == [1, 2, 3, 4, 5, 5, 6]
    assert tables_of(done) == tables_of(simulate(system, workload, threads=1, **how))
    again = simulate_in_blocks(stage, system, workload, tmp_path / "run", blocks=3, resume=True, **how)
    assert tables_of(again) == tables_of(done)  # whoever was killed before it stored the result loses no round
    assert jobs == [1, 2, 3, 4, 5, 5, 6]
    forget_rounds(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_a_note_does_not_name_is_not_taken(stage: Stage, workload: Workload, tmp_path: Path) -> None:
    """A run is killed after it has stored rows and before it has noted them: garbage in their place changes nothing."""
    folder, note = tmp_path / ".run.rounds", files.write_note

    def killed(where: Path, content: Any) -> None:
        if content["round"] == 3:
            for part in (where / "rows" / "3").iterdir():
                files.store(part.with_name("x"), {name: array[:0] for name, array in files.fetch(part).items()})
                for file in part.iterdir():
                    np.save(file, np.zeros(3))
            raise KeyboardInterrupt
        note(where, content)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "write_note", killed)
        simulate_in_blocks(stage, "rvr", workload, tmp_path / "run", blocks=3, run=RUN)
    assert files.read_note(folder) is not None
    done = simulate_in_blocks(stage, "rvr", workload, tmp_path / "run", blocks=3, run=RUN, resume=True)
    assert tables_of(done) == tables_of(simulate("rvr", workload, threads=1, run=RUN))


def test_what_cannot_run_in_blocks_is_one_sentence(stage: Stage, workload: Workload, tmp_path: Path) -> None:
    for system, driver in (("spidercast", None), ("rappel", None), ("vitis", "peers")):
        with pytest.raises(UsageError, match=f"{system} does not run by rounds of gossip.*vitis"):
            check_system(system, driver)
    for blocks in (0, 121, 1.5):
        with pytest.raises(UsageError, match="needs a whole number from 1 to that of nodes, 120"):
            simulate_in_blocks(stage, "vitis", workload, tmp_path / "run", blocks=blocks)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a folder that all workers share, not a URL"):
        simulate_in_blocks(stage, "vitis", workload, stage.location(f"file://{tmp_path}/run"))
    assert list(tmp_path.iterdir()) == []


def test_a_failure_inside_a_task_is_one_sentence_and_can_be_gone_on_from(
    stage: Stage, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_job, short = SparkRunner.__call__, RunConfig(rounds=3, measure_every=1, grace_rounds=1, diameter_topics=2)

    def loses_its_rows(runner: SparkRunner, job: Job) -> Report:
        rows = job.folder / "rows" / job.before
        if job.now != 2:
            return run_job(runner, job)
        rows.rename(tmp_path / "elsewhere")
        try:
            return run_job(runner, job)
        finally:
            (tmp_path / "elsewhere").rename(rows)

    with monkeypatch.context() as patch:
        patch.setattr(SparkRunner, "__call__", loses_its_rows)
        with pytest.raises(Exception, match=r"a part of the run is missing.*while computing round 2") as caught:
            simulate_in_blocks(stage, "vitis", workload, tmp_path / "run", blocks=2, run=short)
    assert "\n" not in str(caught.value)
    done = simulate_in_blocks(stage, "vitis", workload, tmp_path / "run", blocks=2, run=short, resume=True)
    assert tables_of(done) == tables_of(simulate("vitis", workload, threads=1, run=short))
