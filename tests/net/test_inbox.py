"""Inboxes: whatever the application does, it gets every event, or is told how many it did not get."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net.inbox import Inbox, Lagged, Policy, policy_of
from grapevine.net.retention import Retention
from grapevine.net.stamp import source_of, stamped
from grapevine.net.store import Store
from grapevine.net.stored_event import StoredEvent
from tests.net.nodes import next_event
from tests.net.stores import making

ALICE, TOPIC = PeerId.of(b"alice"), 1
POLICIES = get_args(Policy)


class World:
    """A store, and a node's part: events are stored, then put."""

    def __init__(self, store: Store) -> None:
        self.store, self.sequence = store, 0
        self.inboxes: list[Inbox] = []

    def inbox(self, policy: Policy = "block", size: int = 4, since_ms: int | None = None) -> Inbox:
        return Inbox(
            "t", TOPIC, self.store, size=size, policy=policy, since_ms=since_ms, enter=self._enter, leave=self._leave
        )

    async def _enter(self, inbox: Inbox) -> None:
        self.inboxes.append(inbox)
        await inbox.begin()

    async def _leave(self, inbox: Inbox) -> None:
        self.inboxes.remove(inbox)

    async def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.sequence += 1
            content = stamped(self.sequence, b"%d" % self.sequence)
            event = await self.store.publish(source_of(ALICE), TOPIC, self.sequence, making(content))
            for inbox in self.inboxes:
                inbox.put(event)


def during(scenario: Callable[[World], Coroutine[Any, Any, None]], retention: Retention | None = None) -> None:
    async def run(folder: str) -> None:
        async with await Store.open(Path(folder), retention, synced=False) as store:
            await asyncio.wait_for(scenario(World(store)), 20)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def rest_of(inbox: Inbox) -> tuple[list[int], int]:
    """What can still be had without waiting for more: sequences, and how many were dropped."""
    got, dropped = [], 0
    with suppress(TimeoutError, StopAsyncIteration):
        while True:
            try:
                got.append((await next_event(inbox, 0.3)).sequence)
            except Lagged as lagged:
                dropped += lagged.count
    return got, dropped


def test_events_come_in_order_as_long_as_the_application_keeps_up() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox() as inbox:
            for number in range(1, 20):
                await world.publish()
                event = await next_event(inbox)
                assert (event.topic, event.publisher, event.sequence) == ("t", ALICE, number)
                assert (event.time, event.payload) == (number / 1e3, b"%d" % number)

    during(scenario)


def test_block_gives_everything_in_order_to_a_slow_reader() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("block", size=3) as inbox:
            await world.publish(50)
            assert await rest_of(inbox) == (list(range(1, 51)), 0)
            await world.publish(2)
            assert await rest_of(inbox) == ([51, 52], 0)
            assert inbox.dropped == 0

    during(scenario)


def test_drop_oldest_keeps_the_latest_and_says_how_many_went() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("drop-oldest", size=3) as inbox:
            await world.publish(10)
            with pytest.raises(Lagged, match="7 events were dropped") as lagged:
                await anext(inbox)
            assert lagged.value.count == inbox.dropped == 7
            assert await rest_of(inbox) == ([8, 9, 10], 0)

    during(scenario)


def test_drop_new_keeps_the_first_and_says_how_many_went() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("drop-new", size=3) as inbox:
            await world.publish(10)
            assert await rest_of(inbox) == ([1, 2, 3], 7)
            await world.publish()
            assert await rest_of(inbox) == ([11], 0)

    during(scenario)


@given(
    st.sampled_from(POLICIES),
    st.integers(1, 5),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12),
)
def test_nothing_is_ever_lost_in_silence(policy: Policy, size: int, replay: bool, turns: list[tuple[int, int]]) -> None:
    async def scenario(world: World) -> None:
        await world.publish(3)
        got: list[int] = []
        dropped = 0
        async with world.inbox(policy, size, since_ms=0 if replay else None) as inbox:
            for came, read in turns:
                await world.publish(came)
                for _ in range(read):
                    try:
                        got.append((await next_event(inbox, 0.02)).sequence)
                    except Lagged as lagged:
                        dropped += lagged.count
                    except TimeoutError:
                        break
        more, last = await rest_of(inbox)
        expected = world.sequence if replay else world.sequence - 3
        assert got == sorted(set(got)) and not set(got) & set(more)
        if replay:  # what it did not come to read of the past is no loss
            assert len(got) + len(more) + dropped + last <= expected
        else:
            assert len(got) + len(more) + dropped + last == expected
        if policy == "block":
            assert got + more == list(range(4 - 3 * replay, 4 - 3 * replay + len(got) + len(more)))

    during(scenario)


