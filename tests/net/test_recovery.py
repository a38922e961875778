"""What was missed comes back, what was forged does not get in, and what was acknowledged survives."""

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

from grapevine.model.identity import PeerId
from grapevine.model.ids import ring_id
from grapevine.net import Event, Node
from grapevine.net.event_file import Retention
from grapevine.net.identity import Identity
from grapevine.net.messages import Digest, Holdings, Kept, Want
from grapevine.net.node import NoPath
from grapevine.net.recovery import CLOCKS_DIFFER_MS
from grapevine.systems.contracts.peer import Message
from grapevine.systems.vitis.peer.messages import Notify
from grapevine.systems.vitis.peer.peer import VitisPeer
from tests.net.hostile import Client, envelope, eventually
from tests.net.nodes import during, opening, payloads, silence

TOPIC = ring_id("topic:x")


def news(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


async def publish(node: Node, payloads: list[bytes]) -> None:
    for payload in payloads:
        await node.publish("x", payload)


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


# Strangers


def forged(mallory: Identity, alice: Identity) -> list[Message]:
    """Events that nobody signed so."""
    right = envelope(alice, TOPIC, 1, b"right")
    other_topic = envelope(alice, TOPIC + 1, 1, b"elsewhere")
    return [
        Notify(TOPIC, 1, alice.id.address, right[:-1] + b"!"),
        Notify(TOPIC, 2, alice.id.address, right),
        Notify(TOPIC, 1, alice.id.address, other_topic),
        Notify(TOPIC, 1, alice.id.address, right[:96]),
        Notify(TOPIC, 1, alice.id.address, b""),
        Notify(TOPIC, 1, mallory.id.address, right),
        Notify(TOPIC, 1, alice.id.address, envelope(mallory, TOPIC, 1, b"mine")),
        Notify(-1, 1, alice.id.address, right),
        Notify(TOPIC, 0, alice.id.address, right),
        Notify(TOPIC, 2**64 - 1, alice.id.address, right),
    ]


@pytest.mark.parametrize("which", range(10))
def test_a_forged_event_is_counted_and_not_delivered(tmp_path: Path, which: int) -> None:
    async def scenario() -> None:
        alice = Identity.open(tmp_path / "alice")
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(forged(mallory.identity, alice)[which])
            await eventually(lambda: a.stats()["rejected"] == {"forged": 1})
            mallory.send(Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"right")))
            assert await payloads(events, 1) == [b"right"] and a.delivered == 1

    during(scenario())


def test_who_goes_on_forging_is_banned() -> None:
    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            folder = a.parts.folder.path / "mallory"
            async with Client.dial(a.endpoint, folder) as mallory:
                await mallory.enter()
                mallory.send(*forged(mallory.identity, Identity.open(folder / "alice")))
                assert await mallory.ended()
            assert a.stats()["counts"]["banned"] == 1 and await silence(events, 0.1)

    during(scenario())


def test_a_replayed_event_is_delivered_once_also_after_a_restart(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    copy = Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"once"))

    async def scenario() -> None:
        async with opening(data_dir=tmp_path / "a") as a, a.subscribe("x") as events:
            await a.subscribe_for_good("x")
            async with Client.dial(a.endpoint, tmp_path / "m") as mallory:
                await mallory.enter()
                mallory.send(copy, copy)
                assert await payloads(events, 1) == [b"once"]
                mallory.send(copy)
                assert await silence(events, 0.2) and a.delivered == 1
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(data_dir=tmp_path / "a"))
            events = await stack.enter_async_context(a.subscribe("x"))
            mallory = await stack.enter_async_context(Client.dial(a.endpoint, tmp_path / "m"))
            await mallory.enter()
            mallory.send(copy, Notify(TOPIC, 2, alice.id.address, envelope(alice, TOPIC, 2, b"next")))
            assert await payloads(events, 1) == [b"next"] and a.delivered == 1

    during(scenario())


def test_nobody_ages_the_stream_of_another_by_claiming_what_it_holds(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")
    event = Notify(TOPIC, 1, alice.id.address, envelope(alice, TOPIC, 1, b"right"))
    everybody = [PeerId.of(b"%d" % number).full for number in range(999)]

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(Holdings(((TOPIC, alice.id.full, 2**62, ()),), (TOPIC,), False))
            mallory.send(Holdings(tuple((TOPIC, publisher, 2**62, ()) for publisher in everybody), (), False))
            wanted = await mallory.hear(lambda message: isinstance(message, Want), timeout=10)
            assert (wanted.topic, wanted.publisher, wanted.after) == (TOPIC, alice.id.full, 0)
            mallory.send(Kept(TOPIC, alice.id.full, ()))
            mallory.send(event)
            assert await payloads(events, 1) == [b"right"]
            assert a.parts.ledger.is_complete(TOPIC) and len(a.parts.ledger.possessed(TOPIC)) == 1

    during(scenario())


def test_answers_that_nobody_asked_for_change_nothing(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(opening(patience=1))
            events = await stack.enter_async_context(a.subscribe("x"))
            mallory = await stack.enter_async_context(Client.dial(a.endpoint, tmp_path / "m"))
            await mallory.enter()
            mallory.send(Notify(TOPIC, 3, alice.id.address, envelope(alice, TOPIC, 3, b"3")))
            assert await payloads(events, 1) == [b"3"]
            mallory.send(*[Kept(TOPIC, alice.id.full, ())] * 20, Kept(TOPIC + 1, b"", ((1, b""),)))
            mallory.send(Digest(((TOPIC, 0), (TOPIC + 1, 0))))
            await mallory.hear(lambda message: isinstance(message, Holdings))
            assert a.parts.ledger.missing(TOPIC, 1e18) == {alice.id.full: [1, 2]} and a.stats()["given_up"] == 0

    during(scenario())


def test_an_answer_is_checked_like_any_event(tmp_path: Path) -> None:
    alice = Identity.open(tmp_path / "alice")

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events, Client.dial(a.endpoint, tmp_path / "m") as mallory:
            await mallory.enter()
            mallory.send(Holdings(((TOPIC, alice.id.full, 2, ()),), (TOPIC,), True))
            await mallory.hear(lambda message: isinstance(message, Want), timeout=10)
            fake = envelope(mallory.identity, TOPIC, 1, b"fake")
            right = envelope(alice, TOPIC, 2, b"right")
            mallory.send(Kept(TOPIC, alice.id.full, ((1, right), (2, right), (2, fake))))
            assert await payloads(events, 1) == [b"right"]
            await eventually(lambda: a.stats()["rejected"] == {"forged": 2})

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


def test_a_validator_that_fails_refuses() -> None:
    async def scenario() -> None:
        async with opening() as a, opening(a) as b, a.subscribe("x"), b.subscribe("x") as events:
            b.validate("x", lambda event: bool(1 / len(event.payload)))
            await asyncio.gather(a.ready("x"), b.ready("x"))
            await publish(a, [b"", b"good"])
            assert await payloads(events, 1) == [b"good"] and b.stats()["rejected"]["refused"] >= 1

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
