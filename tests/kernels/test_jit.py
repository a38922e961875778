"""Compiled code is kept under the name of the sources that it was made of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.kernels import jit


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two modules, of which one compiles."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "kernel.py").write_text("@njit\ndef f(): ...\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    monkeypatch.setattr(jit, "_PACKAGE", tmp_path)
    return tmp_path


def test_an_edit_of_whatever_compiles_starts_a_new_cache_and_other_edits_do_not(package: Path) -> None:
    before = jit._digest_sources()
    (package / "plain.py").write_text("x = 2\n")
    assert jit._digest_sources() == before
    (package / "deep" / "kernel.py").write_text("@njit\ndef f(): return 1\n")
    assert jit._digest_sources() != before


def test_the_cache_is_beside_the_package_unless_another_place_is_named(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert jit._cache_folder() == package / "__pycache__" / f"kernels-{jit.SOURCES[:16]}"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(package / "elsewhere"))
    assert jit._cache_folder() == package / "elsewhere" / jit.SOURCES[:16]


def test_without_a_place_to_write_beside_the_package_the_users_cache_is_taken(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (package / "home").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "home"))
    monkeypatch.setattr(os, "access", lambda path, mode: path != package)
    assert jit._cache_folder() == package / "home" / "grapevine" / f"kernels-{jit.SOURCES[:16]}"


COMPILES = """
import sys
from grapevine.kernels.rng import priorities
print("ready", flush=True)
sys.stdin.readline()
priorities(1, 2, 3)
print(sum(priorities.stats.cache_misses.values()))
"""


def test_processes_that_start_together_compile_a_function_once(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    for process in started:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    compiled = [int(process.communicate()[0]) for process in started]
    assert sorted(compiled) == [0, 0, 1]
