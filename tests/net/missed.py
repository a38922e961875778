"""What tests of recovery share: a topic, and news that are published on it."""

from __future__ import annotations

from grapevine.model.ids import ring_id
from grapevine.net import Node

TOPIC = ring_id("topic:x")


def news(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


async def publish(node: Node, payloads: list[bytes]) -> None:
    for payload in payloads:
        await node.publish("x", payload)
