"""Health is honest: every condition is named while it holds, and no longer."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.net.event_file import EventFile
from grapevine.net.health import JUMP_S, LOST_S, NAMES, NO_PATH_S, Health
from grapevine.net.steady_clock import SteadyClock
from grapevine.net.store import StoreError
from grapevine.net.surroundings import Surroundings, wall_clock_us
from tests.net.hostile import eventually
from tests.net.nodes import during, opening, payloads

EIGHT_DAYS_US = 8 * 86_400 * 1_000_000


@dataclass
class Signs:
    """A node as health sees it."""

    is_closing: bool = False
    is_without_peers: bool = False
    disk_trouble: str | None = None
    is_full: bool = False
    given_up: int = 0
    returned: int = 0
    cut_off: list[str] = field(default_factory=list)
    contradicting: list[str] = field(default_factory=list)

    def topics_without_path(self) -> list[str]:
        return self.cut_off


class World:
    def __init__(self) -> None:
        self.signs, self.passed_s, self.day_ms = Signs(), 100.0, 1_000_000
        self.clock = SteadyClock(lambda: self.day_ms, lambda: self.passed_s)
        self.health = Health(self.signs, self.clock, lambda: self.passed_s)

    def wait(self, seconds: float) -> None:
        self.passed_s += seconds
        self.day_ms += round(1e3 * seconds)

    def names(self) -> list[str]:
        self.health.look()
        return [condition.name for condition in self.health.conditions()]


def test_nothing_is_wrong_with_a_node_of_which_nothing_is() -> None:
    assert World().names() == []


def test_grave_conditions_come_first_and_keep_a_node_from_its_work() -> None:
    world = World()
    world.signs.is_full, world.signs.is_without_peers, world.signs.disk_trouble = True, True, "the disk is full"
    assert world.names() == ["alone", "disk", "full"]
    assert [condition.is_grave for condition in world.health.conditions()] == [True, True, False]
    world.signs.is_closing = True
    assert world.names() == ["leaving", "disk", "full"]


def test_what_came_back_and_who_contradicts_itself_are_named() -> None:
    world = World()
    world.signs.returned, world.signs.contradicting = 2, ["a", "b", "c", "d"]
    assert world.names() == ["restored", "forked"]
    sentences = [condition.sentence for condition in world.health.conditions()]
    assert "2 events of this node came back" in sentences[0] and sentences[1].startswith("a, b, c and 1 others signed")


def test_a_subscription_without_a_way_to_others_is_told_after_a_while() -> None:
    world = World()
    world.signs.cut_off = ["a", "b", "c", "d", "e"]
    assert world.names() == []
    world.wait(NO_PATH_S)
    assert world.names() == ["no path"]
    assert world.health.conditions()[0].sentence.endswith("for a, b, c and 2 others")
    world.signs.cut_off = ["e"]
    assert world.health.conditions()[0].sentence.endswith("2 others")  # until it looks again
    assert world.names() == ["no path"] and world.health.conditions()[0].sentence.endswith(" for e")
    world.signs.cut_off = []
    assert world.names() == []


def test_events_that_were_given_up_are_told_for_an_hour() -> None:
    world = World()
    world.signs.given_up = 3
    assert world.names() == ["lost"] and world.health.conditions()[0].sentence.startswith("3 events")
    world.wait(LOST_S / 2)
    world.signs.given_up = 5
    assert world.names() == ["lost"] and world.health.conditions()[0].sentence.startswith("5 events")
    world.wait(LOST_S / 2 + 1)
    assert world.names() == ["lost"] and world.health.conditions()[0].sentence.startswith("2 events")
    world.wait(LOST_S)
    assert world.names() == []


@given(st.integers(-(10**12), 10**12))
def test_a_clock_that_jumped_is_told_and_the_steady_one_does_not(jump_ms: int) -> None:
    world = World()
    before = world.clock.now_ms()
    world.day_ms += jump_ms
    world.wait(1.0)
    assert world.clock.now_ms() == before + 1_000 and world.clock.jump_ms == jump_ms
    assert (world.names() == ["clock"]) == (abs(jump_ms) > 1e3 * JUMP_S)


def test_a_clock_that_jumps_by_a_week_removes_no_event() -> None:
    async def scenario() -> None:
        ahead = 0
        async with opening(surroundings=Surroundings(clock_us=lambda: wall_clock_us() + ahead)) as a:
            async with a.subscribe("x", name="billing"):
                pass
            await a.publish("x", b"1")
            ahead = EIGHT_DAYS_US
            await a.publish("x", b"2")
            await a.parts.trim()
            assert [condition.name for condition in a.conditions()] == ["clock"] and a.trouble() is None
            async with a.subscribe("x", name="billing") as events:
                assert await payloads(events, 2) == [b"1", b"2"]

    during(scenario())


def test_a_disk_that_refuses_is_told_until_it_takes_something_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opening() as a:
            with monkeypatch.context() as patch:

                def full(self: EventFile) -> None:
                    raise sqlite3.OperationalError("database or disk is full")

                patch.setattr(EventFile, "commit", full)
                with pytest.raises(StoreError):
                    await a.publish("x", b"1")
            (condition,) = a.conditions()
            assert condition.name == "disk" and "disk is full" in condition.sentence and a.trouble() is not None
            await a.publish("x", b"1")
            assert a.conditions() == []

    during(scenario())


def test_a_node_whose_connections_are_all_links_says_that_it_is_full() -> None:
    async def scenario() -> None:
        async with opening(most_connections=2) as a, opening(a) as b, opening(a) as c:
            for node in (a, b, c):
                await node.subscribe_for_good("x")
            await eventually(lambda: [condition.name for condition in a.conditions()] == ["full"], timeout=20)
            assert set(NAMES) >= {condition.name for condition in a.conditions()}

    during(scenario())
