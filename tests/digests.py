"""What every system did, on two small workloads and fixed seeds, in a few letters per table.

The digests stand in `tests/digests.json`. They hold whatever the number of threads, and change only when a result
does: a change that is meant is written down with `python -m tests.digests --write`, and its commit says why.
Times of the machine (`wall_s`, `cpu_s`, …) are left out, and numbers count to nine digits, since the last ones of a sum
may differ from one processor to another.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from grapevine import Workload, simulate
from grapevine.sim.churn import flash_crowd, mass_failure
from grapevine.sim.clock import ClockConfig
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import generate
from grapevine.systems.registry import all_systems

FILE = Path(__file__).with_name("digests.json")
MACHINE_TIMES = {"wall_s", "cpu_s", "repair_ms", "repair_ms_p95", "repair_ms_join", "repair_ms_leave"}
ROUNDS = RunConfig(rounds=30, measure_every=10, measure_topics=5)
CLOCK = ClockConfig(
    hours=0.2,
    warm_up_s=10,
    start_s=60,
    publish_from_s=200,
    publish_every_s=60,
    sample_s=120,
)
SMALLER: dict[tuple[str, str], dict[str, Any]] = {
    ("rappel", "peers"): {"landmarks": 5, "landmark_rounds": 2, "best_friends": 3, "filter_probes": 50},
    ("spidercast", "peers"): {"round_s": 4.0},
    ("vitis", "peers"): {"round_s": 8.0, "table_size": 8},
}


REPEATED = {"friends": "subscriptions", "backups": "online"}  # columns that other tables have as well


class Case(NamedTuple):
    """A system by one of its drivers on one of the workloads."""

    system: str
    driver: str
    workload: str

    def __str__(self) -> str:
        return "/".join(self)


def cases() -> list[Case]:
    """All that there are."""
    found = [(name, driver) for name, system in all_systems().items() for driver in system.drivers]
    return [Case(*which, workload) for which in sorted(found) for workload in ("clustered", "skewed")]


def workload_of(case: Case) -> Workload:
    """Equal profiles in buckets, or popular and rare topics; a fifth of the size for peers, who take longer."""
    small = case.driver == "peers"
    if case.workload == "clustered":
        sizes = (
            {"nodes": 30, "topics": 12, "subscriptions_per_node": 4, "buckets": 3}
            if small
            else {"nodes": 150, "topics": 60, "subscriptions_per_node": 10, "buckets": 6}
        )
        return generate("vitis-high", seed=2, **sizes)
    sizes = {"nodes": 30, "topics": 12} if small else {"nodes": 150, "topics": 40}
    return generate("spidercast", seed=3, min_subscriptions=2, max_subscriptions=8, rate_exponent=0.8, **sizes)


def digests_of(case: Case) -> dict[str, str]:
    """By table, and of the headline numbers. On the clustered workload a third comes late, else a tenth fails."""
    workload, late = workload_of(case), case.driver == "peers"
    change = flash_crowd if case.workload == "clustered" else mass_failure
    schedule = change(
        workload.node_count, share=0.3 if change is flash_crowd else 0.1, round=300 if late else 15, seed=4
    )
    how: dict[str, Any] = {"clock": CLOCK} if late else {"run": ROUNDS, "threads": 2}
    done = simulate(
        case.system, workload, driver=case.driver, seed=5, schedule=schedule, **how, **SMALLER.get(case[:2], {})
    )
    found = {name: _digest(_rows(name, table)) for name, table in done.tables.items() if table.num_rows}
    numbers = {name: _rounded(value) for name, value in done.summary.items() if value is not None}
    return found | {"summary": _digest({name: value for name, value in numbers.items() if name not in MACHINE_TIMES})}


def _rows(name: str, table: pa.Table) -> dict[str, list[Any]]:
    columns = sorted(set(table.column_names) - {REPEATED.get(name)})
    return {column: [_rounded(value) for value in table[column].to_pylist()] for column in columns}


def _rounded(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def read() -> dict[str, dict[str, str]]:
    """What was written down, by case."""
    stored: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return stored


if __name__ == "__main__":
    made = {str(case): digests_of(case) for case in cases()}
    text = json.dumps(made, indent=1, sort_keys=True) + "\n"
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text)
    else:
        print(text, end="")
