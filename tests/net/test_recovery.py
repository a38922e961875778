"""What was missed comes back, and what was acknowledged survives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from grapevine.net import Event
from grapevine.net.envelope import envelope_of
from grapevine.net.event_file import Retention
from grapevine.net.identity import Identity
from grapevine.net.node import NoPath
from grapevine.net.recovery import CLOCKS_DIFFER_MS
from grapevine.systems.vitis.peer.messages import Notify
from grapevine.systems.vitis.peer.peer import VitisPeer
from tests.net.hostile import Client, envelope, eventually
from tests.net.missed import TOPIC, news, publish
from tests.net.nodes import during, opening, payloads, silence


def test_who_was_away_gets_what_it_missed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            async with opening(a, data_dir=tmp_path) as b:
                await b.subscribe_for_good("x")
                await asyncio.gather(a.ready("x"), b.ready("x"))
                await publish(a, news(1, 5))
                await eventually(lambda: b.delivered == 5)
            await publish(a, news(6, 30))
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", since=0) as events:
                assert b.subscriptions == ["x"]
                assert await payloads(events, 30) == news(1, 30)
                assert await silence(events, 0.3) and b.stats()["recovered"] == 25 and not b.stats()["given_up"]

    during(scenario())


def test_what_was_missed_is_had_from_others_after_its_publisher_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as at_a:
            async with opening(a, data_dir=tmp_path) as away:
                await away.subscribe_for_good("x")
            async with opening(a) as publisher:
                await publish(publisher, news(1, 10))
                assert sorted(await payloads(at_a, 10)) == sorted(news(1, 10))
            async with opening(a, data_dir=tmp_path) as back, back.subscribe("x", since=0) as events:
                assert sorted(await payloads(events, 10)) == sorted(news(1, 10))

    during(scenario())


def test_more_than_one_answer_holds_comes_in_several_and_large_events_too() -> None:
    large = [bytes([number]) * 200_000 for number in range(8)]

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            await asyncio.gather(*(a.publish("x", payload) for payload in news(1, 1_200)))
            await publish(a, large)
            async with opening(a) as b, b.subscribe("x", since=0) as events:
                got = await payloads(events, 1_208, timeout=30)
                assert sorted(got) == sorted(news(1, 1_200) + large)

    during(scenario())


def test_streams_of_many_publishers_come_back_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        crowd = [Identity.open(tmp_path / str(number)) for number in range(60)]
        async with opening() as a, a.subscribe("x") as at_a, Client.dial(a.endpoint, tmp_path / "m") as client:
            await client.enter()
            client.send(*(Notify(TOPIC, 1, who.id.address, envelope(who, TOPIC, 1, b"")) for who in crowd))
            assert {(await at_a.get(10)).publisher for _ in crowd} == {who.id for who in crowd}
            async with opening(a) as b, b.subscribe("x", since=0) as events:
                assert {(await events.get(30)).publisher for _ in crowd} == {who.id for who in crowd}
                assert b.stats()["sent"]["Digest"] < len(crowd) / 2  # not one stream in a turn

    during(scenario())


def test_who_subscribes_now_gets_nothing_old() -> None:
    too_old = time.time_ns() // 1_000_000 - 2 * CLOCKS_DIFFER_MS

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"), AsyncExitStack() as stack:
            old = Identity.open(a.parts.folder.path / "other")
            client = await stack.enter_async_context(Client.dial(a.endpoint, old._folder))
            await client.enter()
            for number in range(1, 41):
                client.send(Notify(TOPIC, number, old.id.address, envelope(old, TOPIC, number, b"old", too_old)))
            await eventually(lambda: a.delivered == 40)
            b = await stack.enter_async_context(opening(a))
            events = await stack.enter_async_context(b.subscribe("x"))
            await b.ready("x")
            client.send(Notify(TOPIC, 41, old.id.address, envelope(old, TOPIC, 41, b"new")))
            assert await payloads(events, 1) == [b"new"]
            await eventually(
                lambda: (
                    b.parts.ledger.is_complete(TOPIC) and b.parts.ledger.digest(TOPIC) == a.parts.ledger.digest(TOPIC)
                )
            )
            assert await silence(events, 0.2) and b.stats()["given_up"] == 0

    during(scenario())


# What applications refuse, and what is given up


def test_what_a_validator_refuses_is_neither_delivered_nor_kept_nor_passed_on(tmp_path: Path) -> None:
    def is_polite(event: Event) -> bool:
        assert event.topic == "x"
        return b"damn" not in event.payload

    async def scenario() -> None:
        async with opening() as a, opening(a) as b, a.subscribe("x"), b.subscribe("x") as events:
            b.validate("x", is_polite)
            await asyncio.gather(a.ready("x"), b.ready("x"))
            await publish(a, [b"good", b"damn", b"day"])
            assert sorted(await payloads(events, 2)) == [b"day", b"good"]
            await eventually(lambda: b.parts.ledger.digest(TOPIC) == a.parts.ledger.digest(TOPIC))
            refused = b.stats()["rejected"]["refused"]
            digests = b.connections.traffic.sent
            compared = digests["Digest"]
            await eventually(lambda: digests["Digest"] >= compared + 5)
            assert b.stats()["rejected"] == {"refused": refused} and refused <= 2
            assert await b.parts.store.find(a.id, TOPIC, [1, 2, 3]) != [] and not await b.parts.store.find(
                a.id, TOPIC, [2]
            )

    during(scenario())


def test_refused_events_that_were_missed_do_not_ban_who_kept_them() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            await publish(a, [b"damn"] * 40 + [b"good"])
            async with opening(a) as b:
                b.validate("x", lambda event: event.payload == b"good")
                async with b.subscribe("x", since=0) as events:
                    assert await payloads(events, 1) == [b"good"]
                    await eventually(lambda: b.parts.ledger.is_complete(TOPIC))
                    assert b.stats()["rejected"] == {"refused": 40} and not b.stats()["counts"].get("banned")

    during(scenario())


def test_what_a_validator_fails_at_is_ignored() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, a.subscribe("x"), b.subscribe("x") as events:
            b.validate("x", lambda event: bool(1 / len(event.payload)))
            await asyncio.gather(a.ready("x"), b.ready("x"))
            await publish(a, [b"", b"good"])
            assert await payloads(events, 1) == [b"good"] and b.stats()["rejected"]["ignored"] >= 1

    during(scenario())


def test_what_nobody_has_is_given_up_and_counted(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")

    async def scenario() -> None:
        async with opening(patience=2) as a, opening(a, patience=2) as b, a.subscribe("x"), b.subscribe("x") as events:
            await asyncio.gather(a.ready("x"), b.ready("x"))
            async with Client.dial(a.endpoint, tmp_path / "m") as client:
                await client.enter()
                client.send(Notify(TOPIC, 3, alice.id.address, envelope(alice, TOPIC, 3, b"3")))
                assert await payloads(events, 1) == [b"3"]
                await eventually(lambda: a.stats()["given_up"] == b.stats()["given_up"] == 2)
                client.send(Notify(TOPIC, 2, alice.id.address, envelope(alice, TOPIC, 2, b"late")))
                assert await payloads(events, 1) == [b"late"]  # better late than never

    during(scenario())


def test_what_was_given_up_is_had_from_who_comes_back_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(patience=2) as a, opening(a, patience=2) as b, a.subscribe("x"), b.subscribe("x") as events:
            await asyncio.gather(a.ready("x"), b.ready("x"))
            async with opening(data_dir=tmp_path) as alone:  # nobody hears of what it publishes
                await publish(alone, news(1, 3))
                (third,) = await alone.parts.store.find(alone.id, TOPIC, [3])
            async with Client.dial(a.endpoint, tmp_path / "m") as client:
                await client.enter()
                client.send(Notify(TOPIC, 3, third.publisher.address, envelope_of(third)))
                assert await payloads(events, 1) == news(3, 3)
                await eventually(lambda: a.stats()["given_up"] == b.stats()["given_up"] == 2)
            async with opening(a, data_dir=tmp_path):
                assert sorted(await payloads(events, 2)) == news(1, 2)

    during(scenario())


def test_what_retention_has_removed_is_not_asked_for_and_does_not_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x"):
            async with opening(a, data_dir=tmp_path, retention=Retention(age_s=0)) as b:
                await b.subscribe_for_good("x")
                await asyncio.gather(a.ready("x"), b.ready("x"))
                await publish(a, news(1, 5))
                await eventually(lambda: b.delivered == 5)
                await b.parts.store.trim(time.time_ns() // 1_000_000 + 1)
                assert not await b.parts.store.find(a.id, TOPIC, range(1, 6))
            async with opening(a, data_dir=tmp_path) as b, b.subscribe("x", since=0) as events:
                await asyncio.gather(a.ready("x"), b.ready("x"))
                await publish(a, news(6, 6))
                assert await payloads(events, 1) == news(6, 6) and await silence(events, 0.5)
                assert b.stats()["recovered"] <= 1 and b.stats()["given_up"] == 0

    during(scenario())


# Crashes

_PUBLISHER = """
import asyncio, sys
from tests.net.nodes import ROUNDS, HURRIED
from grapevine.net import Node

