"""Experiment files: what they mean, and every mistake with its line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.experiment.claims import CLAIMS
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.experiment.plan import plan
from grapevine.model.errors import UsageError

GOOD = """
title = "A grid"
seeds = [1, 2]

[run]
rounds = 20

[[workloads]]
name = "small"
model = "vitis-random"
nodes = [50, 60]
topics = 20
subscriptions_per_node = 3

[[systems]]
system = "vitis"
table_size = [5, 6]

[[systems]]
system = "opt"
table_size = "none"

[quick]
nodes = 40
seeds = [1]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "e.toml"
    path.write_text(text)
    return path


def test_the_grid_is_every_combination_of_workload_parameters_seeds_and_system_parameters(tmp_path: Path) -> None:
    runs = plan(read_experiment(write(tmp_path, GOOD)))
    vitis = [run for run in runs if run.system == "vitis"]
    assert len(vitis) == 2 * 2 * 2
    assert len(runs) == 8 + 2 * 2
    assert {run.parameters for run in vitis} == {
        f'{{"nodes": {nodes}, "table_size": {size}}}' for nodes in (50, 60) for size in (5, 6)
    }
    assert {run.config["table_size"] for run in runs if run.system == "opt"} == {None}
    assert len({run.run_id for run in runs}) == len(runs)


def test_quick_replaces_sizes_and_seeds(tmp_path: Path) -> None:
    runs = plan(read_experiment(write(tmp_path, GOOD), quick=True))
    assert {run.workload.parameters["nodes"] for run in runs} == {40}
    assert {run.seed for run in runs} == {1}


def test_a_run_is_known_by_what_decides_it(tmp_path: Path) -> None:
    first = {run.run_id for run in plan(read_experiment(write(tmp_path, GOOD)))}
    renamed = GOOD.replace('"A grid"', '"Another title"').replace('"small"', '"tiny"')
    assert {run.run_id for run in plan(read_experiment(write(tmp_path, renamed)))} == first
    longer = GOOD.replace("rounds = 20", "rounds = 21")
    assert not first & {run.run_id for run in plan(read_experiment(write(tmp_path, longer)))}


def test_all_mistakes_are_told_at_once_with_line_and_key(tmp_path: Path) -> None:
    bad = """titel = "x"
seeds = [-1]

[run]
rounds = 0

[[workloads]]
name = "a"
model = "vitis-random"
nodez = 50

[[workloads]]
name = "b"
model = "nothing"

[[systems]]
system = "vitis"
workloads = ["a", "c"]
table_size = [3, 15, "many"]

[[systems]]
system = "nope"

[[plots]]
kind = "pie"
"""
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, bad))
    said = str(caught.value)
    for expected in (
        "e.toml:1: titel: unknown; known are claims",
        "e.toml:1: title: needs a text",
        "e.toml:2: seeds: needs a list of whole numbers",
        "e.toml:4: run: rounds=0: needs at least 1",
        "e.toml:10: workloads.nodez: unknown; known are",
        "e.toml:14: workloads.model: 'nothing': choose one of vitis-random",
        "e.toml:18: systems.workloads: 'c': the workloads here are a",
        "e.toml:19: systems.table_size: 3: needs at least 4",
        "e.toml:19: systems.table_size: 'many' is not a valid int",
        "e.toml:22: systems.system: 'nope': choose one of ",
        "e.toml:25: plots.kind: 'pie': choose one of series, distribution, progress",
    ):
        assert expected in said, (expected, said)
    assert said.startswith(f"{tmp_path / 'e.toml'}: 11 mistakes\n")


@pytest.mark.parametrize(
    ("churn", "expected"),
    [
        ('{ crowd = "half" }', "churn.crowd: half: write it as SHARE@ROUND"),
        ('{ crowd = "0.5@3", crash = "0.5@9" }', "churn: needs one of path (with format), model, crowd and crash"),
        ('{ model = "vitis-high" }', "churn.model: 'vitis-high': choose one of spidercast-churn"),
        ('{ model = "spidercast-churn", mean_up_s = 0 }', "churn.mean_up_s: 0: needs at least 0.001"),
        ('{ path = "x", speed = 3 }', "churn.speed: unknown; known are"),
    ],
)
def test_churn_is_checked_before_anything_runs(tmp_path: Path, churn: str, expected: str) -> None:
    text = GOOD.replace('name = "small"\n', f'name = "small"\nchurn = {churn}\n')
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, text))
    assert expected in str(caught.value)


def test_lists_in_churn_are_a_grid(tmp_path: Path) -> None:
    churn = 'churn = { model = "spidercast-churn", mean_up_s = [50.0, 100.0], round_s = 0.5 }'
    runs = plan(read_experiment(write(tmp_path, GOOD.replace('name = "small"\n', f'name = "small"\n{churn}\n'))))
    assert {(run.shown["mean_up_s"], run.churn["mean_up_s"]) for run in runs if run.churn} == {
        (50.0, 50.0),
        (100.0, 100.0),
    }


def test_files_that_are_no_toml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_experiment(write(tmp_path, "title = "))
    with pytest.raises(UsageError, match="cannot be read"):
        read_experiment(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("name", sorted(published_experiments()))
def test_published_experiments_are_valid_and_speak_to_known_claims(name: str) -> None:
    for quick in (False, True):
        experiment = read_experiment(published_experiments()[name], quick=quick)
        assert plan(experiment)
        assert set(experiment.claims) <= set(CLAIMS)


def test_every_claim_names_experiments_that_exist() -> None:
    for claim in CLAIMS.values():
        assert set(claim.experiments) <= set(published_experiments()), claim.id
