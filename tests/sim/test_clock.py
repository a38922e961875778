"""A clock whose times cannot be kept is refused with all its mistakes."""

from __future__ import annotations

import pytest

from grapevine.model.errors import UsageError
from grapevine.sim.clock import ClockConfig


def test_the_clock_stops_after_its_hours() -> None:
    assert ClockConfig(hours=0.5).end_s == 1_800


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"publish_from_s": 10, "warm_up_s": 65}, "publish_from_s=10: publishers start after warm_up_s=65"),
        ({"hours": 1, "measure_from_s": 3_600}, "measure_from_s=3600: the clock stops at 3600 s"),
    ],
)
def test_times_that_contradict_each_other_are_named(times: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ClockConfig(**times)  # type: ignore[arg-type]


def test_who_publishes_nothing_may_name_any_time_for_it() -> None:
    assert ClockConfig(publish_every_s=0, publish_from_s=0).publish_every_s == 0
