"""Many identities on few addresses, which all claim that this node is their link: they do not get all places."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from grapevine.net import Node
from grapevine.systems.vitis.peer.messages import Descriptor, Heartbeat
from tests.hostile.attackers import COUNTED, IN_A_HURRY, say, swarm
from tests.net.hostile import Client, eventually
from tests.net.nodes import during, endpoint, opening


def claim(client: Client, serial: int) -> Heartbeat:
    """You are in my table, says whoever sends this."""
    me = client.identity.id.address
    return Heartbeat(Descriptor(me, me, 1, 0, 100.0), True, False, 7, 1, serial)


async def go_on_claiming(clients: list[Client]) -> None:
    serial = 0
    while True:
        serial += 1
        for client in clients:
            client.send(claim(client, serial))
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("identities", "origins", "settings"),
    [
        (256, ["127.0.0.9"], {}),
        (400, [f"127.0.{n}.9" for n in range(1, 11)], {"most_connections": 64, "most_per_address": 8}),
    ],
)
def test_newcomers_are_served_and_the_node_dials_whom_it_wants(
    tmp_path: Path, identities: int, origins: list[str], settings: dict[str, Any]
) -> None:
    async def scenario() -> None:
        bounds = {name: value for name, value in settings.items() if COUNTED or name == "most_connections"}
        async with opening(**COUNTED, **(IN_A_HURRY if COUNTED else {}), **bounds) as node:
            async with swarm(node.endpoint, tmp_path, identities, origins) as clients:
                claiming = asyncio.create_task(go_on_claiming(clients))
                await asyncio.sleep(2.0)
                taken = sum(node.connections.connection(client.identity.id.address) is not None for client in clients)
                pinned = len(node.connections.pinned)
                where = f"{identities} identities from {len(origins)} addresses claim reverse links"
                say(where, "places taken of all", f"{taken} of {node.config.most_connections}, {pinned} links")
                async with opening(node, dial_s=2.0) as newcomer, opening() as elsewhere:
                    served = await reaches(newcomer, node)
                    dials = await reaches_by_dialling(node, elsewhere)
                    say(where, "a newcomer is served, and the node dials out", f"{served}, {dials}")
                    names = [condition.name for condition in node.conditions()]
                    assert served and dials and "full" not in names, names
                claiming.cancel()
            assert taken < node.config.most_connections * 3 // 4 + 1

    during(scenario())


async def reaches(newcomer: Node, node: Node) -> bool:
    try:
        await eventually(lambda: node.connections.connection(newcomer.id.address) is not None, timeout=5)
    except TimeoutError:
        return False
    return True


async def reaches_by_dialling(node: Node, other: Node) -> bool:
    try:
        await node.join(endpoint(other))
        await asyncio.sleep(0.5)
    except Exception:
        return False
    return node.connections.connection(other.id.address) is not None
