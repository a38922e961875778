"""Two thousand schedules, two hundred of them longer than the others: three quarters of an hour of `make test-full`."""

from __future__ import annotations

import pytest

from grapevine.net.torture import Settings, run_seed
from tests.net.torture.test_run import SHORT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", range(1_000, 1_200, 20))
def test_no_long_schedule_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 20):
        assert run_seed(seed, Settings(minutes=5)).violations == (), seed


@pytest.mark.parametrize("first", range(2_000, 3_800, 100))
def test_no_short_schedule_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + 100):
        assert run_seed(seed, SHORT).violations == (), seed
