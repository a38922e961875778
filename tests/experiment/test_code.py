"""Keys change with what decides a result, and with nothing else."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path

import pytest

from grapevine.experiment.code import (
    PACKAGE,
    RUN_CODE,
    WORKLOAD_CODE,
    code_digest,
    content_digest,
    module_digest,
    system_code,
)
from grapevine.experiment.description import Experiment, read_experiment
from grapevine.experiment.plan import plan, trace_key
from grapevine.systems.registry import all_systems
from tests.memory_store import MemoryLocation, MemoryStore

TEXT = """
title = "Keys"

[clock]
latency = "recorded"
recorded = ["matrix.txt"]

[[workloads]]
name = "made"
model = "vitis-random"
nodes = 50
topics = 20
subscriptions_per_node = 3

[[workloads]]
name = "read"
trace = "follows"
path = "follows.txt"

[[workloads]]
name = "churned"
model = "vitis-random"
nodes = 60
topics = 20
subscriptions_per_node = 3
churn = { format = "avt", path = "nodes.avt" }

[[systems]]
system = "vitis"

[[systems]]
system = "rappel"
workloads = ["made"]
"""
NEUTRAL = (  # used by the makers of workloads, decides none
    "pipeline/degrees.py",  # for distances that are reported
    "metrics",
    "pipeline/class_archive.py",
    "pipeline/java.py",  # starts Spark
    "pipeline/session.py",
    "pipeline/progress.py",
    "pipeline/hadoop.py",  # says where folders lie
    "pipeline/shipping.py",
    "version.py",  # which manifests name
)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    for name in ("follows.txt", "nodes.avt", "matrix.txt"):
        (tmp_path / name).write_text(f"content of {name}")
    (tmp_path / "keys.toml").write_text(TEXT)
    return read_experiment(tmp_path / "keys.toml")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__")))


Keys = tuple[dict[str, str], dict[tuple[str, str], str]]


def keys(experiment: Experiment, traces: Path, package: Path = PACKAGE) -> Keys:
    """The keys of workloads and the ids of runs."""
    runs = plan(experiment, traces=traces, package=package)
    return (
        {run.workload.name: run.workload.key for run in runs},
        {(run.system, run.workload.name): run.run_id for run in runs},
    )


def test_keys_do_not_depend_on_where_traces_lie(experiment: Experiment, tmp_path: Path) -> None:
    store = MemoryLocation(MemoryStore(renames_at_once=False), "traces")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").write_text("content")
    for name in ("follows.txt", "nodes.avt", "matrix.txt", "folder"):
        (store / name).put(tmp_path / name)
        assert content_digest(store / name) == content_digest(tmp_path / name) is not None
    assert content_digest(store / "nothing") is None
    runs = plan(experiment, traces=store)
    assert ({run.workload.name: run.workload.key for run in runs}) == keys(experiment, tmp_path)[0]
    assert trace_key("follows", [store / "follows.txt"]) == trace_key("follows", [tmp_path / "follows.txt"])


def changed(before: Keys, after: Keys) -> tuple[set[str], set[tuple[str, str]]]:
    workloads = {name for name in before[0] if before[0][name] != after[0][name]}
    return workloads, {name for name in before[1] if before[1][name] != after[1][name]}


WORKLOADS = {"made", "read", "churned"}
RUNS = {("vitis", "made"), ("vitis", "read"), ("vitis", "churned"), ("rappel", "made")}


def test_a_copy_of_the_code_has_the_same_keys(experiment: Experiment, tmp_path: Path, package: Path) -> None:
    assert keys(experiment, tmp_path, package) == keys(experiment, tmp_path)


@pytest.mark.parametrize(
    "module",
    [
        "synthetic/vitis.py",
        "model/workload.py",
        "kernels/rng.py",
        "pipeline/sample.py",
        "pipeline/formats.py",
        "pipeline/relate/churn.py",
        "pipeline/workloads.py",
    ],
)
def test_an_edit_of_what_makes_workloads_changes_all_keys(
    experiment: Experiment, tmp_path: Path, package: Path, module: str
) -> None:
    before = keys(experiment, tmp_path, package)
    with (package / module).open("a") as file:
        file.write("#")
    assert changed(before, keys(experiment, tmp_path, package)) == (WORKLOADS, RUNS)


@pytest.mark.parametrize(
    "module",
    ["sim/simulate.py", "blocks/network.py", "systems/contracts/peer.py", "metrics/traffic.py", "experiment/play.py"],
)
def test_an_edit_of_what_decides_runs_changes_their_ids_alone(
    experiment: Experiment, tmp_path: Path, package: Path, module: str
) -> None:
    before = keys(experiment, tmp_path, package)
    with (package / module).open("a") as file:
        file.write("#")
    assert changed(before, keys(experiment, tmp_path, package)) == (set(), RUNS)


def test_an_edit_of_a_system_changes_the_ids_of_its_own_runs(
    experiment: Experiment, tmp_path: Path, package: Path
) -> None:
    before = keys(experiment, tmp_path, package)
    with (package / "systems/rappel/feed.py").open("a") as file:
        file.write("#")
    assert changed(before, keys(experiment, tmp_path, package)) == (set(), {("rappel", "made")})


def test_a_relative_is_part_of_a_systems_code() -> None:
    assert system_code("grapevine.systems.strawman.rounds") == ("systems/magnet", "systems/strawman")
    assert system_code("grapevine.systems.vitis.peer.peer") == ("systems/gossip", "systems/vitis")
    assert system_code("guests.overlay") == ()


@pytest.mark.parametrize(
    "module", ["report/page.py", "cli/main.py", "net/node.py", "pipeline/measure.py", "pipeline/sweep.py"]
)
def test_an_edit_of_what_decides_nothing_changes_no_key(
    experiment: Experiment, tmp_path: Path, package: Path, module: str
) -> None:
    before = keys(experiment, tmp_path, package)
    with (package / module).open("a") as file:
        file.write("#")
    assert keys(experiment, tmp_path, package) == before


def test_names_of_modules_count_and_other_files_do_not(experiment: Experiment, tmp_path: Path, package: Path) -> None:
    before = keys(experiment, tmp_path, package)
    (package / "sim" / "notes.txt").write_text("nothing that runs")
    assert keys(experiment, tmp_path, package) == before
    (package / "synthetic" / "omen.py").rename(package / "synthetic" / "omens.py")
    assert changed(before, keys(experiment, tmp_path, package)) == (WORKLOADS, RUNS)


def test_code_that_moved_from_one_module_to_the_next_is_other_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 2\n")
    before = code_digest(["a.py", "b.py"], tmp_path)
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "b.py").write_text("")
    assert code_digest(["a.py", "b.py"], tmp_path) != before


def test_a_part_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        code_digest(["gone.py"], tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no code"):
        code_digest(["empty"], tmp_path)


@pytest.mark.parametrize(
    ("trace", "workloads", "runs"),
    [
        ("follows.txt", {"read"}, {("vitis", "read")}),
        ("nodes.avt", set(), {("vitis", "churned")}),
        ("matrix.txt", set(), {("rappel", "made")}),
    ],
)
def test_a_trace_that_was_replaced_is_another_one(
    experiment: Experiment, tmp_path: Path, trace: str, workloads: set[str], runs: set[tuple[str, str]]
) -> None:
    """Even if its size and its time are the same."""
    before, named = keys(experiment, tmp_path), trace_key("any", [tmp_path / trace])
    at = (tmp_path / trace).stat().st_mtime_ns
    (tmp_path / trace).write_text((tmp_path / trace).read_text().upper())
    os.utime(tmp_path / trace, ns=(at, at))
    assert changed(before, keys(experiment, tmp_path)) == (workloads, runs)
    assert trace_key("any", [tmp_path / trace]) != named


def test_a_trace_that_was_copied_is_the_same(experiment: Experiment, tmp_path: Path) -> None:
    before = keys(experiment, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("follows.txt", "nodes.avt", "matrix.txt"):
        shutil.copyfile(tmp_path / name, elsewhere / name)
        os.utime(elsewhere / name, (1, 1))
    assert keys(experiment, elsewhere) == before


def test_a_folder_of_files_is_known_by_names_and_contents(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a").write_text("1")
    seen = {content_digest(folder)}
    (folder / "a").rename(folder / "b")
    seen.add(content_digest(folder))
    (folder / "a").write_text("")
    seen.add(content_digest(folder))
    assert len(seen) == 3 and None not in seen
    assert content_digest(tmp_path / "nowhere") is None


def imports(module: Path) -> set[Path]:
    """The modules of the package that this one imports, packages as a whole left out."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    inside = [PACKAGE.joinpath(*name.split(".")[1:]) for name in named if name.startswith("grapevine.")]
    return {file for path in inside for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()}


