"""Publishing: on the disk first, then to the overlay, and whoever waits for a path in vain is told so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from grapevine.model.errors import UsageError
from grapevine.net.chronicle import Chronicle
from grapevine.net.config import NodeConfig
from grapevine.net.confirmations import NotConfirmed
from grapevine.net.diary import Diary
from grapevine.net.event_file import StoredEvent
from grapevine.net.identity import Identity
from grapevine.net.ledger import Ledger
from grapevine.net.live_system import live_system
from grapevine.net.publishing import NoPath, Publishing
from grapevine.net.store import Store
from grapevine.net.surroundings import wall_clock_us
from grapevine.net.topics import State, Topics
from tests.net.hostile import eventually
from tests.net.nodes import during
from tests.net.overlay import Overlay


class Host(Overlay):
    """An overlay with or without a path."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = self.takes = True
        self.sent: list[int] = []

    def has_path(self, topic_id: int) -> bool:
        return self.is_open

    def publish(self, topic_id: int, envelope: bytes, sequence: int) -> bool:
        if self.takes:
            self.sent.append(sequence)
        return self.takes


class Watched:
    """Confirmations that never come."""

    def __init__(self) -> None:
        self.watched: list[tuple[int, int]] = []  # sequence, and how many are wanted

    def watch(self, topic: int, sequence: int, acks: int) -> None:
        self.watched.append((sequence, acks))

    async def wait(self, topic: int, sequence: int, timeout: float) -> None:
        raise NotConfirmed(sequence, 0, 1)


class World:
    def __init__(
        self, folder: Path, store: Store, is_alone: bool = False, clock_us: Callable[[], int] = wall_clock_us
    ) -> None:
        identity, config = Identity.open(folder), NodeConfig(payload_bytes=100)
        self.host, self.store, self.me = Host(), store, identity.id
        self.diary = Diary(folder / "diaries", identity.id.address, clock_us=clock_us)
        self.topics = Topics(config, store, Ledger(100), self.host, Chronicle(identity.id, self.diary))
        system = live_system("vitis", {}, identity.id)
        host = cast(Any, self.host)
        self.topic_id: Callable[[str], int] = system.topic
        self.confirmations = Watched()
        self.publishing = Publishing(
            *(identity, system, config, store, self.topics, host, cast(Any, self.confirmations)),
            lambda: is_alone,
            clock_us,
        )


@asynccontextmanager
async def world_in(folder: Path, **options: Any) -> AsyncIterator[World]:
    async with await Store.open(folder, synced=False) as store:
        yield World(folder, store, **options)


def test_an_event_is_kept_handed_on_and_acknowledged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            event = await world.publishing.publish("x", b"news", 1.0)
            assert (event.topic, event.publisher, event.sequence, event.payload) == ("x", world.me, 1, b"news")
            assert world.host.sent == [1] and world.topics.state(world.topic_id("x")) is State.PUBLISHED
            assert len(await world.store.find(world.me, world.topic_id("x"), [1])) == 1

    during(scenario())


def test_an_event_is_dated_when_it_was_asked_for_in_the_event_and_in_the_diary(tmp_path: Path) -> None:
    """However long the disk takes: it is what the application waits for, and what `grapevine cluster` counts."""

    async def scenario() -> None:
        async with await Store.open(tmp_path, synced=False) as store:
            now_us = [1_700_000_000_000_000]
            world = World(tmp_path, store, is_alone=True, clock_us=lambda: now_us[0])
            keep = store.publish

            async def slowly(*given: Any) -> StoredEvent:
                now_us[0] += 3_000_000
                return await keep(*given)

            store.publish = slowly  # type: ignore[method-assign]
            event = await world.publishing.publish("x", b"news", 1.0)
            world.diary.close()
            (line,) = [json.loads(line) for line in world.diary.path.read_text().splitlines()]
            assert (line["what"], line["time"], event.time) == ("published", 1_700_000_000_000_000, 1_700_000_000.0)

    during(scenario())


