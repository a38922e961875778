"""Very many topics: a node may want a hundred thousand, and nobody may burden others with more than is allowed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grapevine.net import Node
from grapevine.systems.gossip.messages import MOST_TOPICS, TOPICS_A_PART, Profile
from tests.net.hostile import Client
from tests.net.nodes import during, endpoint

MANY = 100_000


def test_a_flood_of_subscriptions_is_counted_and_shut_out_and_others_are_served(tmp_path: Path) -> None:
    parameters = {"round_s": 0.2, "settle_rounds": 0, "most_topics": 1_000}
    flood = Profile(1, 1, 0, 0, 62, MOST_TOPICS + 1, 0, bytes(8 * TOPICS_A_PART))

    async def scenario() -> None:
        async with (
            Node.open(parameters=parameters) as node,
            Node.open(bootstrap=[endpoint(node)], parameters=parameters) as honest,
            node.subscribe("news") as events,
        ):
            async with Client.dial(node.endpoint, tmp_path) as client:
                await client.enter()
                client.send(*[flood] * 8)
                assert await client.ended()
            assert node.stats()["rejected"]["excess"] >= 4 and node.stats()["counts"]["banned"] == 1
            await honest.publish("news", b"still there")
            assert (await events.get(20)).payload == b"still there"

    during(scenario())


@pytest.mark.slow
def test_a_node_with_a_hundred_thousand_subscriptions_reaches_others_and_is_reached() -> None:
    async def scenario() -> None:
        async with (
            Node.open(durability="process") as first,
            Node.open(bootstrap=[endpoint(first)], durability="process") as keen,
            Node.open(bootstrap=[endpoint(first)], durability="process") as modest,
        ):
            for at in range(0, MANY, 1_000):
                await asyncio.gather(*(keen.subscribe_for_good(f"topic {at + i}") for i in range(1_000)))
            last = f"topic {MANY - 1}"
            async with keen.subscribe(last) as got, modest.subscribe("topic 7") as wanted:
                await first.publish(last, b"to the keen", timeout=60)
                assert (await got.get(60)).payload == b"to the keen"
                await keen.publish("topic 7", b"from the keen", timeout=60)
                assert (await wanted.get(60)).payload == b"from the keen"
            for node in (first, keen, modest):
                stats = node.stats()
                assert not stats["failures"] and not stats["rejected"] and "oversized" not in stats["counts"]
                assert stats["peers"] <= 2, "links do not grow with topics"

    asyncio.run(scenario())
