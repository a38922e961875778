"""Spam that comes through an honest relay, or is longer than this node takes: the relay is not blamed for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from grapevine.net import Event, Gap, Node
from grapevine.systems.vitis.peer.messages import Notify
from tests.hostile.attackers import say
from tests.net.hostile import Client, envelope, eventually
from tests.net.missed import TOPIC
from tests.net.nodes import during, opening, payloads

SPAM = 30


def is_no_spam(event: Event) -> bool:
    return event.payload != b"spam"


def points(node: Node, of: Node) -> float:
    return node.connections.conduct.points(of.id, asyncio.get_running_loop().time())


async def publish(client: Client) -> None:
    me = client.identity
    await client.enter()
    for number in range(1, SPAM + 1):
        client.send(Notify(TOPIC, number, me.id.address, envelope(me, TOPIC, number, b"spam")))


def test_a_relay_is_not_blamed_for_spam_and_goes_on_to_deliver(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            opening() as relay,
            opening(relay, validators={"x": is_no_spam}) as victim,
            relay.subscribe("x"),
            victim.subscribe("x") as events,
        ):
            await victim.ready("x")
            await relay.ready("x")
            async with Client.dial(relay.endpoint, tmp_path / "m") as client:
                await publish(client)
                await eventually(lambda: victim.parts.arrivals.rejected["refused"] >= SPAM // 3)
            given = points(victim, relay)
            say("spam through an honest relay", "points of 100 for the relay", round(given))
            await relay.publish("x", b"honest")
            assert await payloads(events, 1) == [b"honest"]
            assert given == 0 and not victim.stats()["counts"].get("banned")

    during(scenario())


def test_who_publishes_the_spam_itself_is_banned(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(validators={"x": is_no_spam}) as victim, victim.subscribe("x"):
            async with Client.dial(victim.endpoint, tmp_path / "m") as client:
                await publish(client)
                assert await client.ended()
            assert victim.stats()["rejected"]["refused"] >= 10 and victim.stats()["counts"]["banned"] == 1

    during(scenario())


def test_a_neighbour_that_takes_longer_payloads_is_not_blamed_for_passing_them_on() -> None:
    async def scenario() -> None:
        async with (
            opening() as generous,
            opening(generous, payload_bytes=1_000) as strict,
            generous.subscribe("x"),
            strict.subscribe("x") as events,
        ):
            await strict.ready("x")
            for _ in range(8):
                await generous.publish("x", b"x" * 5_000)
            await generous.publish("x", b"short")
            items = [await events.get(20)]
            while isinstance(items[-1], Gap):
                items.append(await events.get(20))
            assert isinstance(items[-1], Event) and items[-1].payload == b"short"
            lost = [n for item in items if isinstance(item, Gap) for n in range(item.first, item.last + 1)]
            assert lost == list(range(1, 9)), "readers are told, once, and need not wait until order_s is over"
            asked = strict.parts.connections.traffic.sent["Want"]
            await asyncio.sleep(2)  # ten comparisons
            assert strict.parts.connections.traffic.sent["Want"] - asked <= strict.parts.config.patience
            given = points(strict, generous)
            say("a neighbour with a larger payload_bytes", "points of 100 for it", round(given))
            assert given == 0 and strict.stats()["rejected"]["too long"] >= 1

    during(scenario())
