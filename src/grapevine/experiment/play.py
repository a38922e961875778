"""One run of an experiment, once its workload and its traces are there."""

from __future__ import annotations

from grapevine.experiment.churn import schedule_of
from grapevine.experiment.plan import RunPlan
from grapevine.model.workload import Churn, Latency, Workload
from grapevine.sim.clock import ClockConfig
from grapevine.sim.result import Simulation
from grapevine.sim.round_run import RunConfig
from grapevine.sim.simulate import simulate


def play(run: RunPlan, workload: Workload, churn: Churn | None, latency: Latency | None, *, threads: int) -> Simulation:
    """Simulate the run. `churn` and `latency` are what the traces that it names hold, None if it names none.

    The result depends on the plan and on what it names, never on `threads`.
    """
    timed = run.driver == "peers"
    schedule = schedule_of(run.churn, workload.node_count, churn, run.seed) if run.churn else None
    return simulate(
        run.system,
        workload,
        driver=run.driver,
        seed=run.seed,
        threads=None if timed else threads,
        schedule=schedule,
        run=None if timed else RunConfig(**run.run),
        clock=ClockConfig(**run.run) if timed else None,
        latency=latency,
        **run.config,
    )
