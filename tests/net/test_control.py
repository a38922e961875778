"""A node's control server, met by a real HTTP client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.identity import PeerId
from grapevine.net import Gap, Node
from grapevine.net.control import Control
from grapevine.net.doors.lines import described
from grapevine.net.inbox import Lagged
from grapevine.net.ordered_reader import OrderedReader
from grapevine.net.remote import Remote
from tests.net.hostile import eventually


@contextlib.asynccontextmanager
async def served(folder: Path, at: str = "127.0.0.1:0", **options: Any) -> AsyncIterator[tuple[Node, Control]]:
    """A node and its control server."""
    control = Control(folder / "control.json")
    try:
        async with Node.open(**options) as node:
            await control.serve(node, at)
            yield node, control
    finally:
        await control.close()


@contextlib.asynccontextmanager
async def client(folder: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Somebody who has read the control file."""
    told = json.loads((folder / "control.json").read_text())
    headers = {"Authorization": f"Bearer {told['token']}"}
    async with aiohttp.ClientSession(told["url"], headers=headers, timeout=aiohttp.ClientTimeout(30)) as session:
        yield session


def within(seconds: float, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run it; a hang is a failure."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await scenario()

    asyncio.run(bounded())


async def lines(response: aiohttp.ClientResponse, count: int) -> list[dict[str, Any]]:
    return [json.loads(await response.content.readline()) for _ in range(count)]


def test_an_event_goes_in_by_http_and_comes_out_by_http(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (node, _), client(tmp_path) as session:
            async with session.get("/subscribe", params=[("topic", "a"), ("topic", "b")]) as stream:
                assert await lines(stream, 1) == [{"subscribed": ["a", "b"]}]
                async with session.post("/publish", params={"topic": "a"}, data="grüß".encode()) as answer:
                    published = await answer.json()
                async with session.post("/publish", params={"topic": "b"}, data=b"\xff\x00") as answer:
                    assert answer.status == 200
                text, binary = await lines(stream, 2)
            assert published == {"topic": "a", "publisher": str(node.id), "sequence": 1, "time": text["time"]}
            assert (text["topic"], text["text"], base64.b64decode(text["payload"])) == ("a", "grüß", "grüß".encode())
            assert "text" not in binary
            assert base64.b64decode(binary["payload"]) == b"\xff\x00"

    within(60, scenario)


def test_a_reader_gets_what_was_kept_since_then_and_leaves_the_subscription_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (node, _), client(tmp_path) as session:
            await node.subscribe_for_good("x")
            await node.publish("x", b"before")
            async with session.get("/subscribe", params={"topic": "x", "since": "0"}) as stream:
                assert [line.get("text") for line in await lines(stream, 2)] == [None, "before"]
            async with session.get("/subscribe", params={"topic": "y"}) as stream:
                await lines(stream, 1)
                assert node.subscriptions == ["x", "y"]
            await eventually(lambda: node.subscriptions == ["x"])

    within(60, scenario)


def test_who_has_no_token_learns_whether_the_node_is_well_and_nothing_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (_, control), aiohttp.ClientSession(control.url) as stranger:
            async with stranger.get("/health") as answer:
                assert (answer.status, await answer.json()) == (200, {"status": "ok"})
            for wrong in (
                {},
                {"Authorization": "Bearer x"},
                {"Authorization": "Bearer é"},
            ):
                for method, path in (
                    ("GET", "/stats"),
                    ("GET", "/metrics"),
                    ("POST", "/publish?topic=a"),
                    ("GET", "/x"),
                ):
                    async with stranger.request(method, path, headers=wrong) as answer:
                        assert answer.status == 401
                        assert "token" in (await answer.json())["error"]

    within(60, scenario)


def test_the_control_file_is_its_owners_and_goes_with_the_node(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (node, control):
            assert stat.S_IMODE(control.file.stat().st_mode) == 0o600
            assert json.loads(control.file.read_text())["peer"] == str(node.id)
        assert list(tmp_path.iterdir()) == []

    within(60, scenario)


def test_metrics_are_what_prometheus_reads(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (node, _), client(tmp_path) as session:
            await node.publish("a", b"1")
            node.connections.conduct.counts['odd "reason"\n'] += 2
            async with session.get("/metrics") as answer:
                assert answer.content_type == "text/plain"
                text = await answer.text()
        found = {line.split(" ")[0]: line.split(" ")[-1] for line in text.splitlines() if not line.startswith("#")}
        assert found["grapevine_published_total"] == "1.0"
        assert found["grapevine_peers"] == "0.0"
        assert 'grapevine_rejected_total{reason="odd \\"reason\\"\\n"} 2.0' in text
        assert "# TYPE grapevine_published_total counter" in text or "# TYPE grapevine_published counter" in text

    within(60, scenario)


def test_mistakes_are_answered_with_a_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path, payload_bytes=1_000) as _, client(tmp_path) as session:
            for method, path, body, status, said in (
                ("POST", "/publish", b"", 400, "give one as ?topic=NAME"),
                ("POST", "/publish?topic=", b"", 400, "a topic of 0 characters"),
                ("POST", f"/publish?topic={'x' * 2_000}", b"", 400, "a topic of 2000 characters"),
                ("POST", "/publish?topic=a&timeout=soon", b"", 400, "timeout='soon'"),
                ("POST", "/publish?topic=a", bytes(1_001), 400, "a payload of 1,001 bytes"),
                ("POST", "/publish?topic=a", bytes(100_000), 413, "Too Large"),
                ("GET", "/subscribe?topic=a&policy=never", None, 400, "drop-oldest"),
                ("GET", "/subscribe?topic=a&since=nan", None, 400, "since='nan'"),
                ("GET", "/publish?topic=a", None, 405, "Method Not Allowed"),
                ("GET", "/nothing", None, 404, "Not Found"),
            ):
                async with session.request(method, path, data=body) as answer:
                    assert (answer.status, path) == (status, path)
                    assert said in (await answer.json())["error"]
            async with session.get("/stats") as answer:
                assert (await answer.json())["published"] == 0

    within(60, scenario)


def test_garbage_ends_a_connection_and_nothing_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as (_, control), client(tmp_path) as session:
            host, port = control.url.removeprefix("http://").split(":")
            for garbage in (
                b"\x16\x03\x01\x02\x00",
                b"GET " + b"/" * 100_000,
                b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            ):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(garbage + b"\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    assert (await reader.read(20)).split()[1:2] in ([b"400"], [b"414"], [])
                writer.close()
            async with session.get("/health") as answer:
                assert answer.status == 200

    within(60, scenario)


def test_a_node_that_finds_nobody_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{taken.getsockname()[1]}"

        async def scenario() -> None:
            async with served(tmp_path, bootstrap=[nowhere]) as (node, _), client(tmp_path) as session:
                async with session.get("/health") as answer:
                    assert answer.status == 503
                    assert "no peer" in (await answer.json())["reason"]
                async with session.post("/publish", params={"topic": "a", "timeout": "0.2"}, data=b"1") as answer:
                    assert answer.status == 503
                    assert "it is kept" in (await answer.json())["error"]
                for acks, sentence in (("1.5", "give a whole number"), ("x", "give a number"), ("99", "from 0 to 64")):
                    async with session.post("/publish", params={"topic": "a", "acks": acks}, data=b"1") as answer:
                        assert answer.status == 400 and sentence in (await answer.json())["error"]
                assert node.stats()["published"] == 1

        within(60, scenario)


def test_streams_end_when_the_node_leaves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with served(tmp_path):
                session = await stack.enter_async_context(client(tmp_path))
                stream = await stack.enter_async_context(session.get("/subscribe", params={"topic": "a"}))
                await lines(stream, 1)
            assert await stream.content.read() == b""

    within(60, scenario)


def test_a_reader_is_told_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, missed = OrderedReader.get, [Lagged(3)]

    async def lagging(self: OrderedReader, timeout: float | None = None) -> Any:
        if missed:
            raise missed.pop()
        return await read(self, timeout)

    async def scenario() -> None:
        monkeypatch.setattr(OrderedReader, "get", lagging)
        async with (
            served(tmp_path) as (node, _),
            client(tmp_path) as session,
            session.get("/subscribe", params={"topic": "a", "policy": "drop-oldest"}) as stream,
        ):
            assert (await lines(stream, 2))[1] == {"lagged": 3, "topic": "a"}
            await node.publish("a", b"on")
            assert (await lines(stream, 1))[0]["text"] == "on"

    within(60, scenario)


@pytest.mark.parametrize("at", ["127.0.0.1:0", "[::1]:0", "unix"])
def test_programs_without_asyncio_publish_and_subscribe_too(tmp_path: Path, at: str) -> None:
    where = f"unix:{tmp_path / 'socket'}" if at == "unix" else at

    def talk() -> None:
        remote = Remote.find(tmp_path)
        stream = remote.subscribe(["a"])
        assert next(stream) == {"subscribed": ["a"]}
        assert remote.publish("a", b"1")["sequence"] == 1
        assert next(stream)["text"] == "1"
        stream.close()
        with pytest.raises(UsageError, match="a topic of 0 characters"):
            remote.publish("", b"1")
        with pytest.raises(UsageError, match="the token is missing or wrong"):
            Remote(remote.url, "x").publish("a", b"1")

    async def scenario() -> None:
        async with served(tmp_path, where):
            await asyncio.to_thread(talk)

    within(60, scenario)


def test_a_control_file_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"control\.json: there is no control file of a running node"):
        Remote.find(tmp_path)
    (tmp_path / "control.json").write_text("[]")
    monkeypatch.setenv("GRAPEVINE_NODE", str(tmp_path))
    with pytest.raises(UsageError, match="is no control file of a node"):
        Remote.find()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = Remote(f"http://127.0.0.1:{free.getsockname()[1]}", "x")
        with pytest.raises(GrapevineError, match="no node answers"):
            gone.publish("a", b"1")


def test_a_program_that_reads_under_a_name_goes_on_behind_what_it_acknowledged(tmp_path: Path) -> None:
    def talk() -> None:
        remote = Remote.find(tmp_path)
        stream = remote.subscribe(["a"], name="billing")
        next(stream)
        for text in (b"1", b"2", b"3"):
            remote.publish("a", text)
        first, second = next(stream), next(stream)
        remote.ack("billing", first)
        with pytest.raises(UsageError, match=r"event 9 of .* was not given to the reader 'billing'"):
            remote.ack("billing", second | {"sequence": 9})
        stream.close()
        again = remote.subscribe(["a"], name="billing")
        assert [next(again).get("text") for _ in range(3)] == [None, "2", "3"]
        again.close()
        with pytest.raises(UsageError, match="nobody streams 'a' under the name 'nobody'"):
            remote.ack("nobody", first)
        with pytest.raises(UsageError, match="a named reader misses nothing"):
            next(remote.subscribe(["a"], name="billing", policy="drop-new"))

    async def scenario() -> None:
        async with served(tmp_path):
            await asyncio.to_thread(talk)

    within(60, scenario)


def test_what_a_named_reader_cannot_have_any_more_is_a_line_of_its_own() -> None:
    gap = Gap("a", PeerId.of(b"alice"), 3, 5, "retention")
    assert described(gap) == {
        "topic": "a",
        "publisher": str(gap.publisher),
        "first": 3,
        "last": 5,
        "reason": "retention",
    }
