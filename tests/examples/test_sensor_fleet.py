"""The fleet of sensors: what the dashboards say in the end, and a stop on the way."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.examples.programs import started

UNLUCKY = "north/temperature/cellar"


def rows(lines: list[str], title: str) -> dict[str, tuple[str, str]]:
    """A dashboard's table: by sensor, how many readings came, and which did not."""
    first = lines.index(title) + 2
    last = lines.index("", first)
    found = [line.split(maxsplit=3) for line in lines[first:last]]
    return {name: (readings, missing) for name, readings, _, missing in found}


def test_what_was_published_arrives_and_what_was_not_is_reported(tmp_path: Path) -> None:
    with started("sensor_fleet.py", "--readings", "6", "--every", "0.05", folder=tmp_path) as fleet:
        assert (fleet.finish(), fleet.complaints()) == (0, "")
        temperatures, north = rows(fleet.lines, "Temperatures"), rows(fleet.lines, "The north")
        assert len(temperatures) == 6 and len(north) == 4, "each dashboard has what it wants, and nothing else"
        for name, row in (temperatures | north).items():
            assert row == (("4", "3, 4") if name == UNLUCKY else ("6", "none")), name
        assert fleet.lines[-1] == f"{UNLUCKY} was told of the adjustment that was made while it had no power"
        assert not fleet.left_behind()


def test_it_can_be_stopped_on_the_way(tmp_path: Path) -> None:
    with started("sensor_fleet.py", "--readings", "100000", folder=tmp_path) as fleet:
        fleet.until("12 sensors and 2 dashboards")
        assert (fleet.finish(signal.SIGINT), fleet.complaints()) == (0, "")
        assert not fleet.left_behind()


def test_too_few_readings_for_the_story_are_refused(tmp_path: Path) -> None:
    with started("sensor_fleet.py", "--readings", "2", folder=tmp_path) as fleet:
        assert fleet.finish() == 2
        assert "--readings: give at least 3" in fleet.complaints()
