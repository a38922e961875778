"""A program that a test kills: it reads a topic under a name, prints each payload, and then acknowledges it.

    python -m tests.net.durable_reader FOLDER BOOTSTRAP TOPIC

Whoever reads under the same name afterwards may get the last payload that was printed again, and no other.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from grapevine.net import Gap
from grapevine.net.node import Node
from tests.net.nodes import HURRIED, ROUNDS


async def read(folder: str, bootstrap: str, topic: str) -> None:
    """For ever."""
    settings: dict[str, Any] = {"bootstrap": [bootstrap], "parameters": ROUNDS, "data_dir": folder} | HURRIED
    async with Node.open(**settings) as node, node.subscribe(topic, name="billing", ack="explicit") as events:
        print("ready", flush=True)
        async for event in events:
            print("gap" if isinstance(event, Gap) else event.payload.decode(), flush=True)
            await events.ack(event)


if __name__ == "__main__":
    asyncio.run(read(*sys.argv[1:]))
