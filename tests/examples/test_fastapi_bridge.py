"""The bridge to the web: two processes with uvicorn, and aiohttp as the program that calls them."""

from __future__ import annotations

import asyncio
import json
import signal
from importlib.util import find_spec
from pathlib import Path

import aiohttp
import pytest

from tests.examples.programs import PATIENCE_S, Program, started

pytestmark = pytest.mark.skipif(
    find_spec("fastapi") is None or find_spec("uvicorn") is None,
    reason="no fastapi or no uvicorn here: pip install 'grapevine-pubsub[examples]'",
)
ANYWHERE = "--http", "127.0.0.1:0"


def addresses(bridge: Program) -> tuple[str, str]:
    """Where programs reach it, and where nodes do, as it prints both."""
    words = bridge.until("leads to the node").split()
    return words[0].removesuffix("/topics/TOPIC"), words[-1]


async def subscribed(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientResponse:
    """A stream whose subscription has begun; the server may not listen yet, although it has said where it will."""
    while True:
        try:
            stream = await session.get(url)
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.05)
            continue
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert (await stream.content.readline()).startswith(b": subscribed to weather/oslo")
        return stream


async def told(stream: aiohttp.ClientResponse) -> dict[str, object]:
    """The data of the next event, which ends with an empty line; comments are passed over."""
    fields: dict[str, str] = {}
    while (line := (await stream.content.readline()).decode()) != "\n" or not fields:
        assert line, "the stream has ended"
        name, _, value = line.strip().partition(": ")
        fields |= {name: value} if name else {}
    found: dict[str, object] = json.loads(fields["data"])
    return found


def test_what_is_posted_to_one_bridge_is_streamed_by_both_until_they_stop(tmp_path: Path) -> None:
    with started("fastapi_bridge.py", *ANYWHERE, folder=tmp_path) as one:
        here, node = addresses(one)
        with started("fastapi_bridge.py", *ANYWHERE, "--join", node, folder=tmp_path) as other:
            there, _ = addresses(other)

            async def scenario() -> None:
                async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(raise_for_status=False) as session:
                    streams = [await subscribed(session, f"{url}/topics/weather/oslo") for url in (here, there)]
                    async with session.post(f"{here}/topics/weather/oslo", data="-3 °C".encode()) as posted:
                        event = await posted.json()
                        assert (posted.status, event["sequence"]) == (201, 1)
                    expected = {"publisher": event["publisher"], "time": event["time"], "text": "-3 °C"}
                    assert [await told(stream) for stream in streams] == [expected, expected]
                    async with session.post(f"{there}/topics/x", data=bytes(300_000)) as refused:
                        assert (refused.status, list(await refused.json())) == (400, ["error"])
                    for bridge in (other, one):
                        bridge.process.send_signal(signal.SIGINT)
                    for stream in streams:  # both end, although their readers are still there
                        assert b"data" not in await stream.content.read()

            asyncio.run(scenario())
            for bridge in (other, one):
                assert (bridge.finish(), bridge.complaints()) == (0, "")
            assert not one.left_behind()


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    with started("fastapi_bridge.py", *ANYWHERE, "--join", "nowhere", folder=tmp_path) as bridge:
        assert bridge.finish() == 1
        assert bridge.complaints() == "error: 'nowhere' is no endpoint; give HOST:PORT, e.g. 127.0.0.1:7000\n"
