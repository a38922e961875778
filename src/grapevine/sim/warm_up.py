"""Compile what systems run on, before anybody waits for it.

`python -m grapevine.sim.warm_up [SYSTEM[/DRIVER] …]` does so for all systems, or for those that are named, by all their
drivers or by one, on all cores. `make setup` calls it for what the demo runs, `make test` for everything. Compiled code
is kept (`kernels/jit`), and an edit compiles again what depends on it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from grapevine.model.errors import UsageError
from grapevine.sim.churn import mass_failure
from grapevine.sim.clock import ClockConfig
from grapevine.sim.simulate import simulate
from grapevine.synthetic import MODELS, generate, generate_churn
from grapevine.synthetic.base import ChurnModel
from grapevine.systems.registry import all_systems, system_named


def warm_up(runs: Iterable[tuple[str, str]]) -> None:
    """Compile here what these systems run on, each by this driver.

    Called before workers start: otherwise each would want the same functions at the same time. Somebody crashes, so
    that what is only needed then is compiled, too.
    """
    tiny = generate("vitis-random", nodes=40, topics=10, subscriptions_per_node=2)
    crash = mass_failure(tiny.node_count, share=0.1, round=2)
    for system, driver in sorted(runs):
        if driver == "peers":
            clock = ClockConfig(latency="constant", hours=0.1, start_s=10)
            simulate(system, tiny, driver=driver, schedule=crash, clock=clock, progress=False)
        else:
            simulate(system, tiny, driver=driver, schedule=crash, rounds=6, threads=1, progress=False)


def main(named: list[str]) -> None:
    """Compile for the systems that are named, or for all systems and all models of workloads.

    There is a process for each core; those that want the same functions wait for who compiles them.
    """
    runs = [run for name in named or all_systems() for run in _runs_of(name)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = [pool.submit(warm_up, [run]) for run in runs]
        waiting += [] if named else [pool.submit(_generate, model) for model in MODELS]
        for work in waiting:
            work.result()


def _runs_of(name: str) -> list[tuple[str, str]]:
    """The system and a driver of it, from "vitis/rounds"; from "vitis" one for every driver. UsageError if there is no
    such system or driver."""
    system, _, driver = name.partition("/")
    drivers = system_named(system).drivers
    if driver and driver not in drivers:
        raise UsageError(f"{name}: {system} has no driver {driver!r}; choose {' or '.join(drivers)}")
    return [(system, each) for each in drivers if driver in ("", each)]


def _generate(model: str) -> None:
    """A few nodes of a model; hierarchies need as many topics as a power of two."""
    sizes = {"nodes": 600} | ({"topics": 512} if model == "magnet-hierarchical" else {})
    (generate_churn if issubclass(MODELS[model], ChurnModel) else generate)(model, **sizes)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UsageError as error:
        sys.exit(str(error))
