"""Gossip about nodes that do not exist: none of them becomes anybody's link, and events go on arriving."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

from grapevine.net import Node
from grapevine.systems.vitis.peer.messages import Descriptor, Exchange, Sample
from tests.hostile.attackers import say
from tests.net.hostile import Client, eventually
from tests.net.nodes import ROUNDS, during, opening

NODES, EVENTS, A_MESSAGE = 8, 20, 300
TABLE = {"table_size": 6, "ring_and_long_links": 4}


async def lie(client: Client, random: Random) -> None:
    """Tell of new nodes that were heard of this moment, again and again."""
    await client.enter()
    while True:
        made_up = [random.getrandbits(64) for _ in range(A_MESSAGE)]
        descriptors = tuple(Descriptor(node, node, 1, 1, 1_000.0) for node in made_up)
        client.send(Sample(descriptors, False), Exchange(descriptors, False))
        await asyncio.sleep(0.1)


def made_up_links(nodes: list[Node]) -> tuple[int, int]:
    """Entries of tables that are nobody, and all entries."""
    real = {node.id.address for node in nodes}
    peers: list[Any] = [node.parts.host.peer for node in nodes]
    tables = [entry for peer in peers for entry in peer.table if entry >= 0]
    return sum(entry not in real for entry in tables), len(tables)


def test_who_does_not_exist_becomes_no_link_and_all_events_arrive_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            bounds = {"parameters": ROUNDS | TABLE, "recover_every_s": 1_000.0}
            nodes = [await stack.enter_async_context(opening(**bounds))]
            for _ in range(NODES - 1):
                nodes.append(await stack.enter_async_context(opening(nodes[0], **bounds)))
            for node in nodes:
                await stack.enter_async_context(node.subscribe("x"))
            for node in nodes:
                await node.ready("x")
            clients = [
                await stack.enter_async_context(Client.dial(node.endpoint, tmp_path / f"m{number}"))
                for number, node in enumerate(nodes)
            ]
            liars = [asyncio.create_task(lie(client, Random(at))) for at, client in enumerate(clients)]
            await asyncio.sleep(4.0)
            made_up, entries = made_up_links(nodes)
            for number in range(EVENTS):
                await nodes[number % NODES].publish("x", b"%d" % number)
            with contextlib.suppress(TimeoutError):
                await eventually(lambda: sum(node.delivered for node in nodes) == EVENTS * NODES)
            hits = sum(node.delivered for node in nodes)
            say("gossip of nodes that do not exist", "made-up entries of tables", f"{made_up} of {entries}")
            say("gossip of nodes that do not exist", "hits without recovery", f"{hits} of {EVENTS * NODES}")
            for liar in liars:
                liar.cancel()
            assert made_up == 0 and hits == EVENTS * NODES

    during(scenario(), timeout=180)