async def main(folder, bootstrap):
    async with Node.open(bootstrap=[bootstrap], data_dir=folder, parameters=ROUNDS, **HURRIED) as node:
        number = 0
        while True:
            number += 1
            await node.publish("x", b"%d" % number)
            print(number, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_events_on_their_way_when_the_publisher_crashed_go_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            with monkeypatch.context() as patch:
                patch.setattr(VitisPeer, "publish", lambda *_: [])  # handed over, and lost with the process
                async with opening(a, data_dir=tmp_path) as b:
                    await b.publish("x", b"on its way")
            async with opening(a, data_dir=tmp_path):
                assert await payloads(events, 1) == [b"on its way"]

    during(scenario())


def test_killing_a_publisher_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            process = subprocess.Popen(
                [sys.executable, "-c", _PUBLISHER, str(tmp_path), "{}:{}".format(*a.endpoint)],
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                cwd=Path(__file__).parents[2],
            )
            assert process.stdout is not None
            try:
                said = 0
                while said < 30:
                    said = int(await asyncio.to_thread(process.stdout.readline))
            finally:
                process.send_signal(signal.SIGKILL)
                rest = await asyncio.to_thread(process.stdout.read)
                process.wait()
                process.stdout.close()
            acknowledged = max([said, *map(int, rest.split("\n")[:-1])])
            async with opening(a, data_dir=tmp_path) as again:
                got: set[int] = set()
                async with asyncio.timeout(20):
                    while not got >= set(range(1, acknowledged + 1)):
                        got.add(int((await anext(events)).payload))
                assert (await again.publish("x", b"0")).sequence > max(got)  # no number is used twice

    during(scenario())


def test_an_event_is_not_lost_when_its_publisher_leaves_at_once() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            for number in range(1, 4):
                async with opening(a) as short, short.subscribe("x"):
                    await short.ready("x")
                    await short.publish("x", b"%d" % number)
            assert sorted(await payloads(events, 3)) == news(1, 3)

    during(scenario())


def test_no_path_is_no_loss_when_the_publisher_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x", since=0) as events:
            with monkeypatch.context() as patch:
                patch.setattr(VitisPeer, "has_path", lambda *_: False)
                async with opening(a, data_dir=tmp_path) as b:
                    with pytest.raises(NoPath):
                        await b.publish("x", b"late", timeout=0.1)
            async with opening(a, data_dir=tmp_path) as b:
                await b.publish("x", b"later")
                assert sorted(await payloads(events, 2)) == [b"late", b"later"]

    during(scenario())
