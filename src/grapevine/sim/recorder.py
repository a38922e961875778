"""What became of events in virtual time: an observer that counts as the tables of all runs want it.

The definitions are those of `sim/dissemination` for rounds, and `pipeline/live_events` for live runs follows them too:
wanted is the first copy at an interested node, duplicate every further one, unwanted any copy at another node.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.systems.contracts.peer import Address, Deliver

Position = tuple[float, ...]


@dataclass(slots=True)
class Published:
    """A published event, and what became of it so far: the counts of its row in the `events` table."""

    time: float  # of publication, virtual seconds
    topic: int
    publisher: Address
    counted: AbstractSet[Address]  # subscribers that it should reach
    way: dict[Address, tuple[int, float]] = field(default_factory=dict)  # who has it: hops, and ms in coordinates
    reached: int = 0  # of the counted subscribers
    wanted: int = 0
    duplicate: int = 0
    unwanted: int = 0
    relays: int = 0  # nodes without interest that have it


class Recorder:
    """Watches the events of a run (an `Observer`). `publish` is called by whoever lets a peer publish.

    `interested` has the subscribers of every topic, `latency_s` the one-way delay between two nodes at a time,
    `position_of` a node's network coordinates (None: it has none), `observers` the nodes that never leave, `distance`
    how far apart two coordinates are.
    """

    def __init__(
        self,
        interested: Sequence[AbstractSet[Address]],
        latency_s: Callable[[float, Address, Address], float],
        position_of: Callable[[Address], Position | None],
        observers: AbstractSet[Address],
        distance: Callable[[Position, Position], float] = math.dist,
    ) -> None:
        self.events: list[Published] = []
        self.load: dict[str, Counter[Address]] = {name: Counter() for name in ("wanted", "duplicate", "unwanted")}
        self._interested, self._latency_s, self._position_of = interested, latency_s, position_of
        self._observers, self._apart = observers, distance
        self._index: dict[tuple[int, int], int] = {}  # (topic, sequence) → position in `events`
        self._published: Counter[int] = Counter()  # events by topic
        self._whole = {name: array("i") for name in ("event", "node", "hops", "pulled", "observer")}
        self._real = {name: array("d") for name in ("delay_ms", "direct_ms", "coordinate_ms", "path_ms")}

    def publish(self, now: float, topic: int, publisher: Address, counted: AbstractSet[Address]) -> None:
        """An event is published now, and should reach the nodes `counted`. Peers number a topic's events from 1."""
        self._published[topic] += 1
        self._index[topic, self._published[topic]] = len(self.events)
        self.events.append(Published(now, topic, publisher, counted, {publisher: (0, 0.0)}))

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        """Nothing is done: the engine itself counts messages."""

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
        """Count a copy of an event that arrived, wanted or not, unless `publish` was not told of the event."""
        position = self._index.get((message.topic, message.sequence))
        if position is None:
            return
        event, again = self.events[position], node in self.events[position].way
        if not again:
            hops, length = event.way.get(sender, (0, math.nan))
            event.way[node] = hops + 1, length + self._distance(sender, node)
        if node not in self._interested[message.topic]:
            kind = "unwanted"
            event.unwanted += 1
            event.relays += not again
        elif again:
            kind = "duplicate"
            event.duplicate += 1
        else:
            kind = "wanted"
            event.wanted += 1
        self.load[kind][node] += 1

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        """Count an event that a subscriber's application got: a row of `deliveries`, if the subscriber counts."""
        position = self._index.get((event.topic, event.sequence))
        if position is None or node not in self.events[position].counted:
            return
        published = self.events[position]
        published.reached += 1
        hops, length = published.way[node]
        rows, real = self._whole, self._real
        for name, value in zip(rows, (position, node, hops, event.pulled, node in self._observers), strict=True):
            rows[name].append(value)
        direct = self._latency_s(published.time, published.publisher, node) * 1e3
        apart = self._distance(published.publisher, node)
        for name, ms in zip(real, ((now - published.time) * 1e3, direct, apart, length), strict=True):
            real[name].append(ms)

    def _distance(self, a: Address, b: Address) -> float:
        at, there = self._position_of(a), self._position_of(b)
        return self._apart(at, there) if at and there else math.nan

    def restart_load(self) -> None:
        """Forget the loads of nodes counted so far: their measurement begins now."""
        for counts in self.load.values():
            counts.clear()

    def deliveries(self) -> dict[str, NDArray[Any]]:
        """Columns of the `deliveries` table, in the order of delivery; NaN where a system has no coordinates."""
        columns: dict[str, NDArray[Any]] = {name: np.array(values) for name, values in self._real.items()}
        columns |= {name: np.array(values, np.int32) for name, values in self._whole.items()}
        return columns | {name: columns[name].astype(np.bool_) for name in ("pulled", "observer")}

    def event_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the `events` table, a row per event in the order of publication."""
        deliveries = self.deliveries()
        ends = np.cumsum(np.bincount(deliveries["event"], minlength=len(self.events)))
        hops = np.split(deliveries["hops"][np.argsort(deliveries["event"], kind="stable")], ends)[: len(self.events)]
        rows = [
            (
                *(int(e.time), e.topic, e.publisher, 1.0, len(e.counted)),
                *(e.reached, e.wanted, e.duplicate, e.unwanted, e.relays),
                *(e.wanted + e.duplicate + e.unwanted, e.wanted + e.relays),  # as if it was announced and pulled
                *_ranks(np.sort(way)),
            )
            for e, way in zip(self.events, hops, strict=True)
        ]
        names = "round topic publisher rate subscribers reached wanted duplicate unwanted relays ids payloads"
        names += " hops_sum hops_p50 hops_p95 hops_p99 hops_max"
        columns = zip(*rows, strict=True) if rows else [()] * len(names.split())
        return {name: np.array(values) for name, values in zip(names.split(), columns, strict=True)}


def _ranks(hops: NDArray[np.int32]) -> tuple[int, int, int, int, int]:
    """Sum, nearest-rank percentiles and maximum of sorted hops; zeros when nobody was reached."""
    if len(hops) == 0:
        return 0, 0, 0, 0, 0
    p50, p95, p99 = (int(hops[math.ceil(share * len(hops)) - 1]) for share in (0.5, 0.95, 0.99))
    return int(hops.sum()), p50, p95, p99, int(hops[-1])
