"""The MQTT door beside mosquitto, on the same machine, with the same clients.

    .venv/bin/python -m bench.mqtt_door [--quick]

One pair of clients: a thousand messages one after the other (latency), then many with a window (throughput). Then 50
clients, each with the same 100 topics, and one that publishes in all of them. Each number is the best of three, the two
servers in turn. mosquitto keeps nothing (no persistence), so two doors stand beside it: one whose node has every event
on the disk before it acknowledges it, as nodes do (`power`), and one whose events survive the end of the process alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import mqtt5

WINDOW = 100
PAYLOAD = bytes(100)


class Client:
    """As little of a client as measures a server. It acknowledges what it gets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.buffer = reader, writer, b""
        self.got = self.acknowledged = 0
        self.news = asyncio.Event()
        self.task = asyncio.create_task(self.read())

    @classmethod
    async def at(cls, port: int, name: str) -> Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        client.writer.write(mqtt5.ConnectPacket(name, clean_start=True).write())
        return client

    async def read(self) -> None:
        while data := await self.reader.read(1 << 18):
            view, at = memoryview(self.buffer + data), 0
            while True:
                try:
                    packet, size = mqtt5.read(view[at:])
                except IndexError:
                    break
                at += size
                if isinstance(packet, mqtt5.PublishPacket):
                    self.got += 1
                    if packet.packet_id is not None:
                        self.writer.write(mqtt5.PubAckPacket(packet.packet_id).write())
                elif isinstance(packet, mqtt5.PubAckPacket | mqtt5.SubAckPacket):
                    self.acknowledged += 1
            self.buffer = bytes(view[at:])
            self.news.set()

    async def until(self, *, got: int = 0, acknowledged: int = 0) -> None:
        while self.got < got or self.acknowledged < acknowledged:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 120)

    async def subscribe(self, topics: list[str], qos: int) -> None:
        asked = [mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS(qos), retain_as_published=False) for topic in topics]
        self.writer.write(mqtt5.SubscribePacket(1, asked).write())
        await self.until(acknowledged=self.acknowledged + 1)

    def publish(self, topic: str, number: int, qos: int = 1) -> None:
        given = number % 60_000 + 1 if qos else None
        self.writer.write(mqtt5.PublishPacket(topic, PAYLOAD, qos=mqtt5.QoS(qos), packet_id=given).write())

    async def close(self) -> None:
        self.writer.write(mqtt5.DisconnectPacket().write())
        self.writer.close()
        self.task.cancel()


async def latency(port: int, count: int) -> tuple[float, float]:
    """Milliseconds from publishing to getting: the median, and what one in a hundred exceeds."""
    reader, writer = await Client.at(port, "reader"), await Client.at(port, "writer")
    await reader.subscribe(["latency"], 1)
    found = []
    for number in range(count):
        began = perf_counter()
        writer.publish("latency", number)
        await reader.until(got=number + 1)
        found.append(1e3 * (perf_counter() - began))
        await writer.until(acknowledged=number + 1)
    await reader.close()
    await writer.close()
    return median(found), sorted(found)[int(0.99 * count)]


async def throughput(port: int, count: int) -> float:
    """Messages a second of one pair at QoS 1, `WINDOW` of them under way."""
    reader, writer = await Client.at(port, "reader"), await Client.at(port, "writer")
    await reader.subscribe(["throughput"], 1)
    began = perf_counter()
    for number in range(count):
        if number >= WINDOW:
            await writer.until(acknowledged=number - WINDOW + 1)
        writer.publish("throughput", number)
    await reader.until(got=count)
    seconds = perf_counter() - began
    await reader.close()
    await writer.close()
    return count / seconds


async def fan_out(port: int, clients: int, topics: int, rounds: int) -> float:
    """Deliveries a second: so many clients have all topics at QoS 0, and one publishes in all of them at QoS 1."""
    names = [f"fan/{number}" for number in range(topics)]
    readers = [await Client.at(port, f"reader-{number}") for number in range(clients)]
    for reader in readers:
        await reader.subscribe(names, 0)
    writer = await Client.at(port, "writer")
    began = perf_counter()
    for number in range(rounds * topics):
        if number >= WINDOW:
            await writer.until(acknowledged=number - WINDOW + 1)
        writer.publish(names[number % topics], number)
    for reader in readers:
        await reader.until(got=rounds * topics)
    seconds = perf_counter() - began
    for client in (*readers, writer):
        await client.close()
    return clients * topics * rounds / seconds


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(command: list[str], port: int) -> Iterator[int]:
    """A process that listens at a port."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = perf_counter() + 120
        while perf_counter() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} has ended")
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def cpu_s(process: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    mosquitto = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if mosquitto is None:
        raise SystemExit("mosquitto is not installed (Debian: mosquitto)")
    count, times = (1_000, 1) if quick else (10_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        ports = {name: free_port() for name in ("mosquitto", "door, power", "door, process")}
        node = [sys.executable, "-m", "grapevine", "node", "--listen", f"127.0.0.1:{free_port()}", "--mqtt"]

        def door(name: str, durability: str) -> list[str]:
            kept = ["--data-dir", f"{folder}/{durability}", "--set", f"durability={durability}"]
            return [*node, f"127.0.0.1:{ports[name]}", *kept]

        commands = {
            "mosquitto": [mosquitto, "-p", str(ports["mosquitto"])],
            "door, power": door("door, power", "power"),
            "door, process": door("door, process", "process"),
        }
        best: dict[str, list[float]] = {name: [1e9, 1e9, 0.0, 0.0] for name in commands}
        used = dict.fromkeys(commands, 1e9)
        for _ in range(times):
            for name, command in commands.items():
                with server(command, ports[name]) as process:
                    middle, late = asyncio.run(latency(ports[name], count // 10))
                    rate = asyncio.run(throughput(ports[name], count))
                    before = cpu_s(process)
                    fan = asyncio.run(fan_out(ports[name], 50, 100, count // 500))
                    used[name] = min(used[name], (cpu_s(process) - before) * 1e6 / (100 * 50 * (count // 500)))
                    found = best[name]
                    best[name] = [min(found[0], middle), min(found[1], late), max(found[2], rate), max(found[3], fan)]
    print(
        "server         latency ms (1 in 100)   messages/s of a pair   deliveries/s, 50 clients × 100 topics   CPU µs"
    )
    for name, (middle, late, rate, fan) in best.items():
        print(f"{name:14} {middle:10.2f} ({late:6.2f}) {rate:22,.0f} {fan:40,.0f} {used[name]:13.1f}")
    base = best["mosquitto"]
    for name in ("door, power", "door, process"):
        ours = best[name]
        print(
            f"{name}: {ours[0] / base[0]:.1f} times the latency, {ours[2] / base[2]:.3f} of the messages,"
            f" {ours[3] / base[3]:.3f} of the deliveries"
        )


if __name__ == "__main__":
    main()
