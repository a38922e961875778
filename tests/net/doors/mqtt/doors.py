"""Nodes with MQTT doors, and a client that says exactly what a test wants it to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import mqtt5

from grapevine.net import Node
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.doors.mqtt.door import Door
from tests.net.nodes import opening

P = TypeVar("P")
PATIENCE_S = 20.0


@asynccontextmanager
async def door_of(node: Node, folder: Path | None = None, **config: Any) -> AsyncIterator[Door]:
    """The MQTT door of a node, at a free port."""
    async with Door.open(node, "127.0.0.1:0", DoorConfig(**config), folder) as door:
        yield door


@asynccontextmanager
async def one_door(folder: Path | None = None, *, payload_bytes: int = 65_536, **config: Any) -> AsyncIterator[Door]:
    """A node alone, and its door."""
    async with opening(data_dir=folder, payload_bytes=payload_bytes) as node, door_of(node, folder, **config) as door:
        yield door


@asynccontextmanager
async def three_doors(**config: Any) -> AsyncIterator[tuple[Door, Door, Door]]:
    """Three nodes that know each other, and their doors."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(opening())
        others = [await stack.enter_async_context(opening(first)) for _ in range(2)]
        doors = [await stack.enter_async_context(door_of(node, None, **config)) for node in (first, *others)]
        yield doors[0], doors[1], doors[2]


class Client:
    """A client of MQTT 5 that sends what it is told to send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def at(cls, door: Door) -> Self:
        return cls(*await asyncio.open_connection(*door.endpoint))

    @classmethod
    async def of(cls, door: Door, name: str = "", **options: Any) -> Self:
        """Connected; `answer` is what it was answered."""
        client = await cls.at(door)
        options.setdefault("clean_start", True)
        client.send(mqtt5.ConnectPacket(name, **options))
        answer = await client.get(mqtt5.ConnAckPacket)
        client.answer = answer
        return client

    answer: mqtt5.ConnAckPacket

    def send(self, packet: mqtt5.Packet | bytes) -> None:
        self.writer.write(packet if isinstance(packet, bytes) else packet.write())

    async def frame(self) -> bytes:
        """What comes next; nothing at the end."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                head = await self.reader.readexactly(2)
                while head[-1] & 0x80:
                    head += await self.reader.readexactly(1)
                size = sum((digit & 0x7F) << (7 * place) for place, digit in enumerate(head[1:]))
                return head + await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def next(self) -> mqtt5.Packet | None:
        """The next packet; None at the end."""
        frame = await self.frame()
        return mqtt5.read(memoryview(frame))[0] if frame else None

    async def get(self, kind: type[P]) -> P:
        """The next packet, which has to be of this kind."""
        packet = await self.next()
        assert isinstance(packet, kind), packet
        return packet

    async def is_cut_off(self, reason: int | None = None) -> bool:
        """Whether nothing more comes but, perhaps, a DISCONNECT with this reason."""
        packet = await self.next()
        if reason is not None:
            assert isinstance(packet, mqtt5.DisconnectPacket), packet
            assert packet.reason_code == reason, packet
            packet = await self.next()
        return packet is None

    async def is_quiet(self, seconds: float = 0.4) -> bool:
        """Whether nothing comes for a while."""
        try:
            async with asyncio.timeout(seconds):
                return not await self.reader.read(1)
        except TimeoutError:
            return True

    async def subscribe(self, *filters: str | mqtt5.TopicFilter, qos: int = 0, **options: Any) -> list[int]:
        """The reasons that SUBACK gives."""
        asked = [
            one
            if not isinstance(one, str)
            else mqtt5.TopicFilter(one, max_qos=mqtt5.QoS(qos), retain_as_published=False)
            for one in filters
        ]
        self.send(mqtt5.SubscribePacket(1, asked, **options))
        answer = await self.get(mqtt5.SubAckPacket)
        assert answer.packet_id == 1
        return [int(code) for code in answer.reason_codes]

    async def publish(self, topic: str, payload: bytes, qos: int = 0, number: int = 1, **options: Any) -> None:
        """Publish, as far as the first acknowledgement of QoS 1, or all of QoS 2."""
        given = None if qos == 0 else number
        self.send(mqtt5.PublishPacket(topic, payload, qos=mqtt5.QoS(qos), packet_id=given, **options))
        if qos == 1:
            answer = await self.get(mqtt5.PubAckPacket)
            assert (answer.packet_id, answer.reason_code) == (number, 0), answer
        if qos == 2:
            received = await self.get(mqtt5.PubRecPacket)
            assert (received.packet_id, received.reason_code) == (number, 0), received
            self.send(mqtt5.PubRelPacket(number))
            assert (await self.get(mqtt5.PubCompPacket)).packet_id == number

    async def message(self) -> mqtt5.PublishPacket:
        """The next message, acknowledged."""
        packet = await self.get(mqtt5.PublishPacket)
        await self.acknowledge(packet)
        return packet

    async def acknowledge(self, packet: mqtt5.PublishPacket) -> None:
        """Say that a message has come, to the end."""
        if packet.qos == 1:
            assert packet.packet_id is not None
            self.send(mqtt5.PubAckPacket(packet.packet_id))
        if packet.qos == 2:
            assert packet.packet_id is not None
            self.send(mqtt5.PubRecPacket(packet.packet_id))
            await self.get(mqtt5.PubRelPacket)
            self.send(mqtt5.PubCompPacket(packet.packet_id))

    async def ping(self) -> None:
        """Wait until the door has read all that was sent."""
        self.send(mqtt5.PingReqPacket())
        await self.get(mqtt5.PingRespPacket)

    async def leave(self, **options: Any) -> None:
        """Go in good order."""
        self.send(mqtt5.DisconnectPacket(**options))
        assert await self.is_cut_off()

    def vanish(self) -> None:
        """Go without a word."""
        self.writer.transport.abort()
