"""The command as a whole: what its help says without importing what it is about."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.cli.lazy import Command, load
from grapevine.cli.main import COMMANDS
from grapevine.cli.workload import COMMANDS as OF_WORKLOAD

HEAVY = {"numba", "numpy", "pyarrow", "pyspark", "scipy", "matplotlib", "altair", "aiohttp"}


@pytest.mark.parametrize(("name", "command"), [*COMMANDS.items(), *OF_WORKLOAD.items()])
def test_the_help_of_all_commands_says_what_each_says_of_itself(name: str, command: Command) -> None:
    found = load(name, command)
    assert found.name == name
    assert found.help.strip().splitlines()[0] == command.help


def run(*arguments: str) -> tuple[str, set[str]]:
    """What the command prints, and what it imports."""
    program = (
        "import json, sys\nfrom grapevine.cli.main import app\n"
        f"try:\n    app({list(arguments)!r})\nexcept SystemExit:\n    print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    answer, imported = done.stdout.strip().rsplit("\n", 1)
    return answer, set(json.loads(imported))


@pytest.mark.parametrize(
    ("asked", "said"), [(["--help"], "simulate"), (["--version"], "grapevine 0"), (["workload", "--help"], "ingest")]
)
def test_the_help_imports_nothing_heavy(asked: list[str], said: str) -> None:
    answer, imported = run(*asked)
    assert said in answer
    assert not HEAVY & imported


def test_a_small_model_is_generated_without_importing_spark(tmp_path: Path) -> None:
    sizes = ["--nodes", "30", "--topics", "10", "--subscriptions-per-node", "4", "--buckets", "2"]
    answer, imported = run("workload", "generate", "vitis-high", *sizes, "--out", str(tmp_path / "w"))
    assert "subscriptions" in answer and (tmp_path / "w" / "manifest.json").is_file()
    assert not {"pyspark", "scipy.special", "matplotlib"} & imported
