"""A group of Grapevine's live nodes in one process that bench/against_gossipsub.py starts.

It understands the commands of bench/live_groups.py, so what is measured is what bench/gossipsub_peer.py is measured by.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.live_usage import SocketMeter
from bench.live_workload import LiveWorkload
from grapevine.net import Event, Inbox, Node
from grapevine.version import __version__

LIFETIME = 1_200.0  # seconds
LOOK = 0.5  # seconds between two looks at the sockets
STAMP = 12  # bytes of every payload: nanoseconds of the clock, number of the event


class Group:
    """The nodes of this process, and the commands they understand."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self.stack, self.nodes, self.meter = stack, dict[int, Node](), SocketMeter()
        self.received: list[tuple[int, int, float]] = []  # (event, node, milliseconds)
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self, workload: str, nodes: list[int], payload: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Start the nodes; they subscribe when they have somebody to begin with (`connect`)."""
        self.workload, self.payload = LiveWorkload.read(Path(workload)), payload
        bare = asdict(self.meter.usage())
        for node in nodes:
            opened = Node.open(parameters=settings["parameters"])
            self.nodes[node] = await self.stack.enter_async_context(opened)
        self.tasks.append(asyncio.create_task(self.watch()))
        addresses = {node: f"127.0.0.1:{opened.endpoint[1]}" for node, opened in self.nodes.items()}
        return {"bare": bare, "addresses": addresses, "version": f"grapevine {__version__}"}

    async def watch(self) -> None:
        while True:
            self.meter.look()
            await asyncio.sleep(LOOK)

    async def connect(self, links: list[tuple[int, str]]) -> dict[str, Any]:
        """Call the endpoints: (own node, whom); then subscribe."""
        failed = []
        for node, endpoint in links:
            try:
                await self.nodes[node].join(endpoint)
            except Exception as error:  # whatever is raised: it is counted
                failed.append(f"{type(error).__name__}: {error}")
        for node, opened in self.nodes.items():
            for topic in self.workload.nodes[node]:
                inbox = await self.stack.enter_async_context(opened.subscribe(f"t{topic}", ordered=False))
                self.tasks.append(asyncio.create_task(self.read(node, opened, inbox)))
        return {"failed": failed}

    async def read(self, number: int, node: Node, inbox: Inbox) -> None:
        async for event in inbox:
            if isinstance(event, Event) and event.publisher != node.id:
                sent, which = int.from_bytes(event.payload[:8], "big"), int.from_bytes(event.payload[8:STAMP], "big")
                self.received.append((which, number, (time.time_ns() - sent) / 1e6))

    async def look(self) -> dict[str, Any]:
        """What is connected now."""
        return {
            "usage": asdict(self.meter.usage()),
            "connections": {number: node.connections.open_connections for number, node in self.nodes.items()},
            "links": {
                number: {str(topic): node.partners_of(f"t{topic}") for topic in self.workload.nodes[number]}
                for number, node in self.nodes.items()
            },
            "complaints": {},
        }

    async def publish(self, start: float, until: float) -> dict[str, Any]:
        """Publish this group's events, the first moment being `start` of the clock, and answer at `until`."""
        before, late, failed = asdict(self.meter.usage()), [], list[str]()

        async def one(number: int, node: int, topic: int) -> None:
            data = time.time_ns().to_bytes(8, "big") + number.to_bytes(4, "big")
            try:
                await self.nodes[node].publish(f"t{topic}", data.ljust(self.payload, b"."))
            except Exception as error:  # whatever is raised: it is counted
                failed.append(f"{type(error).__name__}: {error}")

        async with asyncio.TaskGroup() as publications:
            for number, (after, node, topic) in enumerate(self.workload.events):
                if node in self.nodes:
                    await asyncio.sleep(max(0.0, start + after - time.time()))
                    late.append((time.time() - start - after) * 1e3)
                    publications.create_task(one(number, node, topic))
        await asyncio.sleep(max(0.0, until - time.time()))
        return {
            "before": before,
            "after": asdict(self.meter.usage()),
            "received": self.received,
            "late_ms": late,
            "failed": failed,
        }


async def main() -> None:
    async with asyncio.timeout(LIFETIME), contextlib.AsyncExitStack() as stack:
        group = Group(stack)
        known = (group.open, group.connect, group.look, group.publish)
        commands: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {each.__name__: each for each in known}
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            print(json.dumps(await commands[command.pop("do")](**command)), flush=True)
        for task in group.tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
