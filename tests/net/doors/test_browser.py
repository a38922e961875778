"""The door for browsers: WebSockets, server-sent events, who may come in, and a page in Chromium."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from grapevine.net import Node
from grapevine.net.control import Control
from tests.net.hostile import eventually
from tests.net.test_control import within

PAGE = "http://page.example"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Door:
    """A node's control server as a page sees it."""

    def __init__(self, folder: Path, *origins: str, **options: Any) -> None:
        self.control, self.origins, self.options = Control(folder / "control.json"), origins, options

    async def __aenter__(self) -> Door:
        self.opening = Node.open(**self.options)
        self.node = await self.opening.__aenter__()
        self.url = await self.control.serve(self.node, origins=self.origins)
        self.token = json.loads(self.control.file.read_text())["token"]
        self.session = aiohttp.ClientSession(self.url, timeout=aiohttp.ClientTimeout(30))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await self.opening.__aexit__(None, None, None)
        await self.control.close()

    async def socket(self, token: str | None = None, **headers: str) -> aiohttp.ClientWebSocketResponse:
        given = self.token if token is None else token
        return await self.session.ws_connect("/ws", protocols=["grapevine", f"token.{given}"], headers=headers)


async def asked(socket: aiohttp.ClientWebSocketResponse, **content: Any) -> dict[str, Any]:
    await socket.send_json(content)
    answer: dict[str, Any] = await socket.receive_json(timeout=20)
    return answer


def test_a_page_reads_publishes_and_reads_no_longer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Door(tmp_path, PAGE) as door:
            one, other = await door.socket(Origin=PAGE), await door.socket(Origin=door.url)
            assert one.protocol == "grapevine"
            assert await asked(one, subscribe=["a", "b"], id=1) == {"subscribed": ["a", "b"], "id": 1}
            published = await asked(other, publish="a", text="grüß", id="x")
            assert published["id"] == "x" and published["published"]["sequence"] == 1
            event = await one.receive_json(timeout=20)
            assert (event["topic"], event["text"], event["publisher"]) == ("a", "grüß", str(door.node.id))
            await asked(other, publish="b", payload=base64.b64encode(b"\xff\0").decode())
            assert base64.b64decode((await one.receive_json(timeout=20))["payload"]) == b"\xff\0"
            assert await asked(one, unsubscribe=["a"]) == {"unsubscribed": ["a"]}
            assert door.node.subscriptions == ["b"]
            await one.close()
            await eventually(lambda: door.node.subscriptions == [])
            past = await asked(other, subscribe=["a"], since="beginning")
            lines = [past, await other.receive_json(timeout=20)]
            assert {line.get("text") for line in lines} == {None, "grüß"}

    within(60, scenario)


def test_who_may_come_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Door(tmp_path, PAGE) as door:
            for token, headers, status in (
                ("wrong", {}, 401),
                ("", {"Origin": PAGE}, 401),
                (door.token, {"Origin": "http://evil.example"}, 403),
                (door.token, {"Origin": "null"}, 403),
                (door.token, {"Origin": PAGE + ".evil.example"}, 403),
            ):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await door.socket(token, **headers)
                assert refused.value.status == status
                params = {"topic": "a", "token": token}
                async with door.session.get("/events", params=params, headers=headers) as answer:
                    assert answer.status == status
            await (await door.socket()).close()
            async with door.session.get("/stats", params={"token": door.token}) as answer:
                assert answer.status == 401  # the token in a URL is for what browsers cannot ask otherwise

    within(60, scenario)


def test_whatever_a_page_says_is_answered_in_a_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Door(tmp_path, payload_bytes=1_000) as door:
            socket = await door.socket()
            for text, said in (
                ("no JSON", "JSON object"),
                ("[1]", "JSON object"),
                ("[" * 3_000, "JSON object"),
                ('{"id": 3}', "one of: publish"),
                ('{"subscribe": "a"}', "a list"),
                ('{"subscribe": [""]}', "1 to 1,024"),
                (json.dumps({"subscribe": [f"t{n}" for n in range(257)]}), "256 topics"),
                ('{"subscribe": ["a"], "since": "then"}', "since"),
                ('{"subscribe": ["a"], "since": [0]}', "since"),
                ('{"publish": "a"}', "base 64"),
                ('{"publish": "a", "payload": "?"}', "base 64"),
                ('{"publish": "a", "text": "\\ud800"}', "base 64"),
                ('{"publish": "a", "text": "x", "acks": -1}', "acks"),
                (json.dumps({"publish": "a", "text": "x" * 1_001}), "1,000"),
            ):
                await socket.send_str(text)
                answer = await socket.receive_json(timeout=20)
                assert said in answer["error"], (text[:60], answer)
            assert door.node.subscriptions == []
            await socket.send_str("x" * 10_000)
            assert (await socket.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
            await (await door.socket()).close()

    within(60, scenario)


def test_events_come_as_server_sent_events(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Door(tmp_path, PAGE) as door:
            params = {"topic": "a", "token": door.token}
            async with door.session.get("/events", params=params, headers={"Origin": PAGE}) as stream:
                assert stream.headers["Content-Type"] == "text/event-stream"
                assert stream.headers["Access-Control-Allow-Origin"] == PAGE
                assert await stream.content.readuntil(b"\n\n") == b'data: {"subscribed": ["a"]}\n\n'
                await door.node.publish("a", b"one\ntwo")
                line = await stream.content.readuntil(b"\n\n")
                assert json.loads(line.removeprefix(b"data: "))["text"] == "one\ntwo"
            await eventually(lambda: door.node.subscriptions == [])
            async with door.session.get("/events", params={"token": door.token}) as answer:
                assert answer.status == 400

    within(60, scenario)


@asynccontextmanager
async def page_of(where: str, profile: Path) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """A page in Chromium; what is given tells the text that it shows now, through the browser's debugging protocol."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}")
    quiet = asyncio.subprocess.DEVNULL
    browser = await asyncio.create_subprocess_exec(str(CHROMIUM), *flags, where, stdout=quiet, stderr=quiet)
    try:
        await eventually((profile / "DevToolsActivePort").exists, 60)
        port = (profile / "DevToolsActivePort").read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                (target,) = [one for one in await answer.json() if one["type"] == "page"]
            async with session.ws_connect(target["webSocketDebuggerUrl"]) as socket:

                async def text() -> str:
                    expression = {"expression": "document.body.innerText"}
                    await socket.send_json({"id": 1, "method": "Runtime.evaluate", "params": expression})
                    return str((await socket.receive_json())["result"]["result"]["value"])

                yield text
    finally:
        browser.kill()
        await browser.wait()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium, in which the page is opened")
def test_the_example_page_shows_what_is_published(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = web.Application()
        app.add_routes([web.static("/", Path(__file__).parents[3] / "examples")])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with Door(tmp_path, origin) as door:
            where = f"{origin}/browser.html#{door.url.removeprefix('http://')}/{door.token}/tea%2Froom"
            async with page_of(where, tmp_path / "browser") as text_of_page:
                await eventually(lambda: "tea/room" in door.node.subscriptions)
                await door.node.publish("tea/room", b"<b>hello</b>")
                async with asyncio.timeout(30):
                    while "hello" not in (shown := await text_of_page()):
                        await asyncio.sleep(0.05)
                assert f"{door.node.id.short}: <b>hello</b>" in shown and "connected" in shown and "tea/room" in shown
        await runner.cleanup()

    within(120, scenario)
