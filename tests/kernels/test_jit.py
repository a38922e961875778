"""Compiled code is kept under the name of the sources that it was made of."""

from __future__ import annotations

import os
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
