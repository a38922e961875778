"""The command as a user meets it: its exit code, what it prints, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grapevine.pipeline.formats import FORMATS
from grapevine.synthetic import MODELS
from grapevine.version import __version__
from tests.cli.command import COMMAND, PATIENCE_S, WIDE_AND_PLAIN, run, run_process


def test_the_installed_command_and_the_package_are_the_same_command(tmp_path: Path) -> None:
    """As a package it is started by the tests of live nodes; here as the script that was installed."""
    assert run("--version") == (0, f"grapevine {__version__}\n", "")
    wrong = "workload", "ingest", "follows", "nowhere", "--out", "w"
    installed = subprocess.run(
        [Path(sys.executable).parent / "grapevine", *wrong],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | WIDE_AND_PLAIN,
        check=False,
    )
    assert (installed.returncode, installed.stdout, installed.stderr) == run(*wrong, cwd=tmp_path)


def test_help_teaches_formats_models_and_sections() -> None:
    formats, models = (run("workload", command, "--help").stdout for command in ("ingest", "generate"))
    assert all(name in formats for name in FORMATS)
    assert all(name in models for name in MODELS)
    shown = run("workload", "generate", "vitis-high", "--help").stdout
    assert "[Vitis §IV-A]" in shown
    assert "5000" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["workload", "ingest", "follows", "nowhere", "--out", "w"], 2, "nowhere: no such file or folder"),
        (["workload", "ingest", "gossip", "README", "--out", "w"], 2, "choose one of follows, mutual-follows, friends"),
        (["workload", "generate", "vitis-high", "--buckets", "7", "--out", "w"], 2, "multiple of buckets=7"),
        (["workload", "generate", "vitis-high", "--out", "taken"], 2, "--force"),
        (["workload", "generate", "vitis-high", "--out", "taken/file/w"], 2, "cannot be written"),
        (["workload", "generate", "vitis-high", "--out", "/proc/w"], 2, "cannot be written"),
        (["workload", "generate", "vitis-high", "--conf", "x", "--out", "w"], 2, "spark.KEY=VALUE"),
        (["workload", "profile", "taken"], 2, "not a complete workload"),
        (["workload", "sample", "bfs", "taken", "--out", "w"], 2, "not a complete workload"),
        (["collect", "nowhere", "--out", "w"], 2, "nowhere: no such folder"),
        (["collect", "taken", "--out", "w"], 2, "taken: holds no diaries (*.jsonl)"),
        (["workload", "generate", "--out", "w"], 2, ""),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(tmp_path: Path, arguments: list[str], code: int, expected: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert expected in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["taken"]


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_leaves_nothing_that_a_later_stage_would_read(tmp_path: Path, kill: signal.Signals) -> None:
    command = [*COMMAND, "workload", "generate", "vitis-random", "--nodes", "2000000", "--out", "w"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + PATIENCE_S
    while not list(tmp_path.glob(".w.partial-*/subscriptions")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if kill == signal.SIGKILL:
        os.killpg(process.pid, kill)
    else:
        process.send_signal(kill)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert not (tmp_path / "w").exists()
    if kill == signal.SIGKILL:
        done = run_process(
            "workload", "generate", "vitis-random", "--nodes", "100", "--out", "w", "--json", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["w"]
    else:
        assert process.returncode == 130
        assert said.splitlines()[-1] == "stopped; nothing was left half-written"
        assert "Traceback" not in said
        assert list(tmp_path.iterdir()) == []


def test_doctor_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPEVINE_DATA", "/nowhere")
    assert "GRAPEVINE_DATA=/nowhere is not a folder" in run("doctor", "--no-spark").stdout
