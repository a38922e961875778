"""Whole nodes without a socket: they publish, subscribe, recover and refuse over a network in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from grapevine.model.errors import PeerError
from grapevine.net import Node
from grapevine.net.config import NodeConfig
from grapevine.net.identity import Identity
from grapevine.net.memory_transport import MemoryNetwork
from grapevine.net.transport import Channel, ChannelUser
from tests.net.hostile import eventually
from tests.net.nodes import during, opening, payloads

Opening = Callable[..., AbstractAsyncContextManager[Node]]


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    """Opens nodes of one network in memory. Whoever opens a socket while a node runs fails, and so does the test."""
    sockets: list[tuple[Any, ...]] = []
    network = MemoryNetwork()

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        sockets.append(arguments)
        raise AssertionError("a socket was opened")

    def open_node(*bootstrap: Node, **changes: Any) -> AbstractAsyncContextManager[Node]:
        monkeypatch.setattr(socket.socket, "__init__", refuse)  # the loop has made its own by now
        return opening(*bootstrap, **({"transport": network.transport} | changes))

    yield open_node
    monkeypatch.undo()
    assert sockets == [] and network.listeners == {}


def news(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


def test_events_reach_all_subscribers_once(in_memory: Opening) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(in_memory())
            others = [await stack.enter_async_context(in_memory(first)) for _ in range(5)]
            inboxes = [await stack.enter_async_context(node.subscribe("x")) for node in others[1:]]
            for payload in news(1, 20):
                await others[0].publish("x", payload)
            for inbox in inboxes:
                assert sorted(await payloads(inbox, 20)) == sorted(news(1, 20))
            assert all(node.delivered == 20 and not node.stats()["failures"] for node in others[1:])

    during(scenario())


def test_who_was_away_recovers_what_it_missed(in_memory: Opening, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with in_memory() as a, a.subscribe("x"):
            async with in_memory(a, data_dir=tmp_path) as b:
                await b.subscribe_for_good("x")
                await asyncio.gather(a.ready("x"), b.ready("x"))
                for payload in news(1, 5):
                    await a.publish("x", payload)
                await eventually(lambda: b.delivered == 5)
            for payload in news(6, 30):
                await a.publish("x", payload)
            async with in_memory(a, data_dir=tmp_path) as b, b.subscribe("x", since=0) as events:
                assert await payloads(events, 30) == news(1, 30)
                assert b.stats()["recovered"] == 25 and not b.stats()["given_up"]

    during(scenario())


def test_a_node_that_crashes_is_missed_and_its_events_are_had_from_others(in_memory: Opening, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with in_memory() as a, a.subscribe("x") as at_a, AsyncExitStack() as stack:
            doomed = await stack.enter_async_context(in_memory(a))
            for payload in news(1, 10):
                await doomed.publish("x", payload)
            assert sorted(await payloads(at_a, 10)) == sorted(news(1, 10))
            crash(doomed)
            await eventually(lambda: doomed.id.address not in a.connections.connected)
            async with in_memory(a) as late, late.subscribe("x", since=0) as events:
                assert sorted(await payloads(events, 10)) == sorted(news(1, 10))

    during(scenario())


def crash(node: Node) -> None:
    """End all its connections without a word, and let nobody in again."""
    node.connections._closed = True
    for connection in list(node.connections._all):
        connection.abort()


def test_rappel_delivers_a_feed(in_memory: Opening) -> None:
    quick = {"system": "rappel", "parameters": {"stagger_s": 0.2, "timeout_s": 2.0}}

    async def scenario() -> None:
        async with in_memory(**quick) as a, in_memory(a, **quick) as b:
            feed = f"{a.id}/news"
            await a.publish(feed, b"1")
            async with b.subscribe(feed, since=0) as events:
                assert await payloads(events, 1) == [b"1"]

    during(scenario())


def test_a_bootstrap_node_that_is_not_there_is_told_to_who_joins(in_memory: Opening) -> None:
    async def scenario() -> None:
        async with in_memory() as a:
            with pytest.raises(PeerError, match="nobody listens"):
                await a.join("127.0.0.1:1")
            assert a.trouble() == "no peer is connected, although there are nodes to join"

    during(scenario())


class Babbler(ChannelUser):
    """Proves who it is, and then keeps to no rule."""

    def __init__(self, words: bytes) -> None:
        self.words, self.is_over = words, asyncio.Event()

    def on_channel_open(self, channel: Channel) -> None:
        channel.write(self.words)

    def on_channel_refused(self, error: PeerError) -> NoReturn:
        raise AssertionError(error)

    def on_data(self, data: bytes) -> None:
        return

    def on_channel_closed(self) -> None:
        self.is_over.set()


def test_who_breaks_the_rules_is_banned_as_on_any_transport(in_memory: Opening, tmp_path: Path) -> None:
    network = MemoryNetwork()

    async def scenario() -> None:
        async with in_memory(transport=network.transport) as a:
            mallory = network.transport(Identity.open(tmp_path), NodeConfig())
            for attempt in range(2):
                babbler = Babbler(b"\x00\x00\x00\x05hello")
                await mallory.dial(*a.endpoint, babbler, a.id)
                await asyncio.wait_for(babbler.is_over.wait(), 5)
                assert a.stats()["counts"].get("refused", 0) == attempt
            assert a.stats()["counts"]["banned"] == 1 and a.stats()["rejected"] == {"garbage": 1}

    during(scenario())


def test_who_goes_in_the_middle_of_a_hello_takes_no_place(in_memory: Opening, tmp_path: Path) -> None:
    network = MemoryNetwork()

    class Coward(Babbler):
        def on_channel_open(self, channel: Channel) -> None:
            channel.write(self.words)
            channel.close()

    async def scenario() -> None:
        async with in_memory(transport=network.transport) as a:
            for words in (b"", b"\x00", b"\x00\x00\x01\x00\x92\x01"):
                await network.transport(Identity.open(tmp_path), NodeConfig()).dial(*a.endpoint, Coward(words), a.id)
            await eventually(lambda: not a.connections._all)
            assert a.connections.open_connections == 0 and not a.stats()["rejected"]

    during(scenario())