def test_without_a_path_it_waits_and_goes_when_there_is_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            world.host.is_open = False
            publishing = asyncio.create_task(world.publishing.publish("x", b"news", 60.0))
            await eventually(lambda: world.publishing.unsent == 1)
            await world.publishing.send_unsent()
            assert world.publishing.unsent == 1 and not publishing.done()
            world.host.is_open, world.host.takes = True, False  # there is a path, but the peer fails
            await world.publishing.send_unsent()
            assert world.publishing.unsent == 1
            world.host.takes = True
            await world.publishing.send_unsent()
            assert (await publishing).sequence == 1 and world.host.sent == [1] and world.publishing.unsent == 0

    during(scenario())


def test_who_waits_in_vain_is_told_and_the_event_stays_on_offer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            topic = world.topic_id("x")
            world.host.is_open = False
            with pytest.raises(NoPath, match="nobody could take event 1 within 0 s; it is kept"):
                await world.publishing.publish("x", b"news", 0.0)
            assert await world.store.offers() == [(topic, 1, 0)] and not world.publishing.is_awaited
            world.host.now += 10_000  # long after its membership would have ended
            world.topics.follow()
            assert world.topics.state(topic) is State.PUBLISHED
            world.host.is_open = True
            await world.publishing.send_unsent()
            assert world.host.sent == [1] and world.publishing.unsent == 0 and await world.store.offers() == []
            world.host.now += 10_000
            world.topics.follow()
            assert topic not in world.host.members

    during(scenario())


def test_what_was_on_offer_is_so_in_the_next_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            world.host.is_open = False
            for acks in (0, 2):
                with pytest.raises(NoPath):
                    await world.publishing.publish("x", b"news", 0.0, acks)
        async with world_in(tmp_path) as world:
            await world.publishing.resume_offers()
            assert world.topics.state(world.topic_id("x")) is State.PUBLISHED and world.publishing.unsent == 2
            await world.publishing.send_unsent()
            assert world.host.sent == [1, 2] and world.confirmations.watched == [(2, 2)]
            assert await world.store.offers() == [(world.topic_id("x"), 2, 2)]
            await world.publishing.end_offer(world.topic_id("x"), 2)
            assert await world.store.offers() == []

    during(scenario())


def test_an_offer_whose_event_is_gone_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.store.offer(7, 3, 1)
            await world.publishing.resume_offers()
            assert await world.store.offers() == [] and world.publishing.unsent == 0

    during(scenario())


def test_an_event_that_nobody_confirmed_is_on_offer_from_the_moment_it_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            with pytest.raises(NotConfirmed, match="0 of 1 others had event 1"):
                await world.publishing.publish("x", b"news", 0.0, 1)
            assert world.confirmations.watched == [(1, 1)]
            assert await world.store.offers() == [(world.topic_id("x"), 1, 1)]

    during(scenario())


def test_a_network_of_one_waits_for_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path, is_alone=True) as world:
            world.host.is_open = False
            assert (await world.publishing.publish("x", b"", 60.0)).sequence == 1

    during(scenario())


def test_closing_tells_who_waits_and_refuses_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            world.host.is_open = False
            publishing = asyncio.create_task(world.publishing.publish("x", b"news", 60.0))
            await eventually(lambda: world.publishing.unsent == 1)
            world.publishing.close()
            with pytest.raises(NoPath, match="closed"):
                await publishing
            with pytest.raises(UsageError, match="the node is closed"):
                await world.publishing.publish("x", b"", 1.0)

    during(scenario())


@pytest.mark.parametrize("payload", [b"x" * 101, "text", None])
def test_what_is_no_payload_is_refused_and_leaves_no_trace(tmp_path: Path, payload: Any) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            with pytest.raises(UsageError, match=r"give bytes(, e.g. text.encode\(\))?, 100 of them at most"):
                await world.publishing.publish("x", payload, 1.0)
            assert world.topics.state(world.topic_id("x")) is State.ABSENT and not world.host.told

    during(scenario())


def test_who_published_lately_is_a_member_again_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world_in(tmp_path) as world:
            await world.publishing.publish("x", b"", 1.0)
        async with world_in(tmp_path) as world:
            await world.publishing.rejoin()
            assert world.host.told == [("join", world.topic_id("x"))]

    during(scenario())
