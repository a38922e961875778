"""Lies about what somebody has: they cost little, and nothing is given up that an honest partner has."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from grapevine.net import Node
from grapevine.net.envelope import envelope_of
from grapevine.net.messages import Digest, Holdings, Kept, Want
from grapevine.systems.vitis.peer.messages import Notify
from tests.hostile.attackers import made_up, say
from tests.net.hostile import Client, envelope, eventually
from tests.net.missed import TOPIC, news, publish
from tests.net.nodes import during, opening

PUBLISHERS, EVENTS = 1_000, 21


def test_a_topic_that_a_digest_names_two_thousand_times_costs_no_more_than_fifty_ms(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening(rate_messages=100_000) as node, node.subscribe("x"):
            async with Client.dial(node.endpoint, tmp_path / "m") as client:
                await client.enter()
                for number in range(PUBLISHERS):
                    of = made_up(f"publisher {number}", tmp_path)
                    client.send(Notify(TOPIC, 1, of.id.address, envelope(of, TOPIC, 1, b"once")))
                await eventually(lambda: len(node.parts.ledger.possessed(TOPIC)) == PUBLISHERS, timeout=40)
                connection = node.connections.connection(client.identity.id.address)
                assert connection is not None
                began = time.process_time()
                node.parts.recovery.on_digest(connection, Digest(((TOPIC, 1),) * 2_000))
                spent_s = time.process_time() - began
            say("a Digest that names a topic 2,000 times", "CPU on the event loop, ms", round(1e3 * spent_s, 1))
            assert node.stats()["rejected"]["excess"] == 1

    during(scenario(), timeout=120)


async def answer_in_vain(client: Client, publisher: bytes) -> None:
    """Claim to have all of a stream, and answer every question about it with nothing."""
    claim = Holdings(((TOPIC, publisher, EVENTS, ()),), (TOPIC,), True)
    while True:
        client.send(claim)
        want = await client.hear(lambda message: isinstance(message, Want), timeout=30)
        client.send(Kept(want.topic, want.publisher, ()))


async def last_event(node: Node) -> Notify:
    (found,) = await node.parts.store.find(node.id, TOPIC, [EVENTS])
    return Notify(TOPIC, EVENTS, node.id.address, envelope_of(found))


def test_a_stranger_that_has_nothing_makes_nobody_give_up_what_an_honest_partner_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as holder:
            await publish(holder, news(1, EVENTS))
            async with opening() as node, node.subscribe("x", since=0) as events:
                async with Client.dial(node.endpoint, tmp_path / "m") as client:
                    await client.enter()
                    client.send(await last_event(holder))
                    lying = asyncio.create_task(answer_in_vain(client, holder.id.full))
                    await asyncio.sleep(8.0)
                    given_up = node.stats()["given_up"]
                    say("a stranger's empty Kept", "events given up of 21", given_up)
                    lying.cancel()
                await node.join("{}:{}".format(*holder.endpoint))
                got = {(await events.get(30)).payload for _ in range(EVENTS)}
                assert given_up == 0 and got == set(news(1, EVENTS))

    during(scenario())
