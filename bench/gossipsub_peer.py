"""A group of py-libp2p hosts in one process that bench/gossipsub.py starts, with the Python that has `libp2p`.

What to do comes as lines of JSON on standard input, and every one is answered with a line on standard output; the
commands are those of bench/live_groups.py. The process ends when the input does, and after LIFETIME at the latest.
"""

from __future__ import annotations

import json
import logging
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.custom_types import TProtocol
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from bench.live_usage import SocketMeter
from bench.live_workload import LiveWorkload

LIFETIME = 1_200.0  # seconds
LOOK = 0.5  # seconds between two looks at the sockets
DIALS = 4  # at once in a process: each is a handshake of public-key cryptography
DIAL_LIMIT = 30.0  # seconds
STAMP = 12  # bytes of every payload: nanoseconds of the clock, number of the event
LISTEN = Multiaddr("/ip4/127.0.0.1/tcp/0")


class Complaints(logging.Handler):
    """Counts the library's warnings by their text, whoever they are about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = re.sub(r"\b12D3\w+", "%s", str(record.msg)).partition("\n")[0]
        self.counts[f"{record.name}: {text[:90]}"] += 1


class Host:
    """One node: a host, its GossipSub router, and what it has received."""

    def __init__(self, number: int, settings: dict[str, Any]) -> None:
        self.number = number
        key = create_new_key_pair(random.Random(f"{settings['seed']} {number}").randbytes(32))
        self.host = new_host(key_pair=key, listen_addrs=[LISTEN])
        self.router = GossipSub(
            protocols=[TProtocol(settings["protocol"])],
            degree=settings["degree"],
            degree_low=settings["degree_low"],
            degree_high=settings["degree_high"],
            heartbeat_interval=1,  # the specification's; the default is 120 s
            adaptive_gossip_enabled=False,  # would slow the heartbeat down to 30 … 60 s where meshes are small
            max_messages_per_topic_per_second=1e9,  # an honest publisher's event must not be dropped as spam
        )
        self.pubsub = Pubsub(self.host, self.router)
        self.received: list[tuple[int, int, float]] = []  # (event, node, milliseconds)

    async def run(self, topics: list[int], *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        async with (
            self.host.run(listen_addrs=[LISTEN]),
            background_trio_service(self.pubsub),
            background_trio_service(self.router),
            trio.open_nursery() as readers,
        ):
            await self.pubsub.wait_until_ready()
            for topic in topics:
                readers.start_soon(self.read, await self.pubsub.subscribe(f"t{topic}"))
            task_status.started()
            await trio.sleep_forever()

    async def read(self, subscription: Any) -> None:
        me = self.host.get_id().to_bytes()
        while True:
            message = await subscription.get()
            if message.from_id != me:
                sent, event = int.from_bytes(message.data[:8], "big"), int.from_bytes(message.data[8:STAMP], "big")
                self.received.append((event, self.number, (time.time_ns() - sent) / 1e6))

    def address(self) -> str:
        """Where it listens, with its identity."""
        address = str(self.host.get_addrs()[0])
        return address if "/p2p/" in address else f"{address}/p2p/{self.host.get_id()}"

    def links(self) -> dict[str, int]:
        """Mesh neighbours on every topic."""
        return {topic[1:]: len(peers) for topic, peers in self.router.mesh.items()}


class Group:
    """The hosts of this process, and the commands they understand."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.hosts: dict[int, Host] = {}
        self.meter = SocketMeter()
        self.complaints = Complaints()
        logging.getLogger("libp2p").addHandler(self.complaints)

    async def open(self, workload: str, nodes: list[int], payload: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Start the nodes and subscribe them."""
        random.seed(f"{settings['seed']} {nodes}")
        self.workload, self.payload = LiveWorkload.read(Path(workload)), payload
        bare = asdict(self.meter.usage())
        for node in nodes:
            self.hosts[node] = Host(node, settings)
            await self.nursery.start(self.hosts[node].run, list(self.workload.nodes[node]))
        self.nursery.start_soon(self.watch)
        addresses = {node: host.address() for node, host in self.hosts.items()}
        return {"bare": bare, "addresses": addresses, "version": f"libp2p {version('libp2p')}"}

    async def watch(self) -> None:
        while True:
            self.meter.look()
            await trio.sleep(LOOK)

    async def connect(self, links: list[tuple[int, str]]) -> dict[str, Any]:
        """Dial the addresses: (own node, whom)."""
        limit, failed = trio.CapacityLimiter(DIALS), []

        async def dial(node: int, address: str) -> None:
            async with limit:
                try:
                    with trio.fail_after(DIAL_LIMIT):
                        await self.hosts[node].host.connect(info_from_p2p_addr(Multiaddr(address)))
                except Exception as error:  # whatever the library raises: it is counted
                    failed.append(f"{type(error).__name__}: {error}")

        async with trio.open_nursery() as dials:
            for node, address in links:
                dials.start_soon(dial, node, address)
        return {"failed": failed}

    async def look(self) -> dict[str, Any]:
        """What is connected now."""
        return {
            "usage": asdict(self.meter.usage()),
            "connections": {node: len(host.host.get_network().get_connections()) for node, host in self.hosts.items()},
            "links": {node: host.links() for node, host in self.hosts.items()},
            "complaints": dict(self.complaints.counts),
        }

    async def publish(self, start: float, until: float) -> dict[str, Any]:
        """Publish this group's events, the first moment being `start` of the clock, and answer at `until`."""
        before, late, failed = asdict(self.meter.usage()), [], []

        async def one(number: int, node: int, topic: int) -> None:
            data = time.time_ns().to_bytes(8, "big") + number.to_bytes(4, "big")
            try:
                await self.hosts[node].pubsub.publish(f"t{topic}", data.ljust(self.payload, b"."))
            except Exception as error:  # whatever the library raises: it is counted
                failed.append(f"{type(error).__name__}: {error}")

        async with trio.open_nursery() as publications:
            for number, (after, node, topic) in enumerate(self.workload.events):
                if node in self.hosts:
                    await trio.sleep(max(0.0, start + after - time.time()))
                    late.append((time.time() - start - after) * 1e3)
                    publications.start_soon(one, number, node, topic)
        await trio.sleep(max(0.0, until - time.time()))
        received = [delivery for host in self.hosts.values() for delivery in host.received]
        return {"before": before, "after": asdict(self.meter.usage()), "received": received, "late_ms": late,
                "failed": failed}  # fmt: skip


async def main() -> None:
    with trio.move_on_after(LIFETIME):
        async with trio.open_nursery() as nursery:
            group = Group(nursery)
            known = (group.open, group.connect, group.look, group.publish)
            commands: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {each.__name__: each for each in known}
            while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                command = json.loads(line)
                print(json.dumps(await commands[command.pop("do")](**command)), flush=True)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