def used_by(*roots: str) -> set[str]:
    seen: set[Path] = set()
    waiting = [PACKAGE / root for root in roots]
    while waiting:
        if (module := waiting.pop()) not in seen:
            seen.add(module)
            waiting += imports(module)
    return {module.relative_to(PACKAGE).as_posix() for module in seen}


def covered(module: str, parts: tuple[str, ...]) -> bool:
    return any(module == part or module.startswith(f"{part.rstrip('/')}/") for part in parts)


def test_the_lists_name_all_that_is_imported() -> None:
    makers = used_by("pipeline/generate.py", "pipeline/ingest.py", "pipeline/sample.py")
    assert not {module for module in makers if not covered(module, (*WORKLOAD_CODE, *NEUTRAL))}
    players = used_by("experiment/play.py")
    plans = {f"experiment/{name}.py" for name in ("__init__", "code", "description", "lines", "mistakes", "plan")}
    systems = {part for name in all_systems() for part in system_code(f"grapevine.systems.{name.replace('-', '_')}")}
    assert {module for module in players if not covered(module, (*RUN_CODE, *systems))} <= {*plans, "version.py"}
    assert not any(covered(module, RUN_CODE) for module in plans)


def test_code_of_another_distribution_counts_for_its_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guests").mkdir()
    (tmp_path / "guests" / "__init__.py").write_text("")
    (tmp_path / "guests" / "overlay.py").write_text("LINKS = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = module_digest("guests.overlay")
    assert before is not None and before == module_digest("guests")
    (tmp_path / "guests" / "overlay.py").write_text("LINKS = 4\n")
    assert module_digest("guests.overlay") != before
    assert module_digest("grapevine.systems.vitis.rounds") is None
