"""Small networks of real nodes, on the loopback and in a hurry."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from grapevine.net import Event, Inbox, Lagged, Node, OrderedReader

HURRIED: dict[str, Any] = {"recover_every_s": 0.2, "retry_s": 0.2, "durability": "process"}
ROUNDS: dict[str, Any] = {"round_s": 0.2, "settle_rounds": 0}


def opening(*bootstrap: Node, **changes: Any) -> AbstractAsyncContextManager[Node]:
    """A node that knows these."""
    settings: dict[str, Any] = {"bootstrap": list(map(endpoint, bootstrap)), "parameters": ROUNDS} | HURRIED | changes
    return Node.open(**settings)


def endpoint(node: Node) -> str:
    """As others write it down."""
    return "{}:{}".format(*node.endpoint)


def during(scenario: Coroutine[Any, Any, None], timeout: float = 60) -> None:
    """Run it; nothing takes longer than this."""
    asyncio.run(asyncio.wait_for(scenario, timeout))


async def payloads(inbox: Inbox | OrderedReader, count: int, timeout: float = 20) -> list[bytes]:
    """So many payloads, in the order in which they came; a gap between them is a failure."""
    found = []
    async with asyncio.timeout(timeout):
        for _ in range(count):
            event = await inbox.get()
            assert isinstance(event, Event), event
            found.append(event.payload)
    return found


async def next_event(inbox: Inbox | OrderedReader, timeout: float | None = None) -> Event:
    """The next event; a gap is a failure."""
    item = await inbox.get(timeout)
    assert isinstance(item, Event), item
    return item


async def silence(inbox: Inbox | OrderedReader, seconds: float = 0.5) -> bool:
    """Whether nothing comes for a while."""
    try:
        await inbox.get(timeout=seconds)
    except TimeoutError:
        return True
    except Lagged:
        pass
    return False