def test_events_that_come_while_the_reader_catches_up_are_neither_lost_nor_doubled() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("block", size=2) as inbox:
            publishing = asyncio.create_task(world.publish(300))
            got = [(await next_event(inbox, 5)).sequence for _ in range(300)]
            await publishing
            assert got == list(range(1, 301))

    during(scenario)


def test_since_replays_what_the_store_has_and_goes_on_with_what_comes() -> None:
    async def scenario(world: World) -> None:
        await world.publish(10)
        async with world.inbox(size=3, since_ms=0) as all_of_it, world.inbox(since_ms=6) as some, world.inbox() as new:
            await world.publish(2)
            assert await rest_of(all_of_it) == (list(range(1, 13)), 0)
            assert await rest_of(some) == (list(range(6, 13)), 0)
            assert await rest_of(new) == ([11, 12], 0)

    during(scenario)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_event_that_comes_before_the_replay_begins_is_not_given_twice(policy: Policy) -> None:
    async def scenario(world: World) -> None:
        await world.publish(2)
        inbox = world.inbox(policy, since_ms=0)
        world.inboxes.append(inbox)
        await world.publish()
        await inbox.begin()
        await world.publish()
        assert await rest_of(inbox) == ([1, 2, 3, 4], 0)

    during(scenario)


def test_what_retention_took_from_a_slow_reader_is_said_and_the_reader_goes_on() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("block", size=2) as inbox:
            await world.publish(10)
            assert await world.store.trim(10**9) == 10
            assert await asyncio.wait_for(rest_of(inbox), 5) == ([1, 2], 8)
            await world.publish(1)
            assert await rest_of(inbox) == ([11], 0)

    during(scenario, Retention(age_s=1))


def test_two_readers_of_one_inbox_share_its_events() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox("block", size=2) as inbox:
            await world.publish(60)
            one, other = await asyncio.gather(rest_of(inbox), rest_of(inbox))
            assert sorted(one[0] + other[0]) == list(range(1, 61))

    during(scenario)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_closed_inbox_gives_what_it_has_says_what_it_has_not_and_ends(policy: Policy) -> None:
    async def scenario(world: World) -> None:
        async with world.inbox(policy, size=3) as inbox:
            await world.publish(5)
        await world.publish(2)  # after it was left
        got, dropped = await rest_of(inbox)
        assert len(got) == 3 and dropped == inbox.dropped == 2
        with pytest.raises(StopAsyncIteration):
            await anext(inbox)

    during(scenario)


def test_closing_wakes_who_waits() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox() as inbox:
            waiting = asyncio.create_task(rest_of(inbox))
            await asyncio.sleep(0)
            inbox.close()
            assert await asyncio.wait_for(waiting, 5) == ([], 0)

    during(scenario)


def test_get_gives_up_in_time_and_loses_nothing_by_it() -> None:
    async def scenario(world: World) -> None:
        async with world.inbox() as inbox:
            with pytest.raises(TimeoutError):
                await inbox.get(timeout=0.01)
            await world.publish()
            assert (await next_event(inbox, 1)).sequence == 1

    during(scenario)


def test_policies_and_sizes_that_make_no_sense_are_refused() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(UsageError, match="choose one of block, drop-oldest, drop-new"):
            world.inbox("keep-all")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="size=0: needs a whole number of 1 or more"):
            world.inbox(size=0)

    during(scenario)
    assert policy_of("block") == "block"
    with pytest.raises(UsageError, match="choose one of"):
        policy_of("drop")


def test_an_event_is_put_by_the_number_of_its_arrival() -> None:
    event = StoredEvent(ALICE, TOPIC, 1, 0, stamped(0, b""), b"", arrival=3)

    async def scenario(world: World) -> None:
        async with world.inbox() as inbox:
            inbox.put(event)
            inbox.put(event)
            assert await rest_of(inbox) == ([1], 0)

    during(scenario)
