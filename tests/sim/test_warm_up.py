"""Compiling ahead: what is named is what is run, and a wrong name is a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.sim import warm_up


def test_a_system_is_compiled_for_all_its_drivers_or_for_one() -> None:
    runs = [run for name in ("vitis", "rvr/rounds") for run in warm_up._runs_of(name)]
    assert sorted(runs) == [("rvr", "rounds"), ("vitis", "peers"), ("vitis", "rounds")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("vitis/live", "vitis/live: vitis has no driver 'live'; choose rounds or peers"),
        ("vitsi", "did you mean vitis?"),
    ],
)
def test_a_wrong_name_is_one_line_and_compiles_nothing(name: str, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grapevine.sim.warm_up", "rvr", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith(sentence) and done.stderr.count("\n") == 1


def test_what_the_demo_runs_is_what_setup_compiles() -> None:
    from grapevine.experiment.description import published_experiments, read_experiment

    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    named = next(line for line in makefile.splitlines() if line.startswith("DEMO_RUNS := ")).split()[2:]
    experiment = read_experiment(published_experiments()["quickstart"])
    assert sorted(named) == sorted({f"{entry.system}/rounds" for entry in experiment.systems})
