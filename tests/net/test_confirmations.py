"""Confirmed publishing: an event is on as many disks as its publisher was told, and on offer until it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.net import Node, NoPath, NotConfirmed
from grapevine.net.messages import Confirm, Confirmed
from grapevine.net.stamp import source_of
from tests.net.hostile import Client, eventually
from tests.net.nodes import during, opening, payloads


async def is_on_disk(node: Node, publisher: Node, sequence: int) -> bool:
    topic = node.parts.system.topic("x")
    return bool(await node.parts.store.find(source_of(publisher.id), topic, [sequence]))


def test_when_publish_returns_so_many_others_have_the_event_on_their_disks() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, opening(a) as c:
            for node in (a, b, c):
                await node.subscribe_for_good("x")
            await a.ready("x", peers=2)
            for sequence in range(1, 21):
                await a.publish("x", b"news", acks=2)
                assert await is_on_disk(b, a, sequence) and await is_on_disk(c, a, sequence)
            assert a.stats()["unconfirmed"] == 0
            await eventually(lambda: not a.parts.confirmations._tasks)
            assert await a.parts.store.offers() == []

    during(scenario())


def test_too_few_confirmations_are_told_and_asked_for_until_they_come() -> None:
    async def scenario() -> None:
        async with opening(membership_s=0.1) as a, opening(a) as b:
            await b.subscribe_for_good("x")
            with pytest.raises(NotConfirmed, match="1 of 2 others had event 1 on their disks in time") as told:
                await a.publish("x", b"news", acks=2, timeout=4.0)
            assert (told.value.confirmed, told.value.wanted) == (1, 2) and a.stats()["unconfirmed"] == 1
            async with opening(a) as c, c.subscribe("x", since=0) as events:
                assert await payloads(events, 1) == [b"news"]
                await eventually(lambda: a.stats()["unconfirmed"] == 0)

    during(scenario())


def test_an_event_that_nobody_took_spreads_whenever_somebody_comes_also_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as hub:
            endpoint = "{}:{}".format(*hub.endpoint)
        async with opening(data_dir=tmp_path, membership_s=0.1, bootstrap=[endpoint]) as a:  # nobody is there
            with pytest.raises(NoPath):
                await a.publish("x", b"news", timeout=0.1)
        async with opening(data_dir=tmp_path, membership_s=0.1, bootstrap=[endpoint]) as a:
            await asyncio.sleep(0.5)  # longer than it is a member otherwise
            async with opening(a) as b, b.subscribe("x", since=0) as events:
                assert await payloads(events, 1) == [b"news"]

    during(scenario())


@pytest.mark.parametrize("acks", [-1, 1.5, "2", 65, True])
def test_acks_are_a_number_of_others(acks: object) -> None:
    async def scenario() -> None:
        async with opening() as a:
            with pytest.raises(UsageError, match="acks="):
                await a.publish("x", b"", acks=acks)  # type: ignore[arg-type]

    during(scenario())


def test_who_was_not_asked_confirms_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a:
            publishing = asyncio.create_task(a.publish("x", b"news", acks=1, timeout=2.0))
            await eventually(lambda: a.stats()["unconfirmed"] == 1)
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                for _ in range(3):
                    mallory.send(Confirmed(a.parts.system.topic("x"), 0, tuple(range(600))))
                with pytest.raises(NotConfirmed, match="0 of 1"):
                    await publishing

    during(scenario())


def test_questions_about_nothing_are_held_against_who_asks_and_what_is_owed_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            for first in range(1, 30_000, 400):
                mallory.send(Confirm(7, 0, tuple(range(first, first + 400))))
            await eventually(lambda: len(a.parts.confirmations._owed) > 9_000)
            assert len(a.parts.confirmations._owed) <= 10_000
            mallory.send(Confirm(7, 0, (0, -1)))
            await eventually(lambda: a.stats()["rejected"].get("garbage", 0) >= 1)

    during(scenario())
