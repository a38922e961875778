"""A light installation: `pip install grapevine-pubsub` brings what live nodes and the commands about them need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.extras import PACKAGES

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("light_node.py")
OF_EXTRAS = {package for packages in PACKAGES.values() for package in packages}
PATIENCE_S = 600.0

# Stands before a program and hides what extras bring, as if it were not installed.
HIDE = f"""
import sys
from importlib.machinery import PathFinder
class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {OF_EXTRAS | {"llvmlite"}!r} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""


def hidden(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment without what extras bring."""
    command = [sys.executable, "-c", HIDE + program, *arguments]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=False)


def assert_exchanged(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["received"] == "-3 C"
    assert not OF_EXTRAS & set(said["imported"])
    assert not {"aiohttp", "rich", "typer"} & set(said["imported"]), "they are for the command alone"


@pytest.mark.parametrize("system", ["spidercast", "vitis"])
def test_two_nodes_exchange_an_event_without_what_extras_bring(system: str) -> None:
    assert_exchanged(hidden(PROGRAM.read_text(), system))


def test_importing_a_node_imports_no_arrays() -> None:
    done = hidden("from grapevine.net import Node\nprint('numpy' in sys.modules, Node.__name__)")
    assert done.stdout.split() == ["False", "Node"], done.stderr


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (["simulate", "vitis"], "pyarrow", "sim"),
        (["cluster"], "pyarrow", "sim"),
        (["measure", "here"], "pyspark", "spark"),
        (["node", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"], "mqtt5", "mqtt"),
    ],
)
def test_a_command_that_needs_an_extra_says_so_in_one_line(command: list[str], package: str, extra: str) -> None:
    done = hidden("from grapevine.cli.main import main\nmain()", *command)
    sentence = f"this command needs {package}, which is not installed: pip install 'grapevine-pubsub[{extra}]'"
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"error: {sentence}, or [all] for everything\n"


def test_a_function_that_needs_an_extra_says_so() -> None:
    done = hidden("import grapevine\ngrapevine.simulate")
    assert done.returncode == 1
    assert "grapevine.simulate needs numba, which is not installed: pip install" in done.stderr.splitlines()[-1]


def test_the_doctor_finds_a_light_installation_well() -> None:
    done = hidden("from grapevine.cli.main import main\nmain()", "doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = {finding["part"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert "no sim (pip install 'grapevine-pubsub[sim]')" in found["Extras"]["found"]
    assert "Spark" not in found and "Java" not in found


@pytest.mark.slow
def test_a_wheel_in_a_new_environment_runs_live_nodes(tmp_path: Path) -> None:
    """What hatchling packs and pip installs, from the package index: this test needs one."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done

    uv = [sys.executable, "-m", "uv"]
    run(*uv, "build", "--wheel", "--out-dir", str(tmp_path / "dist"), str(ROOT))
    run(*uv, "venv", "--python", sys.executable, "new")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    python = str(tmp_path / "new" / "bin" / "python")
    run(*uv, "pip", "install", "--python", python, str(wheel))
    missing = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name) is None])"
    asked = sorted(OF_EXTRAS)
    assert run(python, "-I", "-c", missing, *asked).stdout.split() == asked, "none of them can be imported"
    assert_exchanged(run(python, "-I", str(PROGRAM)))
    assert "grapevine publish" in run(str(tmp_path / "new" / "bin" / "grapevine"), "publish", "--help").stdout
