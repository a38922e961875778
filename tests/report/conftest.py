"""One experiment for all tests of the page: synthetic numbers, and two real simulations to draw."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapevine
from grapevine.report.page import write_page
from grapevine.synthetic import generate
from tests.report.experiments import write_sample


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiments") / "a sample"
    workload = generate("vitis-low", nodes=120, topics=60, subscriptions_per_node=8, buckets=6, buckets_per_node=2)
    simulated: dict[str, str] = {"vitis": "a" * 16, "rvr": "b" * 16}
    for system, run_id in simulated.items():
        grapevine.simulate(system, workload, rounds=20).save(folder / "simulations" / f"run_id={run_id}")
    return write_sample(folder, simulated)


@pytest.fixture(scope="session")
def page(experiment: Path) -> Path:
    return write_page(experiment)
