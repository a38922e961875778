"""Extras: what pyproject.toml offers is what commands recommend."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from grapevine.model.extras import PACKAGES, is_installed, missing_extra

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {"vl-convert-python": "vl_convert"}


def packages(requirements: list[str]) -> set[str]:
    """The packages as they are imported, without our own extras that one may build on."""
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in names if name != PROJECT["name"]}


@pytest.mark.parametrize("extra", PACKAGES)
def test_an_extra_has_the_packages_that_are_missed_without_it(extra: str) -> None:
    assert packages(PROJECT["optional-dependencies"][extra]) == set(PACKAGES[extra])


def test_a_light_installation_has_none_of_them() -> None:
    assert not packages(PROJECT["dependencies"]) & {package for found in PACKAGES.values() for package in found}


def test_all_is_all() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"[\w-]+", everything)) == {PROJECT["name"], *PACKAGES}


def test_a_missing_package_is_answered_with_its_extra() -> None:
    sentence = missing_extra(ModuleNotFoundError("No module named 'llvmlite.ir'", name="llvmlite.ir"))
    assert sentence == (
        "needs numba, which is not installed: pip install 'grapevine-pubsub[sim]', or [all] for everything"
    )
    assert missing_extra(ModuleNotFoundError("No module named 'numbat'", name="numbat")) is None
    assert missing_extra(ModuleNotFoundError("no name")) is None


def test_extras_that_tests_need_are_installed() -> None:
    assert all(is_installed(extra) for extra in PACKAGES)
