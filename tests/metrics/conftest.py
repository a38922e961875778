"""Metrics that systems declare are in the catalogue once their packages are imported: by every command, and here."""

from __future__ import annotations

import pytest

from grapevine.systems.dictionary import tables_and_metrics


@pytest.fixture(scope="session", autouse=True)
def all_metrics() -> None:
    tables_and_metrics()
