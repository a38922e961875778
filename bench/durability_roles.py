"""A publisher or a subscriber of one system, as a process of its own; `bench.durability` starts them.

    python -m bench.durability_roles publish '{"system": "grapevine", …}'

A plan has ways to publish: how many events are on their way at a time, and how many there are. A publisher prints
"ready", begins each way at a line of standard input, and says when it began and when the last event was acknowledged. A
subscriber prints "ready", and at the end of each way "over" and the time. Times are of the clock that all
processes of a machine share.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from grapevine.net import Node

TOPIC = "bench"
READER = "reader"  # everywhere the subscription has a name, and outlives its program


class Client(ABC):
    """One program's way to a system."""

    @abstractmethod
    async def publish(self, payload: bytes) -> None:
        """Returns when the system has taken the event as it promises to."""

    @abstractmethod
    def events(self) -> AsyncIterator[bytes]:
        """Payloads as they come; asking for the next acknowledges the one before."""


class Grapevine(Client):
    """A node in this process."""

    def __init__(self, node: Node, acks: int) -> None:
        self.node, self._acks = node, acks

    async def publish(self, payload: bytes) -> None:
        await self.node.publish(TOPIC, payload, acks=self._acks, timeout=60.0)

    async def events(self) -> AsyncIterator[bytes]:
        async with self.node.subscribe(TOPIC, name=READER) as events:
            print("ready {}:{}".format(*self.node.endpoint), flush=True)
            async for event in events:
                yield event.payload  # type: ignore[union-attr]  # a gap has none, and ends the run


class Mosquitto(Client):
    """An MQTT client, QoS 1; paho has a thread of its own, which calls the loop."""

    def __init__(self, port: int, window: int, name: str) -> None:
        from paho.mqtt.client import CallbackAPIVersion
        from paho.mqtt.client import Client as Paho

        self._loop, self._waiting, self._came = asyncio.get_running_loop(), {}, asyncio.Queue[bytes]()
        self._acknowledged: set[int] = set()
        soon = self._loop.call_soon_threadsafe
        paho: Any = Paho(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
        paho.max_inflight_messages_set(window)
        paho.on_publish = lambda _client, _user, number, *_: soon(self._on_publish, number)
        paho.on_message = lambda _client, _user, message: soon(self._came.put_nowait, message.payload)
        paho.connect("127.0.0.1", port)
        paho.loop_start()
        self._paho = paho

    def _on_publish(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            self._acknowledged.add(number)
        else:
            waiting.set_result(None)

    async def publish(self, payload: bytes) -> None:
        number = self._paho.publish(TOPIC, payload, qos=1).mid
        if number in self._acknowledged:
            self._acknowledged.discard(number)
            return
        self._waiting[number] = self._loop.create_future()
        await self._waiting[number]

    async def events(self) -> AsyncIterator[bytes]:
        subscribed = asyncio.Event()
        self._paho.on_subscribe = lambda *_: self._loop.call_soon_threadsafe(subscribed.set)
        self._paho.subscribe(TOPIC, qos=1)
        await subscribed.wait()
        print("ready", flush=True)
        while True:
            yield await self._came.get()


class JetStream(Client):
    """A client of NATS; the stream is on the server's disk."""

    def __init__(self, context: Any) -> None:
        self._stream = context

    async def publish(self, payload: bytes) -> None:
        await self._stream.publish(TOPIC, payload)

    async def events(self) -> AsyncIterator[bytes]:
        await self._stream.add_stream(name=TOPIC, subjects=[TOPIC])
        found = await self._stream.subscribe(TOPIC, durable=READER, manual_ack=True)
        print("ready", flush=True)
        async for message in found.messages:
            yield message.data
            await message.ack()


@contextlib.asynccontextmanager
async def client_of(plan: dict[str, Any], role: str) -> AsyncIterator[Client]:
    """The client that a plan asks for."""
    if plan["system"] == "grapevine":
        join, folder = plan["join"], f"{plan['folder']}/{plan['name']}"
        async with Node.open(bootstrap=join, data_dir=folder, durability=plan["durability"]) as node:
            if role == "publish":
                await node.ready(TOPIC, peers=0)  # it becomes a member with its first event
            yield Grapevine(node, plan["acks"])
    elif plan["system"] == "mosquitto":
        yield Mosquitto(plan["port"], plan["window"], plan["name"])
    else:
        import nats

        connection = await nats.connect(f"nats://127.0.0.1:{plan['port']}")
        yield JetStream(connection.jetstream())
        await connection.close()


async def publish(plan: dict[str, Any], client: Client) -> None:
    loop, published = asyncio.get_running_loop(), 0
    await client.publish(b"warm-up" + bytes(plan["bytes"] - 7))  # compiles, connects, joins the topic
    print("ready", flush=True)
    for window, events in plan["ways"]:
        await loop.run_in_executor(None, sys.stdin.readline)
        payloads = [
            number.to_bytes(8, "big") + bytes(plan["bytes"] - 8) for number in range(published, published + events)
        ]
        published += events
        cpu_s, begun = time.process_time(), time.monotonic()
        await publish_all(client, payloads, window)
        print("over", begun, time.monotonic(), time.process_time() - cpu_s, flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)  # a node that leaves would disturb the others


async def publish_all(client: Client, payloads: list[bytes], window: int) -> None:
    """So many at a time are on their way."""
    left = iter(payloads)

    async def one_after_the_other() -> None:
        for payload in left:
            await client.publish(payload)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(window):
            tasks.create_task(one_after_the_other())


async def subscribe(plan: dict[str, Any], client: Client) -> None:
    numbers: set[bytes] = set()
    ends, wanted = [], 1
    for _, events in plan["ways"]:
        wanted += events
        ends.append(wanted)
    async for payload in client.events():
        before = len(numbers)
        numbers.add(payload[:8])
        if len(numbers) > before and len(numbers) in ends:
            print("over", time.monotonic(), flush=True)
        if len(numbers) == ends[-1]:
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            return


async def main(role: str, plan: dict[str, Any]) -> None:
    async with client_of(plan, role) as client:
        await (publish if role == "publish" else subscribe)(plan, client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
