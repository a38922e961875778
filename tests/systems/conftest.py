"""Overlays that more than one file looks at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from grapevine import Workload
from grapevine.sim.rounds import Rounds
from grapevine.synthetic import generate
from tests.magnet_world import run_for


@pytest.fixture(scope="session")
def correlated() -> Workload:
    """Magnet's: the topics of a node are of one mode of ten."""
    return generate("magnet-modal", nodes=500, topics=200, subscriptions_per_node=10, seed=3)


@pytest.fixture(scope="session")
def grown(correlated: Workload) -> Callable[[str], Rounds]:
    """Converged overlays, for tests that only look."""
    return cache(lambda system: run_for(system, correlated, 26))
