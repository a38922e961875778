"""A node's connections without the node: what tests of connections, honest and hostile, share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grapevine.model.identity import PeerId
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.connections import Connections
from grapevine.net.identity import Identity
from grapevine.net.live_system import live_facet, messages_of
from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.vitis.peer.messages import Notify
from tests.net.hostile import eventually

QUICK: dict[str, Any] = {"dial_s": 1.0, "retry_s": 0.1, "ban_s": 0.5, "slow_s": 0.1}


def note(number: int) -> Message:
    """A small message that says which it is."""
    return Notify(1, number, 2, b"")


@dataclass
class Host:
    """A node's connections, what came over them, and who was found to be unreachable."""

    connections: Connections
    endpoint: tuple[str, int]
    came: list[tuple[Address, Any]]
    lost: list[Address] = field(default_factory=list)

    @property
    def id(self) -> PeerId:
        return self.connections.identity.id

    @property
    def numbers(self) -> list[int]:
        return [message.sequence for _, message in self.came]


@asynccontextmanager
async def hosting(folder: Path, **changes: Any) -> AsyncIterator[Host]:
    came: list[tuple[Address, Any]] = []
    lost: list[Address] = []
    names = {key: changes.pop(key, default) for key, default in (("network", "grapevine"), ("system", "vitis"))}

    def receive(connection: Connection, message: Message) -> None:
        came.append((connection.address, message))

    connections = Connections(
        Identity.open(folder),
        NodeConfig(**(QUICK | changes)),
        **names,
        session=int.from_bytes(folder.name.encode()),
        messages=messages_of(live_facet("vitis")),
        receive=receive,
        unreachable=lost.append,
    )
    endpoint = await connections.listen("127.0.0.1", 0, None, 1)
    try:
        yield Host(connections, endpoint, came, lost)
    finally:
        await connections.close("the test ends")


def during(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def pass_time(node: Host, peer: PeerId, seconds: float) -> None:
    """For so long nothing has come or gone between the two."""
    connection = node.connections.connection(peer.address)
    assert connection is not None
    connection.used -= seconds


async def serves_others(node: Host, folder: Path, **changes: Any) -> None:
    """An honest peer is still served."""
    before = len(node.came)
    async with hosting(folder, **changes) as honest:
        await honest.connections.call(*node.endpoint)
        honest.connections.send(node.id.address, note(99))
        await eventually(lambda: node.came[before:] == [(honest.id.address, note(99))])
