"""The command as a whole: what its help says without importing what it is about."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from grapevine.cli.main import COMMANDS, load

HEAVY = {"numba", "numpy", "pyarrow", "pyspark", "scipy", "matplotlib", "altair", "aiohttp"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_all_commands_says_what_each_says_of_itself(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.help.strip().splitlines()[0] == COMMANDS[name].help


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_the_help_imports_nothing_heavy(asked: str) -> None:
    program = (
        "import json, sys\nfrom grapevine.cli.main import app\n"
        f"try:\n    app([{asked!r}])\nexcept SystemExit:\n    print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    answer, imported = done.stdout.strip().rsplit("\n", 1)
    assert ("simulate" if asked == "--help" else "grapevine 0") in answer
    assert not HEAVY & set(json.loads(imported))
