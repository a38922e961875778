"""Applications that read: one that may miss nothing, and one that takes what comes while it is there.

A `DurableReader` is a named reader (`net/reader`): it goes on where it was in the node's next session, and is told of
gaps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from grapevine.model.errors import GrapevineError
from grapevine.net.envelope import Event, Gap
from grapevine.net.inbox import Lagged
from grapevine.net.node import Node
from grapevine.net.torture.oracle import Oracle

READER = "torture"  # the name under which durable readers read
_AGAIN_S = 3.0  # after the disk has refused
_DURABLE_SIZE = 8  # events that wait for a durable reader; few, so that it reads from the store
_LIVE_SIZE = 4  # events that wait for a live reader; few, so that it falls behind


class Pace:
    """How quick a node's readers are. A slow one waits after every event."""

    def __init__(self) -> None:
        self.pause_s = 0.0

    async def after_event(self) -> None:
        """What a reader does with an event takes time."""
        if self.pause_s:
            await asyncio.sleep(self.pause_s)


class DurableReader:
    """A named reader of one topic on one node, over all sessions of the node; `read` is one of them."""

    def __init__(self, node: str, topic: str, oracle: Oracle, pace: Pace) -> None:
        self.name, self.topic = f"{node}/{topic}", topic
        self._node, self._oracle, self._pace = node, oracle, pace

    async def read(self, node: Node) -> None:
        """Read until cancelled, or until the node closes."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with node.subscribe(self.topic, name=READER, size=_DURABLE_SIZE) as events:
                    self._oracle.on_subscribed(self.name, self._node, self.topic, loop.time())
                    self._oracle.on_session(self.name)
                    async for item in events:
                        for given in self.given(item):
                            self._oracle.on_given(self.name, given)
                        await self._pace.after_event()
                    return
            except GrapevineError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    return  # it was to end, and the disk refused while it left
                await asyncio.sleep(_AGAIN_S)

    def given(self, item: Event | Gap) -> list[Event | Gap]:
        """What the oracle hears of an item that was read; a test overrides it to break a promise."""
        return [item]

    async def unsubscribe(self, node: Node) -> None:
        """It no longer wants its topic. Tried once: if the disk refuses, the node goes on subscribing."""
        self._oracle.on_unsubscribe(self.name)
        try:
            await node.unsubscribe(self.topic)
        except GrapevineError:
            return


class LiveReader:
    """Takes what comes in one session of a node, in order or as it arrives. It misses nothing while it is there."""

    def __init__(self, node: str, topic: str, oracle: Oracle, pace: Pace, *, ordered: bool) -> None:
        self.name, self.topic, self._ordered = f"{node}/{topic}/live", topic, ordered
        self._oracle, self._pace = oracle, pace
        self._seen: set[tuple[bytes, int, int]] | None = None  # None while it is not there
        self._from = 0  # arrivals after this one are for it
        self._first: dict[bytes, int] = {}  # by source: the first number that is for it, if it reads in order

    async def read(self, node: Node) -> None:
        """Read until cancelled, or until the node closes."""
        self._oracle.on_session(self.name)
        while True:
            try:
                if self._ordered:
                    async with node.subscribe(self.topic, size=_LIVE_SIZE) as events:
                        await self._read_on(node, events)
                else:
                    async with node.subscribe(self.topic, size=_LIVE_SIZE, ordered=False) as arriving:
                        await self._read_on(node, arriving)
                    return
            except GrapevineError:
                self._seen = None
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    return  # it was to end, and the disk refused while it left
                await asyncio.sleep(_AGAIN_S)

    async def _read_on(self, node: Node, events: AsyncIterator[Event | Gap]) -> None:
        topic = node.parts.system.topic(self.topic)
        self._from = await node.parts.store.last_arrival(topic)
        if self._ordered:
            self._first = {place.source: place.next or 1 for place in await node.parts.store.beginnings(topic, None)}
        self._seen = set()
        while True:
            try:
                async for item in events:
                    if isinstance(item, Event):
                        self._seen.add((item.publisher.full, item.epoch, item.sequence))
                    if self._ordered:
                        self._oracle.on_given(self.name, item)
                    elif isinstance(item, Event):
                        self._oracle.on_read(self.name, item)
                    await self._pace.after_event()
                return
            except Lagged as lagged:  # the inbox was closed before it had read everything
                self._oracle.counts["lagged"] += lagged.count

    async def behind(self, node: Node) -> list[int]:
        """Numbers of events that came to the node's store while the reader was there, and that it was not given."""
        if self._seen is None:
            return []
        kept = await node.parts.store.arrivals(node.parts.system.topic(self.topic), self._from, 1_000_000)
        return [
            event.sequence
            for event in kept
            if (event.publisher.full, event.epoch, event.sequence) not in self._seen
            and event.sequence >= self._first.get(event.source, 1)
        ]
