"""Chores: each in its time, and none stops the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from grapevine.net import housekeeping as module
from grapevine.net.housekeeping import Chore, keep_house
from tests.net.hostile import eventually
from tests.net.nodes import during


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "TICK_S", 0.001)
    yield


def test_a_chore_that_fails_is_counted_comes_again_and_stops_no_other() -> None:
    async def scenario() -> None:
        failures: Counter[str] = Counter()
        done: list[str] = []

        def wrong() -> None:
            raise ZeroDivisionError

        async def slow() -> None:
            await asyncio.sleep(0)
            done.append("slow")

        chores = [Chore(0.0, wrong), Chore(0.0, slow), Chore(0.0, lambda: done.append("quick"))]
        keeping = asyncio.create_task(keep_house(chores, failures))
        await eventually(lambda: failures["ZeroDivisionError"] >= 3 and done.count("slow") >= 3)
        assert not keeping.done() and done[:4] == ["slow", "quick"] * 2
        keeping.cancel()

    during(scenario())


def test_a_chore_waits_for_its_time_also_at_first() -> None:
    async def scenario() -> None:
        loop, times = asyncio.get_running_loop(), list[float]()
        often: list[float] = []
        begun = loop.time()
        chores = [Chore(0.05, lambda: times.append(loop.time())), Chore(0.0, lambda: often.append(loop.time()))]
        keeping = asyncio.create_task(keep_house(chores, Counter()))
        await eventually(lambda: len(times) == 3)
        keeping.cancel()
        assert all(later - earlier >= 0.05 for earlier, later in zip([begun, *times], times, strict=False))
        assert len(often) > len(times)

    during(scenario())
