"""A node's parts, put together: started and stopped in order, also when something fails half-way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.net.assembly import Assembly
from grapevine.net.config import NodeConfig
from grapevine.net.data_folder import DataFolder
from grapevine.net.diary import Diary
from grapevine.net.live_system import live_system
from grapevine.net.memory_transport import MemoryNetwork
from grapevine.net.retention import Retention
from grapevine.net.topics import State
from tests.net.nodes import during, endpoint, opening

AT = ("127.0.0.1", 0)


@asynccontextmanager
async def assembled(network: MemoryNetwork, folder: Path, *, diary: bool = False) -> AsyncIterator[Assembly]:
    """The parts of a node, not started yet."""
    async with DataFolder.open(folder, Retention(), synced=False) as opened:
        system = live_system("vitis", {}, opened.identity.id)
        written = Diary(folder / "diary", opened.identity.id.address) if diary else None
        yield Assembly(opened, system, NodeConfig(), network="n", transport=network.transport, diary=written)


def is_running(parts: Assembly) -> bool:
    return parts.host.is_running


def test_parts_that_were_started_are_stopped_and_closing_twice_is_closing_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = MemoryNetwork()
        async with assembled(network, tmp_path) as parts:
            await parts.start(AT, None, [])
            assert is_running(parts) and parts.endpoint in network.listeners and len(parts.tasks) == 3
            await parts.close()
            await parts.close()
            assert not is_running(parts) and not network.listeners and all(task.done() for task in parts.tasks)

    during(scenario())


def test_parts_that_were_never_started_can_be_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with assembled(MemoryNetwork(), tmp_path, diary=True) as parts:
            await parts.close()

    during(scenario())


def test_a_start_that_fails_says_why_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = MemoryNetwork()
        async with (
            assembled(network, tmp_path / "a") as first,
            assembled(network, tmp_path / "b", diary=True) as second,
        ):
            await first.start(AT, None, [])
            with pytest.raises(UsageError, match="cannot be listened on"):
                await second.start(first.endpoint, None, [])
            await second.close()
            await first.close()
        (path,) = (tmp_path / "b" / "diary").iterdir()
        assert [json.loads(line)["what"] for line in path.read_text().splitlines()] == ["session", "end"]

    during(scenario())


def test_a_node_that_cannot_listen_and_keeps_a_diary_says_that_it_cannot_listen(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opening() as a:
            with pytest.raises(UsageError, match="cannot be listened on"):
                async with opening(listen=endpoint(a), diary=tmp_path):
                    pass

    during(scenario())


def test_what_was_subscribed_to_is_wanted_before_anybody_can_connect(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = MemoryNetwork()
        async with assembled(network, tmp_path) as parts:
            await parts.store.subscribe(parts.system.topic("x"), "x", 7)
            listen = parts.connections.listen

            async def listen_later(*given: object) -> tuple[str, int]:
                assert parts.topics.state(parts.system.topic("x")) is State.WANTED
                return await listen(*given)  # type: ignore[arg-type]

            parts.connections.listen = listen_later  # type: ignore[method-assign,assignment]
            await parts.start(AT, None, [])
            assert [topic.since_ms for topic in parts.topics.wanted()] == [7]
            await parts.close()

    during(scenario())
