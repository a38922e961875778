"""A simulation whose rounds run on Spark, in blocks of nodes: the result of one machine, for networks beyond it.

`sim/parts` has the theory, `supersteps` what Spark does. Here: which systems can, where the state lies, and going on
after the process that leads the run was killed.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grapevine.experiment.code import run_digest
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.workload import Workload
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.supersteps import SparkRunner
from grapevine.sim.churn import Schedule
from grapevine.sim.parts import files
from grapevine.sim.parts.keeper import Keeper, digest_of
from grapevine.sim.parts.network import PartedNetwork
from grapevine.sim.result import Simulation
from grapevine.sim.round_run import Progress, RunConfig, simulate_rounds
from grapevine.sim.simulate import make_config, make_rounds
from grapevine.systems.contracts.rounds import GossipSystem
from grapevine.systems.registry import all_systems, choose_driver, system_named

NODES_A_BLOCK = 125_000  # at most, by default: 0.34 GB a task with the defaults of Vitis (`sim/parts/memory`)
SESSION = {
    # Cells are integers that compress little, and are read once.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # The files of a round's shuffles go when Java collects what stands for them, by default every half an hour: by then
    # a million nodes would have left a hundred GB.
    "spark.cleaner.periodicGC.interval": "1min",
}


def check_system(system: str, driver: str | None) -> None:
    """A system whose rounds can run in blocks, or a UsageError that says which can."""
    able = [name for name in all_systems() if _gossips(name)]
    if choose_driver(system, driver) != "rounds" or not _gossips(system):
        raise UsageError(
            f"--engine spark: {system} does not run by rounds of gossip, so it runs on one machine; "
            f"{', '.join(able)} can run on many"
        )


def _gossips(system: str) -> bool:
    record = system_named(system)
    return "rounds" in record.drivers and issubclass(record.round_facet(), GossipSystem)


def simulate_in_blocks(
    stage: Stage,
    system: str,
    workload: Workload,
    target: Location,
    *,
    blocks: int | None = None,
    seed: int = 1,
    schedule: Schedule | None = None,
    run: RunConfig | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    force: bool = False,
    **parameters: Any,
) -> Simulation:
    """`grapevine.simulate` with rounds on Spark, in so many blocks of nodes (default: by nodes and tasks).

    Its state is in a hidden folder beside `target`, on a file system that all workers share, until the caller has
    stored the result and calls `forget_rounds`. If either of them is killed, the same call with `resume` goes on after
    the last complete round, to the same result; `force` starts anew. `threads` are those of the evaluation, which is
    done here (default: all cores).
    """
    check_system(system, "rounds")
    config, run = make_config(system, parameters, "rounds"), run or RunConfig()
    if blocks is not None and (type(blocks) is not int or not 1 <= blocks <= workload.node_count):
        raise UsageError(f"blocks={blocks!r}: needs a whole number from 1 to that of nodes, {workload.node_count}")
    topics, tasks = workload.node_topics, stage.spark.sparkContext.defaultParallelism
    blocks = blocks or min(workload.node_count, max(2 * tasks, -(-workload.node_count // NODES_A_BLOCK)))
    described = {
        "system": system,
        "parameters": config.as_dict(),
        "run": run.as_dict(),
        "seed": seed,
        "blocks": blocks,
        "workload": digest_of(workload.node_ids, topics.starts, topics.columns, workload.rates),
        "churn": _describe(schedule),
        "code": run_digest(system_named(system).round_facet().__module__),
    }
    with _state_folder(target, resume=resume, force=force) as folder:
        network = partial(PartedNetwork, folder=folder, parts=blocks, run=SparkRunner(stage))
        how: dict[str, Any] = {"seed": seed, "threads": threads, "schedule": schedule}
        engine = make_rounds(system, workload, config, run, network=network, **how)
        return simulate_rounds(engine, config, run, progress, Keeper(folder, described))


def forget_rounds(target: Location) -> None:
    """Remove the state of a run whose result is stored."""
    if isinstance(target, Path):
        shutil.rmtree(_place_of_state(target), ignore_errors=True)


def rounds_done(target: Location) -> int:
    """How many complete rounds `--resume` would go on after; 0 if none."""
    note = files.read_note(_place_of_state(target)) if isinstance(target, Path) else None
    return int(note["round"]) if note else 0


def _place_of_state(target: Path) -> Path:
    return target.resolve().with_name(f".{target.name}.rounds")


def _describe(schedule: Schedule | None) -> str:
    if schedule is None:
        return "none"
    rounds = sorted(schedule.changes)
    changes = [getattr(schedule.changes[now], what) for now in rounds for what in ("joins", "leaves", "crashes")]
    sizes = np.array([[now, *map(len, changes[3 * i : 3 * i + 3])] for i, now in enumerate(rounds)], np.int64)
    return digest_of(schedule.first, *changes, sizes)


@contextmanager
def _state_folder(target: Location, *, resume: bool, force: bool) -> Iterator[Path]:
    """Where the run's state is. One process at a time: another one is refused while the block runs."""
    if not isinstance(target, Path):
        raise UsageError(f"{target}: --engine spark needs a folder that all workers share, not a URL; give a path")
    folder = _place_of_state(target)
    if folder.exists() and not (resume or force):
        raise UsageError(
            f"{folder}: holds a run that was not finished; go on with --resume, or start anew with --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{folder}: another process is at work there; wait for it, or stop it") from None
        for found in folder.iterdir():  # what all parts read is written anew by whoever leads
            if found.is_dir() and (found.name == "shared" or not resume):
                shutil.rmtree(found)
        if not resume:
            (folder / "note.json").unlink(missing_ok=True)
        yield folder
