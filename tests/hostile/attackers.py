"""Attackers: clients of ours that speak the protocol over real TLS, from an address of their own, and lie.

All of 127.0.0.0/8 is this machine, so an attack comes from 127.0.0.9 or from many such addresses, while honest nodes
are at 127.0.0.1. A node that is attacked is opened with `COUNTED`, so that addresses of this machine count as those of
strangers do. What an attack cost is printed by `say`: `pytest tests/hostile -rP | grep '^figure'` is the table of
docs/security.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from grapevine.model.identity import key_from, key_to_pem
from grapevine.net.identity import KEY_FILE, Identity
from tests.net.hostile import Client

COUNTED: dict[str, Any] = {"uncounted": ""}
IN_A_HURRY: dict[str, Any] = {"handshake_rate": 1e6, "handshakes_per_address": 1_000}  # so is the attacker of a test


def say(attack: str, what: str, value: object) -> None:
    """A figure of the table."""
    print(f"figure | {attack} | {what} | {value}")


def made_up(name: str, folder: Path) -> Identity:
    """The identity that follows from a name: keys cost nothing."""
    mine = folder / name
    mine.mkdir(parents=True, exist_ok=True)
    (mine / KEY_FILE).touch(mode=0o600)
    (mine / KEY_FILE).write_bytes(key_to_pem(key_from(name)))
    return Identity.open(mine)


@contextlib.asynccontextmanager
async def calling(endpoint: tuple[str, int], identity: Identity, origin: str) -> AsyncIterator[Client]:
    """A TLS connection to a node, from this address; nothing is said yet."""
    reader, writer = await asyncio.open_connection(
        *endpoint, ssl=identity.client_context(), server_hostname="", local_addr=(origin, 0)
    )
    try:
        yield Client(identity, reader, writer)
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def swarm(endpoint: tuple[str, int], folder: Path, size: int, origins: list[str]) -> AsyncIterator[list[Client]]:
    """So many identities, from these addresses in turn, of those that the node lets in; all have said hello."""
    async with contextlib.AsyncExitStack() as stack:
        turns, entered = asyncio.Semaphore(16), list[Client]()

        async def come(number: int) -> None:
            origin = origins[number % len(origins)]
            identity = made_up(f"{origin} {number}", folder)
            with contextlib.suppress(OSError):
                async with turns:
                    client = await stack.enter_async_context(calling(endpoint, identity, origin))
                    await client.enter()
                entered.append(client)

        await asyncio.gather(*map(come, range(size)))
        yield entered


@contextlib.contextmanager
def idle_sockets(endpoint: tuple[str, int], count: int, origins: list[str]) -> Iterator[list[socket.socket]]:
    """Connections of plain TCP that say nothing, from these addresses in turn. Made without waiting for an answer."""
    made: list[socket.socket] = []
    try:
        for number in range(count):
            one = socket.socket()
            one.setblocking(False)
            one.bind((origins[number % len(origins)], 0))
            with contextlib.suppress(BlockingIOError):
                one.connect(endpoint)
            made.append(one)
        yield made
    finally:
        for one in made:
            one.close()


def resident_bytes() -> int:
    """Memory of this process, as the system counts it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
