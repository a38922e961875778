"""Named readers of whole nodes: restarts, kills and retention in between; and what anonymous ones get of the past."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from grapevine.model.errors import UsageError
from grapevine.net import Event, Gap, Node
from grapevine.net.retention import Retention
from grapevine.net.surroundings import Surroundings, wall_clock_us
from tests.net.hostile import eventually
from tests.net.nodes import during, endpoint, opening, payloads, silence

HOUR_US = 3_600_000_000


async def publish(node: Node, *texts: bytes) -> None:
    for text in texts:
        await node.publish("x", text)


def test_what_came_while_a_node_was_away_is_read_by_the_next_of_the_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a:
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", name="billing") as events:
                await publish(a, b"1", b"2")
                assert await payloads(events, 2) == [b"1", b"2"]
            await publish(a, b"3", b"4", b"5")
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", name="billing") as events:
                assert await payloads(events, 3) == [b"3", b"4", b"5"]
                assert await silence(events)

    during(scenario())


def test_the_topic_is_kept_while_nobody_reads_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a, data_dir=tmp_path) as b:
            async with b.subscribe("x", name="billing"):
                pass
            assert b.subscriptions == ["x"] and await b.readers("x") == ["billing"]
            await publish(a, b"1", b"2", b"3")
            await eventually(lambda: b.delivered == 3)
            async with b.subscribe("x", name="billing") as events:
                assert await payloads(events, 3) == [b"1", b"2", b"3"]
            await b.unsubscribe("x", name="billing")
            assert b.subscriptions == ["x"] and await b.readers("x") == []
            with pytest.raises(UsageError, match="'billing' does not read 'x'; there is no named reader"):
                await b.unsubscribe("x", name="billing")

    during(scenario())


def test_readers_are_named_whatever_number_their_topic_has() -> None:
    """Numbers of topics have 64 bits without a sign, those of SQLite have one: half of all topics."""

    async def scenario() -> None:
        async with opening() as a:
            for topic in ("a", "b", "c", "d", "e", "f"):
                async with a.subscribe(topic, name="billing"):
                    assert await a.readers(topic) == ["billing"]

    during(scenario())


def test_with_the_last_reader_its_topic_is_given_back_if_that_is_asked_for() -> None:
    async def scenario() -> None:
        async with opening() as a:
            for name in ("billing", "audit"):
                async with a.subscribe("x", name=name):
                    pass
            await a.unsubscribe("x", name="billing", last=True)
            assert a.wants("x") and a.topics == ["x"]
            async with a.subscribe("x"):
                await a.unsubscribe("x", name="audit", last=True)
                assert a.wants("x")
            assert not a.wants("x") and a.subscriptions == []

    during(scenario())


def test_one_at_a_time_reads_under_a_name() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x", name="billing") as first:
            with pytest.raises(UsageError, match="'billing' reads 'x' already"):
                async with a.subscribe("x", name="billing"):
                    pass
            async with a.subscribe("x", name="audit") as second, a.subscribe("x") as third:
                await publish(a, b"1")
                assert [await payloads(events, 1) for events in (first, second, third)] == [[b"1"]] * 3
            await a.unsubscribe("x")  # its readers are forgotten, and get nothing more
            with pytest.raises(StopAsyncIteration):
                await anext(first)
            assert await a.readers("x") == []

    during(scenario())


def test_what_retention_took_before_it_was_read_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(data_dir=tmp_path, retention=Retention(topic_bytes=600)) as a:
            async with a.subscribe("x", name="billing"):
                pass
            await publish(a, b"1", b"2", b"3", b"4")
            await a.parts.trim()
            async with a.subscribe("x", name="billing") as events:
                gap, event = await events.get(10), await events.get(10)
                assert isinstance(gap, Gap) and (gap.first, gap.reason) == (1, "evicted")
                assert isinstance(event, Event) and event.sequence == gap.last + 1

    during(scenario())


@pytest.mark.parametrize("name", [None, "billing"])
def test_who_asks_for_the_past_of_a_topic_that_is_subscribed_already_gets_it(name: str | None) -> None:
    async def scenario() -> None:
        an_hour_ago = Surroundings(clock_us=lambda: wall_clock_us() - HOUR_US)
        async with opening(surroundings=an_hour_ago) as a, opening(a) as b:
            await publish(a, b"1", b"2", b"3")
            await asyncio.sleep(1)  # what is still on its way to a node that subscribes is not the past
            await b.subscribe_for_good("x")
            topic = b.parts.system.topic("x")
            await eventually(
                lambda: b.parts.ledger.last(topic, a.parts.folder.epochs.source) == 3
            )  # they are too old for it
            assert b.delivered == 0
            how: dict[str, Any] = {} if name is None else {"name": name}
            async with b.subscribe("x", since=0, **how) as events:
                assert sorted(await payloads(events, 3)) == [b"1", b"2", b"3"]

    during(scenario())


def test_a_reader_says_what_it_was_not_given_rightly() -> None:
    async def scenario() -> None:
        async with opening() as a:
            for wrong, sentence in (
                ({"ack": "explicit"}, "only a named reader acknowledges"),
                ({"name": "n", "policy": "drop-new"}, "a named reader misses nothing"),
                ({"name": "n", "ack": "never"}, "ack='never'"),
                ({"name": "n", "size": 0}, "size=0"),
                ({"name": ""}, "name=''"),
            ):
                with pytest.raises(UsageError, match=sentence):
                    a.subscribe("x", **wrong)  # type: ignore[call-overload]

    during(scenario())


def test_a_reader_that_is_killed_again_and_again_gets_everything_and_repeats_only_what_was_in_hand(
    tmp_path: Path,
) -> None:
    async def session(a: Node, first: int, last: int) -> list[int]:
        """Start the program, publish these, kill it when it has printed one of the last four; what it printed."""
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.net.durable_reader", str(tmp_path), endpoint(a), "x"),
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert program.stdout is not None
        try:
            assert await program.stdout.readline() == b"ready\n"
            await publish(a, *(b"%d" % number for number in range(first, last + 1)))
            printed = []
            while not printed or printed[-1] < last - 3:
                printed.append(int(await asyncio.wait_for(program.stdout.readline(), 30)))
        finally:
            program.send_signal(signal.SIGKILL)
        printed += map(int, (await program.stdout.read()).split())
        await program.wait()
        return printed

    async def scenario() -> None:
        async with opening() as a:
            reached = 0
            for last in (10, 20, 30, 33):
                printed = await session(a, last - 9 if last <= 30 else 31, last)
                assert printed[0] in (max(reached, 1), reached + 1)  # the last one again at most, and none left out
                assert printed == list(range(printed[0], printed[-1] + 1))
                reached = printed[-1]
            assert reached >= 30

    during(scenario(), timeout=120)
