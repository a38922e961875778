"""A topic's life: its states, what each entails, and what happens when several want to change it at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net.chronicle import Chronicle
from grapevine.net.config import NodeConfig
from grapevine.net.envelope import stamped
from grapevine.net.event_file import StoredEvent
from grapevine.net.inbox import Inbox
from grapevine.net.ledger import Ledger
from grapevine.net.store import Store, StoreError
from grapevine.net.topics import State, Topics
from tests.net.overlay import Overlay

ME, X, Y = PeerId.of(b"me"), 1, 2
MEMBERSHIP_S = 10.0


class World:
    """Topics with a real store and ledger, and a disk that can be made to wait or to fail."""

    def __init__(self, store: Store) -> None:
        self.store, self.overlay, self.ledger = store, Overlay(), Ledger(100)
        self.config = NodeConfig(membership_s=MEMBERSHIP_S)
        self.topics = Topics(self.config, store, self.ledger, self.overlay, Chronicle(ME, None))
        self.asked: list[str] = []  # changes that reached the disk, in order
        self.disk_works = asyncio.Event()
        self.disk_works.set()
        self.disk_fails = False
        for name in ("subscribe", "unsubscribe"):
            setattr(store, name, self.slowly(name, getattr(store, name)))

    def slowly(self, name: str, change: Callable[..., Coroutine[Any, Any, None]]) -> Any:
        async def changed(topic_id: int, *rest: Any) -> None:
            self.asked.append(name)
            await self.disk_works.wait()
            if self.disk_fails:
                raise StoreError("the disk is full")
            await change(topic_id, *rest)

        return changed

    def reader(self, topic_id: int = X, since_ms: int | None = None) -> Inbox:
        return Inbox(
            f"topic {topic_id}",
            topic_id,
            self.store,
            size=10,
            policy="block",
            since_ms=since_ms,
            enter=self.topics.enter,
            leave=self.topics.leave,
        )

    async def publish(self, topic_id: int = X) -> StoredEvent:
        async with self.topics.publishing(topic_id):
            event = await self.store.publish(ME, topic_id, 0, stamped(0, b"news"), lambda _: b"signed")
            self.topics.on_published(event, 0)
            return event

    async def assert_rules_hold(self) -> None:
        """The three rules of the module, after `follow`, which accounts of carried topics wait for."""
        stored = await self.store.subscriptions()
        self.topics.follow()
        for topic_id in (X, Y):
            state = self.topics.state(topic_id)
            assert (topic_id in self.ledger) == (state is not State.ABSENT)
            assert (f"topic {topic_id}" in stored) == (state is State.WANTED) == self.topics.is_wanted(topic_id)
            assert (topic_id in self.overlay.members) == (state in (State.WANTED, State.PUBLISHED))
            assert state is not State.ABSENT or topic_id not in self.overlay.carried()


def during(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run(folder: str) -> None:
        async with await Store.open(Path(folder), synced=False) as store:
            await asyncio.wait_for(scenario(World(store)), 20)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


def test_a_topic_is_wanted_while_it_is_read_and_absent_before_and_after() -> None:
    async def scenario(world: World) -> None:
        assert world.topics.state(X) is State.ABSENT
        async with world.reader(), world.reader():
            assert world.topics.state(X) is State.WANTED and world.topics.name_of(X) == "topic 1"
            await world.assert_rules_hold()
        assert world.topics.state(X) is State.ABSENT and world.topics.name_of(X) == ""
        assert world.overlay.told == [("subscribe", X), ("unsubscribe", X)]
        await world.assert_rules_hold()
        assert world.topics._topics == {}

    during(scenario)


def test_what_is_wanted_for_good_stays_without_readers_until_it_is_forgotten() -> None:
    async def scenario(world: World) -> None:
        await world.topics.want(X, "topic 1", 5)
        async with world.reader():
            pass
        assert world.topics.state(X) is State.WANTED and world.topics.since_ms(X) == 5
        await world.topics.forget(X)
        await world.topics.forget(X)  # once is enough
        assert world.topics.state(X) is State.ABSENT and world.asked == ["subscribe", "unsubscribe"]

    during(scenario)


def test_who_publishes_is_a_member_for_a_while_and_no_longer() -> None:
    async def scenario(world: World) -> None:
        await world.publish()
        assert world.topics.state(X) is State.PUBLISHED and world.ledger.last(X, ME.full) == 1
        world.overlay.now = MEMBERSHIP_S - 1
        await world.publish()
        world.overlay.now = 2 * MEMBERSHIP_S - 2
        await world.assert_rules_hold()
        assert world.topics.state(X) is State.PUBLISHED
        world.overlay.now = 2 * MEMBERSHIP_S
        await world.assert_rules_hold()
        assert world.topics.state(X) is State.ABSENT
        assert world.overlay.told == [("join", X), ("unsubscribe", X)] and world.topics._topics == {}

    during(scenario)


def test_who_stops_reading_and_published_lately_is_a_member_still() -> None:
    async def scenario(world: World) -> None:
        async with world.reader():
            await world.publish()
        assert world.topics.state(X) is State.PUBLISHED
        await world.assert_rules_hold()
        world.overlay.now = MEMBERSHIP_S + 1
        await world.assert_rules_hold()
        assert world.topics.state(X) is State.ABSENT
        assert world.overlay.told == [("subscribe", X), ("join", X), ("unsubscribe", X)]

    during(scenario)


def test_a_membership_does_not_end_while_something_is_published() -> None:
    async def scenario(world: World) -> None:
        async with world.topics.publishing(X):
            world.overlay.now = MEMBERSHIP_S + 1
            world.topics.follow()
            assert world.topics.state(X) is State.PUBLISHED and X in world.ledger
        await world.assert_rules_hold()
        assert world.topics.state(X) is State.ABSENT

    during(scenario)


def test_accounts_follow_what_the_overlay_carries() -> None:
    async def scenario(world: World) -> None:
        assert not world.topics.is_carried(X) and X not in world.ledger
        world.overlay.relayed = {X, Y}
        assert world.topics.is_carried(X) and world.topics.state(X) is State.CARRIED  # an event came first
        await world.assert_rules_hold()
        assert world.topics.state(Y) is State.CARRIED
        await world.publish(Y)
        world.overlay.relayed = set()
        await world.assert_rules_hold()
        assert (world.topics.state(X), world.topics.state(Y)) == (State.ABSENT, State.PUBLISHED)

    during(scenario)


def test_a_publisher_that_only_carried_the_topic_knows_its_own_earlier_events() -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            await world.store.publish(ME, X, 0, stamped(0, b"before"), lambda _: b"signed")
        world.overlay.relayed = {X}
        world.topics.follow()
        await world.publish()
        assert world.ledger.is_complete(X) and world.ledger.last(X, ME.full) == 4

    during(scenario)


def test_the_store_knows_a_subscription_before_the_overlay_and_forgets_it_after() -> None:
    async def scenario(world: World) -> None:
        world.disk_works.clear()
        reading = asyncio.create_task(world.topics.enter(reader := world.reader()))
        await until(lambda: world.asked == ["subscribe"])
        assert world.overlay.told == [] and world.topics.state(X) is State.ABSENT
        world.disk_works.set()
        await reading
        assert world.overlay.told == [("subscribe", X)]
        world.disk_works.clear()
        leaving = asyncio.create_task(world.topics.leave(reader))
        await until(lambda: world.asked[1:] == ["unsubscribe"])
        assert world.overlay.told[1:] == [("unsubscribe", X)] and "topic 1" in await world.store.subscriptions()
        world.disk_works.set()
        await leaving
        await world.assert_rules_hold()

    during(scenario)


def test_a_reader_that_comes_while_the_last_one_leaves_is_not_forgotten() -> None:
    async def scenario(world: World) -> None:
        await world.topics.enter(first := world.reader())
        world.disk_works.clear()
        leaving = asyncio.create_task(world.topics.leave(first))
        await until(lambda: world.asked == ["subscribe", "unsubscribe"])
        entering = asyncio.create_task(world.topics.enter(second := world.reader()))
        await asyncio.sleep(0)
        world.disk_works.set()
        await asyncio.gather(leaving, entering)
        assert world.topics.state(X) is State.WANTED
        await world.assert_rules_hold()
        await world.publish()
        assert (await second.get(5)).payload == b"news"

    during(scenario)


def test_a_reader_that_leaves_while_another_comes_does_not_take_the_topic_away() -> None:
    async def scenario(world: World) -> None:
        world.disk_works.clear()
        first, second = world.reader(), world.reader()
        entering = [asyncio.create_task(world.topics.enter(reader)) for reader in (first, second)]
        await until(lambda: world.asked == ["subscribe"])
        world.disk_works.set()
        await entering[0]
        await asyncio.gather(world.topics.leave(first), entering[1])
        assert world.topics.state(X) is State.WANTED
        await world.assert_rules_hold()

    during(scenario)


def test_forgetting_twice_at_once_forgets_once() -> None:
    async def scenario(world: World) -> None:
        await world.topics.want(X, "topic 1", 0)
        await asyncio.gather(*(world.topics.forget(X) for _ in range(3)))
        assert world.asked == ["subscribe", "unsubscribe"] and world.topics.state(X) is State.ABSENT

    during(scenario)


def test_a_full_disk_changes_nothing_and_it_can_be_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.disk_fails = True
        with pytest.raises(GrapevineError, match="full"):
            await world.topics.want(X, "topic 1", 0)
        assert world.topics.state(X) is State.ABSENT and world.topics._topics == {}
        world.disk_fails = False
        await world.topics.want(X, "topic 1", 0)
        world.disk_fails = True
        with pytest.raises(GrapevineError, match="full"):
            await world.topics.forget(X)
        assert world.topics.state(X) is State.WANTED
        await world.assert_rules_hold()

    during(scenario)


def test_a_reader_that_is_left_gets_nothing_after_the_topic_was_forgotten() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            await world.topics.forget(X)
            await world.publish()
            reader.close()
            with pytest.raises(StopAsyncIteration):
                await reader.get(5)

    during(scenario)


def test_who_reads_from_earlier_on_moves_the_beginning_back_for_all() -> None:
    async def scenario(world: World) -> None:
        async with world.reader(since_ms=100), world.reader(since_ms=50), world.reader(since_ms=70):
            assert world.topics.since_ms(X) == 50
        assert world.topics.since_ms(X) > 10**12  # an hour ago: it is not wanted any more

    during(scenario)


def test_closing_tells_readers_and_leaves_subscriptions_for_the_next_session() -> None:
    async def scenario(world: World) -> None:
        async with world.reader() as reader:
            world.topics.close()
            with pytest.raises(StopAsyncIteration):
                await reader.get(5)
            with pytest.raises(UsageError, match="the node is closed"):
                await world.topics.enter(world.reader())
        assert list(await world.store.subscriptions()) == ["topic 1"]

    during(scenario)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


STEPS = st.tuples(
    st.sampled_from(["enter", "leave", "want", "forget", "publish", "carry", "drop", "wait"]), st.sampled_from([X, Y])
)


@given(st.lists(st.lists(STEPS, min_size=1, max_size=4), max_size=8))
def test_the_rules_hold_after_any_changes_at_once(turns: list[list[tuple[str, int]]]) -> None:
    async def scenario(world: World) -> None:
        readers: dict[int, list[Inbox]] = {X: [], Y: []}

        async def enter(topic_id: int) -> None:
            await world.topics.enter(reader := world.reader(topic_id))
            readers[topic_id].append(reader)

        async def step(what: str, topic_id: int) -> None:
            if what == "enter":
                await enter(topic_id)
            elif what == "leave" and readers[topic_id]:
                await world.topics.leave(readers[topic_id].pop())
            elif what == "want":
                await world.topics.want(topic_id, f"topic {topic_id}", 0)
            elif what == "forget":
                await world.topics.forget(topic_id)
            elif what == "publish":
                await world.publish(topic_id)
            elif what == "carry":
                world.overlay.relayed.add(topic_id)
            elif what == "drop":
                world.overlay.relayed.discard(topic_id)
            elif what == "wait":
                world.overlay.now += MEMBERSHIP_S + 1
                world.topics.follow()

        for turn in turns:
            await asyncio.gather(*(step(*one) for one in turn))
            await world.assert_rules_hold()

    during(scenario)
