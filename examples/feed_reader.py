"""News feeds without a server: three who write and four who read, each a live node that runs Rappel.

    python examples/feed_reader.py --items 5 --every 0.5

With Rappel a topic is somebody's feed, `PEER_ID/NAME`, and only the peer after whom it is called can publish in it.
Readers pass the items of a feed on to each other along a tree, so that a writer sends each item to a few of them
however many there are. Items are printed as they come. The first ones come late: a node has to find its place in the
network and then in the trees of its feeds, where it pulls what it has missed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import AsyncExitStack, suppress
from typing import Any

from grapevine.net import Gap, Node, OrderedReader
from grapevine.net.run import stop_on_signals

FEEDS = "weather", "football", "stars"
READERS = {"ann": ["weather", "stars"], "bob": ["football"], "cyn": FEEDS, "dan": ["weather", "football"]}
PATIENCE_S = 60.0  # for readers to find a feed, and for the last items to arrive
# The paper's periods are for the internet: 20 s between two joins, 15 s until an answer is given up.
SETTINGS: dict[str, Any] = {"system": "rappel", "parameters": {"stagger_s": 0.2, "timeout_s": 2.0}}


class Reader:
    """Somebody who reads some feeds, and what has come: titles of items, by feed."""

    def __init__(self, name: str, node: Node) -> None:
        self.name, self.node = name, node
        self.read: dict[str, list[str]] = {}

    async def follow(self, feed: str, items: OrderedReader) -> None:
        """Print the items of a feed as they come, until the node is closed."""
        read = self.read.setdefault(feed, [])
        async for item in items:
            if isinstance(item, Gap):
                continue  # the table at the end says what is missing
            read.append(item.payload.decode())
            took_ms = 1e3 * (time.time() - item.time)
            print(f"{self.name:>4} reads {feed:9} {read[-1]:24} {took_ms:6.0f} ms after it was written", flush=True)


async def run(items: int, every: float) -> None:
    """Open all nodes, publish so many items in each feed, and end when every reader has them."""
    stop_on_signals()
    async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        writers: dict[str, Node] = {}
        for name in FEEDS:
            opening = Node.open(bootstrap=endpoints(writers), **SETTINGS)
            writers[name] = await stack.enter_async_context(opening)
            print(f"feed {name}: {writers[name].id}/{name}", flush=True)
        readers = []
        for name, wanted in READERS.items():
            node = await stack.enter_async_context(Node.open(bootstrap=endpoints(writers), **SETTINGS))
            readers.append(Reader(name, node))
            for feed in wanted:
                inbox = await stack.enter_async_context(node.subscribe(f"{writers[feed].id}/{feed}"))
                group.create_task(readers[-1].follow(feed, inbox))
        for number in range(1, items + 1):
            for feed, writer in writers.items():
                await writer.publish(f"{writer.id}/{feed}", f"item {number} on {feed}".encode(), timeout=PATIENCE_S)
            await asyncio.sleep(every)
        await wait_for_the_last(readers, items)
    for reader in readers:
        counts = ", ".join(f"{len(read)} of {items} on {feed}" for feed, read in reader.read.items())
        print(f"{reader.name} has read {counts}")


def endpoints(writers: dict[str, Node]) -> list[str]:
    """Where the writers are reached: newcomers begin with them."""
    return ["{}:{}".format(*writer.endpoint) for writer in writers.values()]


async def wait_for_the_last(readers: list[Reader], items: int) -> None:
    """Return when every reader has all items, or patience ends."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while any(len(read) < items for reader in readers for read in reader.read.values()):
                await asyncio.sleep(0.05)


def main() -> None:
    """Read the arguments, and run."""
    asked = argparse.ArgumentParser(description="News feeds without a server.")
    asked.add_argument("--items", type=int, default=5, help="items of each feed")
    asked.add_argument("--every", type=float, default=0.5, help="seconds between two of them")
    given = asked.parse_args()
    with suppress(asyncio.CancelledError):  # Ctrl-C
        asyncio.run(run(given.items, given.every))


if __name__ == "__main__":
    main()
