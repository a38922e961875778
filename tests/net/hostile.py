"""A peer that keeps to no rule: TLS streams, and frames by hand."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from grapevine.model.identity import key_from
from grapevine.net import wire
from grapevine.net.contacts import Contact
from grapevine.net.identity import Identity
from grapevine.net.live_system import live_facet, messages_of
from grapevine.net.messages import Hello
from grapevine.net.stamp import stamped
from grapevine.net.stored_event import StoredEvent
from grapevine.systems.contracts.peer import Message


class Client:
    """One connection to a node."""

    def __init__(self, identity: Identity, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.identity, self._reader, self._writer = identity, reader, writer
        self._decoder = wire.Decoder(messages_of(live_facet("vitis")))
        self._came: list[Any] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def dial(cls, endpoint: tuple[str, int], folder: Path) -> AsyncIterator[Client]:
        """The identity in this folder dials a node; nothing is said yet."""
        identity = Identity.open(folder)
        reader, writer = await asyncio.open_connection(*endpoint, ssl=identity.client_context(), server_hostname="")
        try:
            yield cls(identity, reader, writer)
        finally:
            writer.transport.abort()

    def hello(self, network: str = "grapevine", system: str = "vitis", **changes: Any) -> Hello:
        """What an honest one would say first."""
        contact = changes.get("contact") or self.identity.contact("127.0.0.1", 1, time.time_ns() // 1_000_000)
        return Hello(network, system, changes.get("session", 1), contact)

    async def enter(self) -> None:
        """Say hello, and hear it."""
        self.send(self.hello())
        await self.hear(lambda message: isinstance(message, Hello))

    def send(self, *messages: Message) -> None:
        self.write(b"".join(map(wire.encode, messages)))

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        await self._writer.drain()

    async def hear(self, fits: Callable[[Any], bool], timeout: float = 5.0) -> Any:
        """The next message that fits."""
        async with asyncio.timeout(timeout):
            while True:
                while self._came:
                    message = self._came.pop(0)
                    if fits(message):
                        return message
                data = await self._reader.read(1 << 16)
                if not data:
                    raise ConnectionError("it closed the connection")
                self._came += self._decoder.feed(data)

    async def ended(self, timeout: float = 5.0) -> bool:
        """Whether the node closes the connection in time."""
        try:
            async with asyncio.timeout(timeout):
                while await self._reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


def envelope(identity: Identity, topic: int, sequence: int, payload: bytes, time_ms: int | None = None) -> bytes:
    """An event as its publisher would seal it."""
    now = time.time_ns() // 1_000_000 if time_ms is None else time_ms
    content = stamped(now, payload)
    seal = identity.sign(topic, sequence, content).seal
    return StoredEvent(identity.id, topic, sequence, now, content, seal).envelope


def contact_of(secret: str, *, time_ms: int = 1) -> Contact:
    """Where the owner of a made-up key says it is."""
    key = key_from(secret)
    unsigned = Contact(key.public_key().public_bytes_raw(), "10.0.0.9", 9, time_ms, b"")
    return Contact(unsigned.key, unsigned.host, unsigned.port, time_ms, key.sign(unsigned.content()))


async def eventually(holds: Callable[[], Any], timeout: float = 10.0) -> None:
    """Wait until something holds; fail if it does not in time."""
    async with asyncio.timeout(timeout):
        while not holds():
            await asyncio.sleep(0.01)
