"""What a node tells people about its neighbours and topics, as rows: for `grapevine peers` and `grapevine topics`."""

from __future__ import annotations

from typing import Any

from grapevine.net.node import Node


def peers_of(node: Node) -> list[dict[str, Any]]:
    """A row for every link of the overlay: who it is, where it is, and in how many topics events are exchanged with it.
    By the number of topics, the most first."""
    shared: dict[int, int] = {}
    for partners in node.exchanges().values():
        for address in partners:
            shared[address] = shared.get(address, 0) + 1
    rows = [
        {"peer": str(peer), "endpoint": endpoint, "topics": shared.get(peer.address, 0)}
        for peer, endpoint in node.neighbours()
    ]
    return sorted(rows, key=lambda row: (-row["topics"], row["peer"]))


async def topics_of(node: Node) -> list[dict[str, Any]]:
    """A row for every topic that applications of the node want or published in lately, by name: whether it is wanted,
    with how many others its events are exchanged, how many events are known of and missing, and its named readers."""
    return [
        {
            "topic": topic,
            "wanted": node.wants(topic),
            "partners": node.partners_of(topic),
            "missing": node.missing(topic),
            "readers": await node.readers(topic),
        }
        for topic in node.topics
    ]
