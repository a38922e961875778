"""A process full of nodes, on one loop: `python -m grapevine.net.group`. It does what `cluster` orders.

It reads orders from standard input and ends with it, so that no group outlives its cluster. What it reports comes from
the inboxes of its nodes, as applications read them: which event, at which node, and when.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from grapevine.model.errors import GrapevineError
from grapevine.model.identity import PeerId
from grapevine.model.log import log_to_stderr
from grapevine.net.envelope import Event, Gap
from grapevine.net.inbox import Lagged
from grapevine.net.node import Node
from grapevine.net.orders import (
    Answer,
    AnyOrder,
    Exchanges,
    Failed,
    Given,
    Leave,
    Look,
    NewNode,
    Open,
    Opened,
    Publish,
    Published,
    Report,
    Subscribe,
    Subscribed,
    event_in,
    payload_of,
)
from grapevine.net.publishing import NoPath
from grapevine.net.reader import Reader
from grapevine.net.run import stop_on_signals

LINE_BYTES = 1 << 28  # of the longest order or answer
_REPORT_S = 0.5
_AT_ONCE = 8  # nodes that open at a time
_AGAIN_S = 1.0  # after the disk has refused a named reader
_FLUSHED_S = 0.01  # between two looks whether a report has left
_log = logging.getLogger(__name__)


def now_us() -> int:
    """A clock that all processes of a machine share, and that never goes back."""
    return time.monotonic_ns() // 1_000


class Group:
    """Nodes by their numbers, and what has come to them."""

    def __init__(self, tell: asyncio.WriteTransport) -> None:
        self.nodes: dict[int, Node] = {}
        self._tell_to = tell
        self._arrivals: list[int] = []
        self._given: list[Given] = []
        self._sessions = 0  # of named readers
        self._handled: dict[tuple[Reader, PeerId], int] = {}  # what they were given last, and was not reported yet
        self._damaged = 0
        self._leaving = asyncio.Event()
        self._opening = asyncio.Semaphore(_AT_ONCE)
        self._lives: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def obey(self, orders: asyncio.StreamReader) -> None:
        """Until told to leave, or until nobody tells anything any more."""
        decode = msgspec.json.Decoder(AnyOrder).decode
        self._begin(self._report_always())
        try:
            while line := await orders.readline():
                order = decode(line)
                if isinstance(order, Leave):
                    break
                self._begin(self._carry_out(order))
        finally:
            await self._close()

    def tell(self, answer: Answer) -> None:
        """Send an answer to the cluster, as a line of JSON."""
        self._tell_to.write(msgspec.json.encode(answer) + b"\n")

    async def _close(self) -> None:
        self._leaving.set()
        await asyncio.gather(*self._lives, return_exceptions=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, order: AnyOrder) -> None:
        try:
            if isinstance(order, Open):
                self.tell(Opened(await asyncio.gather(*(self._open(order, new) for new in order.nodes))))
            elif isinstance(order, Subscribe):
                await self._subscribe(order)
                self.tell(Subscribed())
            elif isinstance(order, Publish):
                await self._publish(order)
            elif isinstance(order, Look):
                self.tell(self._look())
        except GrapevineError as error:
            self.tell(Failed(str(error)))
        except Exception as error:
            _log.exception("an order failed")
            self.tell(Failed(f"{type(error).__name__}: {error}"))

    async def _open(self, order: Open, new: NewNode) -> tuple[int, str, str]:
        """Every node lives in a task of its own, so that all can leave at once."""
        opened: asyncio.Future[Node] = asyncio.get_running_loop().create_future()
        async with self._opening:
            life = asyncio.create_task(self._live(order, new, opened))
            self._lives.add(life)
            life.add_done_callback(self._lives.discard)
            node = await opened
        self.nodes[new.node] = node
        host, port = node.endpoint
        return new.node, str(node.id), f"{host}:{port}"

    async def _live(self, order: Open, new: NewNode, opened: asyncio.Future[Node]) -> None:
        try:
            async with Node.open(
                new.listen,
                new.bootstrap,
                system=order.system,
                network=order.network,
                data_dir=new.data_dir,
                diary=order.diary,
                parameters=order.parameters,
                **order.settings,
            ) as node:
                opened.set_result(node)
                await self._leaving.wait()
        except Exception as error:
            if opened.done():
                _log.exception("node %s ended badly", new.node)
            else:
                opened.set_exception(error)

    async def _subscribe(self, order: Subscribe) -> None:
        entered, since = [], 0.0 if order.again else None
        for number, topics in order.topics.items():
            node = self.nodes[number]
            for topic in topics:
                begun = asyncio.Event()
                entered.append(begun)
                if order.reader is None:
                    self._begin(self._read(number, node, topic, since, begun))
                else:
                    self._begin(self._read_named(number, node, topic, order.reader, begun))
        for begun in entered:
            await begun.wait()

    async def _read(self, number: int, node: Node, topic: str, since: float | None, begun: asyncio.Event) -> None:
        async with node.subscribe(topic, since=since) as inbox:
            begun.set()
            while True:
                try:
                    event = event_in((await inbox.get()).payload)
                except StopAsyncIteration:
                    return
                except Lagged:  # cannot be with `block`; if it is, the harness sees what is missing
                    continue
                self._note_arrival(number, event)

    async def _read_named(self, number: int, node: Node, topic: str, name: str, begun: asyncio.Event) -> None:
        """Read under a name until the node closes; again after the disk has refused, as a program does."""
        while not self._leaving.is_set():
            try:
                async with node.subscribe(topic, name=name, ack="explicit") as reader:
                    begun.set()
                    self._sessions += 1
                    session = self._sessions
                    async for item in reader:
                        self._note_given(number, session, item)
                        last = item.sequence if isinstance(item, Event) else item.last
                        self._handled[reader, item.publisher] = last
                    return
            except GrapevineError as error:
                _log.warning("the reader of %s on node %s begins again: %s", topic, number, error)
                await asyncio.sleep(_AGAIN_S)

    async def _acknowledge(self, handled: dict[tuple[Reader, PeerId], int]) -> None:
        """Acknowledge what was reported, when the cluster has the report: a kill before that lets it come again."""
        while self._tell_to.get_write_buffer_size():
            await asyncio.sleep(_FLUSHED_S)
        acks = (reader.ack_up_to(publisher, last) for (reader, publisher), last in handled.items())
        for failed in await asyncio.gather(*acks, return_exceptions=True):
            if isinstance(failed, BaseException) and not isinstance(failed, GrapevineError):
                raise failed  # a disk that refuses lets it come again, too

    def _note_given(self, number: int, session: int, item: Event | Gap) -> None:
        if isinstance(item, Event):
            event, first, last, loss = event_in(item.payload), item.sequence, item.sequence, None
            self._note_arrival(number, event)
        else:
            event, first, last, loss = None, item.first, item.last, item.reason
        self._given.append(Given(number, item.topic, session, str(item.publisher), first, last, event, loss))

    def _note_arrival(self, number: int, event: int | None) -> None:
        if event is None:
            self._damaged += 1
        else:
            self._arrivals += (event, number, now_us())

    async def _publish(self, order: Publish) -> None:
        begun, payload = now_us(), payload_of(order.event, order.bytes)
        try:
            event = await self.nodes[order.node].publish(order.topic, payload, timeout=order.timeout)
        except GrapevineError as error:
            self.tell(Published(order.event, begun, str(error), is_kept=isinstance(error, NoPath)))
        else:
            self.tell(Published(order.event, begun, sequence=event.sequence))

    def _look(self) -> Exchanges:
        return Exchanges([(node.id.address, node.exchanges()) for node in self.nodes.values()])

    async def _report_always(self) -> None:
        while True:
            due = time.monotonic() + _REPORT_S
            await asyncio.sleep(_REPORT_S)
            late = time.monotonic() - due
            arrivals, self._arrivals = self._arrivals, []
            given, self._given = self._given, []
            stats = [node.stats() for node in self.nodes.values()]
            used = resource.getrusage(resource.RUSAGE_SELF)
            self.tell(
                Report(
                    up=len(stats),
                    connections=sum(of["peers"] for of in stats),
                    connections_max=max((of["peers"] for of in stats), default=0),
                    degree=sum(of["links"] for of in stats),
                    degree_max=max((of["links"] for of in stats), default=0),
                    messages=sum(sum(of["sent"].values()) for of in stats),
                    bytes=sum(of["bytes_out"] for of in stats),
                    recovered=sum(of["recovered"] for of in stats),
                    failures=sum(sum(of["failures"].values()) for of in stats),
                    damaged=self._damaged,
                    cpu_s=used.ru_utime + used.ru_stime,
                    rss_bytes=_resident(used.ru_maxrss),
                    late_s=max(0.0, late),
                    arrivals=arrivals,
                    given=given,
                )
            )
            if self._handled:
                handled, self._handled = self._handled, {}
                self._begin(self._acknowledge(handled))


def _resident(highest: int) -> int:
    """Bytes in memory now; where the system does not tell, the most there ever were."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return highest * (1 if sys.platform == "darwin" else 1024)


async def _main() -> None:
    stop_on_signals()
    loop = asyncio.get_running_loop()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever prints must not disturb the answers
    orders = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, answers)
    with contextlib.suppress(asyncio.CancelledError):
        await Group(transport).obey(orders)
    transport.close()


if __name__ == "__main__":
    log_to_stderr("json", os.environ.get("GRAPEVINE_LOG_LEVEL", "warning"))
    asyncio.run(_main())
