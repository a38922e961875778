"""A node as a process: until somebody stops it, then it leaves in good order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from grapevine.net.company import tell_of_neighbours
from grapevine.net.control import Control
from grapevine.net.control_file import CONTROL_FILE
from grapevine.net.doors.mqtt.config import DoorConfig
from grapevine.net.node import Node
from grapevine.net.options import NodeOptions
from grapevine.net.retention import Retention

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Started:
    """What others need to know of a node that runs."""

    peer: str
    endpoint: str
    control_url: str
    control_file: Path
    topics: list[str]
    mqtt: str | None = None  # where clients of MQTT reach it


def run_node(options: NodeOptions, tell: Callable[[Started], None]) -> None:
    """Run until SIGTERM or SIGINT; a second one ends it at once."""
    asyncio.run(_until_stopped(options, tell))


async def _until_stopped(options: NodeOptions, tell: Callable[[Started], None]) -> None:
    stop_on_signals()
    with contextlib.suppress(asyncio.CancelledError):
        async with _running(options) as (node, started):
            tell(started)
            plan = f"joining {', '.join(options.join)}" if options.join else "waiting for others to join"
            _log.info("node %s is up, %s", node.id.short, plan, extra=_about(started))
            try:
                await tell_of_neighbours(node)
            finally:
                _log.info("node %s leaves", node.id.short, extra=_about(started))


def _about(started: Started) -> dict[str, dict[str, str]]:
    """What a line of JSON says of the node besides the message."""
    return {"fields": {"peer": started.peer, "endpoint": started.endpoint}}


def stop_on_signals() -> None:
    """Cancel this task on SIGTERM and SIGINT: whatever it has opened is then closed in good order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)


@contextlib.asynccontextmanager
async def _running(options: NodeOptions) -> AsyncIterator[tuple[Node, Started]]:
    async with contextlib.AsyncExitStack() as stack:
        if options.control_file is not None:
            file = Path(options.control_file)
        else:
            folder = options.data_dir or stack.enter_context(tempfile.TemporaryDirectory(prefix="grapevine-control-"))
            file = Path(folder) / CONTROL_FILE
        control = Control(file)
        stack.push_async_callback(control.close)  # after the node, so that it tells that the node is leaving
        node = await stack.enter_async_context(
            Node.open(
                options.listen,
                options.join,
                system=options.system,
                network=options.network,
                data_dir=options.data_dir,
                announce=options.announce,
                diary=options.diary,
                retention=Retention(**options.retention),
                parameters=options.parameters,
                **options.settings,
            )
        )
        for topic in options.subscribe:
            await node.subscribe_for_good(topic)
        mqtt = None if options.mqtt is None else await stack.enter_async_context(_door(node, options, options.mqtt))
        url = await control.serve(node, options.control, options.origin)
        host, port = node.endpoint
        yield node, Started(str(node.id), f"{host}:{port}", url, file, node.subscriptions, mqtt)


@contextlib.asynccontextmanager
async def _door(node: Node, options: NodeOptions, at: str) -> AsyncIterator[str]:
    """The MQTT door, as long as the block, and where it listens. What it needs is an extra (`model.extras`)."""
    from grapevine.net.doors.mqtt.door import Door

    folder = None if options.data_dir is None else Path(options.data_dir)
    async with Door.open(node, at, DoorConfig(**options.door), folder) as door:
        yield "{}:{}".format(*door.endpoint)
