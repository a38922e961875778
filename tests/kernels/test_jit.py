"""Compiled code is kept under the name of the sources that it was made of."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from grapevine.kernels import code_cache, jit


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules that call a kernel by way of two modules, one of which also holds a constant; and a stranger to them."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("from grapevine import constants\n")
    (tmp_path / "deep" / "kernel.py").write_text("@njit\ndef f(): ...\n")
    (tmp_path / "constants.py").write_text("x = 1\n")
    (tmp_path / "rules.py").write_text("from grapevine.deep import (  # both\n    kernel,\n    other,\n)\n")
    (tmp_path / "alone.py").write_text("import numpy\n")
    monkeypatch.setattr(code_cache, "_PACKAGE", tmp_path)
    return tmp_path


def test_compiled_code_is_as_old_as_the_files_that_it_may_depend_on(package: Path) -> None:
    used = ["constants.py", "deep/__init__.py", "deep/kernel.py", "rules.py"]
    assert code_cache.sources_of(package / "rules.py", package) == sorted(package / name for name in used)
    assert code_cache.sources_of(package / "alone.py", package) == [package / "alone.py"]


@pytest.mark.parametrize("edited", ["constants.py", "deep/kernel.py", "rules.py"])
def test_an_edit_starts_a_new_cache_for_what_depends_on_it_and_for_nothing_else(package: Path, edited: str) -> None:
    def folders() -> list[Path]:
        code_cache.folder_for.cache_clear()
        code_cache._imported.cache_clear()
        return [code_cache.folder_for(package / name) for name in ("rules.py", "alone.py")]

    rules, alone = folders()
    (package / edited).write_text((package / edited).read_text() + "y = 2\n")
    assert folders()[0] != rules and folders()[1] == alone


def test_imports_are_those_that_python_sees() -> None:
    """Judged by the syntax tree, for every module of ours that compiles."""
    package = code_cache._PACKAGE
    for file in package.rglob("*.py"):
        if "jit import" not in file.read_text():
            continue
        named: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "grapevine":
                named |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        paths = [package.joinpath(*name.split(".")[1:]) for name in named]
        expected = {module for path in paths for module in (path.with_suffix(".py"), path / "__init__.py")}
        assert set(code_cache._imported(file, package)) == {module for module in expected if module.is_file()}


def test_the_cache_is_beside_the_package_unless_another_place_is_named(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert code_cache._cache_folder() == package / "__pycache__" / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(package / "elsewhere"))
    assert code_cache._cache_folder() == package / "elsewhere"


def test_without_a_place_to_write_beside_the_package_the_users_cache_is_taken(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (package / "home").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "home"))
    monkeypatch.setattr(os, "access", lambda path, mode: path != package)
    assert code_cache._cache_folder() == package / "home" / "grapevine" / "kernels"


@jit.njit
def successor(number: int) -> int:
    return number + 1


@jit.njit
def all_successors(numbers: NDArray[np.int32]) -> int:
    return successor(numbers[0]) + successor(40) + successor(len(numbers))


@jit.inlined
def in_the_type_of(number: int, numbers: NDArray[np.int32]) -> bool:
    return number == numbers[0]


def test_a_function_is_compiled_once_for_constants_and_numbers_of_all_sizes() -> None:
    assert successor(np.int32(1)) == 2  # type: ignore[arg-type]
    assert all_successors(np.array([5, 6], np.int32)) == 6 + 41 + 3
    assert successor(2**40) == 2**40 + 1
    assert len(successor.signatures) == 1  # type: ignore[attr-defined]


def test_a_part_of_a_hot_loop_compares_numbers_as_they_are() -> None:
    numbers = np.array([7], np.int32)
    assert in_the_type_of(np.int32(7), numbers) and in_the_type_of(7, numbers)  # type: ignore[arg-type]
    assert len(in_the_type_of.signatures) == 2  # type: ignore[attr-defined]


PROGRAM = """
from grapevine.kernels.jit import njit
print(__name__)

@njit
def twice(number):
    return 2 * number

print(twice(4), sum(twice.stats.cache_misses.values()))
"""


def test_a_file_that_was_imported_is_not_imported_when_it_is_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    said = [
        subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,  # it would wait for itself if running it imported it
        ).stdout.split()
        for arguments in (["-c", "import program"], ["program.py"], ["program.py"], ["-c", "import program"])
    ]
    as_module, as_program = ["program", "8"], ["__main__", "8"]
    assert said == [[*as_module, "1"], [*as_program, "1"], [*as_program, "0"], [*as_module, "0"]], "compiled once each"


def test_what_no_file_holds_is_compiled_and_not_kept(tmp_path: Path) -> None:
    """A cell of a notebook: its functions have the name of a file that is not there."""
    line = f"exec(compile({PROGRAM!r}, 'cell-1.py', 'exec'))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["__main__", "8"] and list(tmp_path.iterdir()) == []


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


TELLS = """
from grapevine.kernels.jit import compiling_told
from grapevine.kernels.rng import priorities
with compiling_told("vitis", print):
    priorities(1, 2, 3)
    priorities(1, 2, 4)
"""


def test_a_compiler_is_told_of_once_and_what_is_in_the_cache_is_not(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", TELLS], capture_output=True, text=True, env=environment, check=True
        ).stdout
        for _ in range(2)
    ]
    assert said == ["compiling kernels for vitis, once: about a minute\n", ""]
