"""A node says who became its neighbour, and who is none any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from grapevine.net import Node
from grapevine.net.company import sentence, tell_of_neighbours
from tests.net.hostile import eventually
from tests.net.nodes import during, endpoint, opening


def test_who_comes_and_goes_is_said_in_a_line() -> None:
    assert sentence({"3f2a91c4": "h:1"}, [], 1, 2) == "new neighbour 3f2a91c4 (h:1); 1 neighbour, 2 peers connected"
    assert sentence({}, ["a", "b"], 0, 1) == "no longer neighbours a, b; 0 neighbours, 1 peer connected"
    many = sentence({f"{number}": "h:1" for number in range(6)}, ["a"], 6, 6)
    assert many.startswith("new neighbours 0 (h:1), 1 (h:1), 2 (h:1), 3 (h:1) and 2 more; no longer neighbour a; ")


@contextlib.asynccontextmanager
async def watching(node: Node) -> AsyncIterator[None]:
    task = asyncio.create_task(tell_of_neighbours(node))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_node_that_joins_and_leaves_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "grapevine.net.company")

    async def scenario() -> None:
        async with opening() as a, watching(a):
            async with opening(a) as b:
                await eventually(lambda: bool(caplog.messages))
                joined = f"new neighbour {b.id.short} ({endpoint(b)}); 1 neighbour, 1 peer connected"
                assert caplog.messages == [joined]
                assert caplog.records[0].__dict__["fields"] == {
                    "joined": {b.id.short: endpoint(b)},
                    "gone": [],
                    "neighbours": 1,
                    "connected": 1,
                }
            await eventually(lambda: len(caplog.messages) > 1)
            assert caplog.messages[1].startswith(f"no longer neighbour {b.id.short}; 0 neighbours, ")

    during(scenario())
