"""What a subscriber gets of the past, whatever the clock of a publisher says; and what retention does with clocks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from grapevine.net import Event, Gap, Node
from grapevine.net.identity import Identity
from grapevine.net.retention import Retention
from grapevine.net.steady_clock import SteadyClock
from grapevine.net.store import Store
from grapevine.net.surroundings import Surroundings, wall_clock_us
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import Client, envelope, eventually
from tests.net.missed import TOPIC, news, publish
from tests.net.nodes import during, next_event, opening, payloads, silence
from tests.net.stores import ALICES, event, in_store

MINUTE_US, DAY_MS = 60_000_000, 86_400_000


@pytest.mark.parametrize("minutes", [2, 600, -600])
def test_a_publisher_whose_clock_is_wrong_loses_none_of_its_missed_events(tmp_path: Path, minutes: int) -> None:
    """0 of 5 arrived when it was two minutes slow."""
    wrong = Surroundings(clock_us=lambda: wall_clock_us() - minutes * MINUTE_US)

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", name="billing"):
                pass
            async with opening(a, surroundings=wrong) as slow:
                await publish(slow, news(1, 5))
                await eventually(lambda: a.delivered == 5)
                async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", name="billing") as events:
                    assert await payloads(events, 5) == news(1, 5)
                    assert b.stats()["given_up"] == 0

    during(scenario())


def test_a_node_whose_clock_was_set_back_while_it_was_down_misses_nothing(tmp_path: Path) -> None:
    """Its clock of arrivals stands still then. Partners were asked for what came from two seconds too late on."""
    set_back = Surroundings(clock_us=lambda: wall_clock_us() - 60 * MINUTE_US)

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", name="billing"):
                pass
            await publish(a, news(1, 5))
            await asyncio.sleep(2)
            async with (
                opening(a, data_dir=tmp_path, surroundings=set_back) as b,
                b.subscribe("x", name="billing") as events,
            ):
                assert await payloads(events, 5) == news(1, 5)

    during(scenario())


def test_a_time_to_come_is_now() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x", since=wall_clock_us() / 1e6 + 3600):
            (topic,) = a.parts.topics.wanted()
            assert topic.since_ms <= a.parts.clock.now_ms()

    during(scenario())


def test_the_clock_of_arrivals_is_noted_before_anything_can_come(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(data_dir=tmp_path) as a:
            assert await a.parts.store.clock() is not None

    during(scenario())


def test_a_newcomer_gets_what_came_since_a_time_by_whoever_keeps_it() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            await publish(a, news(1, 3))
            await asyncio.sleep(0.5)
            since = wall_clock_us() / 1e6
            await asyncio.sleep(0.1)
            await publish(a, news(4, 6))
            how: Any
            for how, wanted in (("beginning", news(1, 6)), (since, news(4, 6)), ("now", [])):
                async with opening(a) as b, b.subscribe("x", since=how) as events:
                    assert await payloads(events, len(wanted)) == wanted
                    await b.ready("x")
                    assert await silence(events, 1.0), how

    during(scenario())


def test_an_event_that_nobody_could_have_yet_is_waited_for_though_later_ones_came(tmp_path: Path) -> None:
    """What a new stream begins with is not what somebody happened to get of it first."""
    alice = Identity.open(tmp_path / "alice")

    async def scenario() -> None:
        async with opening() as a, opening(a) as b, a.subscribe("x"), b.subscribe("x") as events:
            await asyncio.gather(a.ready("x"), b.ready("x"))
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                mallory.send(*(Notify(TOPIC, n, alice.id.address, envelope(alice, TOPIC, n, b"%d" % n)) for n in (3,)))
                await eventually(lambda: b.delivered == 1)
                mallory.send(
                    *(Notify(TOPIC, n, alice.id.address, envelope(alice, TOPIC, n, b"%d" % n)) for n in (1, 2))
                )
                assert await payloads(events, 3) == news(1, 3)

    during(scenario())


@pytest.mark.parametrize("ordered", [True, False])
def test_loss_is_never_silent_to_anonymous_readers_either(tmp_path: Path, ordered: bool) -> None:
    alice = Identity.open(tmp_path / "alice")

    async def scenario() -> None:
        how: Any = {"ordered": ordered}
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(patience=2))
            b = await stack.enter_async_context(opening(a, patience=2))
            async with a.subscribe("x"), b.subscribe("x", **how) as events:
                await asyncio.gather(a.ready("x"), b.ready("x"))
                async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                    await mallory.enter()
                    for number in (1, 4):
                        notify = Notify(TOPIC, number, alice.id.address, envelope(alice, TOPIC, number, b""))
                        mallory.send(notify)
                    assert (await next_event(events, 10)).sequence == 1
                    rest = [await events.get(30) for _ in range(2)]
                    while sum(isinstance(item, Gap) for item in rest) < 2 and not ordered:
                        rest.append(await events.get(30))
        lost = {n for item in rest if isinstance(item, Gap) for n in range(item.first, item.last + 1)}
        assert lost == {2, 3} and {item.reason for item in rest if isinstance(item, Gap)} == {"given up"}
        assert [item.sequence for item in rest if isinstance(item, Event)] == [4]
        assert isinstance(rest[-1 if ordered else 0], Event)

    during(scenario())


# Retention


def test_carried_topics_are_trimmed_before_those_that_are_wanted(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.subscribe(1, "wanted", 0)
        await store.append_all([event(n, topic=1, time_ms=n) for n in (1, 2)])  # the oldest of all
        await store.append_all([event(n, topic=2, time_ms=100 + n) for n in (1, 2)])
        assert await store.trim(1_000) == 2
        assert len(await store.since(ALICES, 1, 0, 9)) == 2 and await store.since(ALICES, 2, 0, 9) == []

    in_store(tmp_path, scenario, Retention(total_bytes=2 * event(1).size))


def test_a_clock_that_was_set_ahead_between_two_sessions_removes_nothing_that_is_young(tmp_path: Path) -> None:
    """One trim after a jump of eight days deleted everything."""
    ahead = Surroundings(clock_us=lambda: wall_clock_us() + 8 * DAY_MS * 1_000)

    async def scenario() -> None:
        async with opening(data_dir=tmp_path) as a:
            await publish(a, news(1, 5))
        async with opening(data_dir=tmp_path, surroundings=ahead) as a:
            await a.parts.trim()
            assert len(await kept(a)) == 5

    during(scenario())


async def kept(node: Node) -> list[Any]:
    return await node.parts.store.arrivals(node.parts.system.topic("x"), 0, 100)


def test_the_clock_of_arrivals_never_goes_back_and_counts_half_an_age_of_a_pause_at_most() -> None:
    day_ms, passed_s = 1_000 * DAY_MS, 50.0
    first = SteadyClock(lambda: day_ms, lambda: passed_s, None, 3 * DAY_MS)
    noted = first.now_ms(), day_ms
    for pause_ms, counted_ms in ((DAY_MS, DAY_MS), (8 * DAY_MS, 3 * DAY_MS), (-8 * DAY_MS, 0)):
        second = SteadyClock(lambda pause_ms=pause_ms: day_ms + pause_ms, lambda: 0.0, noted, 3 * DAY_MS)
        assert second.now_ms() - noted[0] == counted_ms and second.jump_ms == 0
        assert second.at_ms(day_ms + pause_ms) == second.now_ms()
