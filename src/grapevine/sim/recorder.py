"""What became of events in virtual time: an observer that counts as the common tables want it."""

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
    """An event on its way."""

    time: float
    topic: int
    publisher: Address
    counted: AbstractSet[Address]  # subscribers that it should reach
    way: dict[Address, tuple[int, float]] = field(default_factory=dict)  # who has it: hops, and ms in coordinates
    reached: int = 0
    wanted: int = 0
    duplicate: int = 0
    unwanted: int = 0
    relays: int = 0


class Recorder:
    """Watches events; `interested` has the subscribers of every topic."""

    def __init__(
        self,
        interested: Sequence[AbstractSet[Address]],
        latency_s: Callable[[float, Address, Address], float],
        position_of: Callable[[Address], Position | None],
        observers: AbstractSet[Address],
    ) -> None:
        self.events: list[Published] = []
        self.load: dict[str, Counter[Address]] = {name: Counter() for name in ("wanted", "duplicate", "unwanted")}
        self._interested, self._latency_s, self._position_of = interested, latency_s, position_of
        self._observers = observers
        self._index: dict[tuple[int, int], int] = {}  # by topic and sequence
        self._count: Counter[int] = Counter()
        self._whole = {name: array("i") for name in ("event", "node", "hops", "pulled", "observer")}
        self._real = {name: array("d") for name in ("delay_ms", "direct_ms", "coordinate_ms", "path_ms")}

    def publish(self, now: float, topic: int, publisher: Address, counted: AbstractSet[Address]) -> None:
        """An event is published; peers number a topic's events from 1."""
        self._count[topic] += 1
        self._index[topic, self._count[topic]] = len(self.events)
        self.events.append(Published(now, topic, publisher, counted, {publisher: (0, 0.0)}))

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        """Nothing to count: the engine does."""

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
        """A copy of an event arrived, wanted or not."""
        number = self._index.get((message.topic, message.sequence))
        if number is None:
            return
        event, again = self.events[number], node in self.events[number].way
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
        """A subscriber has it."""
        number = self._index.get((event.topic, event.sequence))
        if number is None or node not in self.events[number].counted:
            return
        published = self.events[number]
        published.reached += 1
        hops, length = published.way[node]
        rows, real = self._whole, self._real
        for name, value in zip(rows, (number, node, hops, event.pulled, node in self._observers), strict=True):
            rows[name].append(value)
        direct = self._latency_s(published.time, published.publisher, node) * 1e3
        apart = self._distance(published.publisher, node)
        for name, ms in zip(real, ((now - published.time) * 1e3, direct, apart, length), strict=True):
            real[name].append(ms)

    def _distance(self, a: Address, b: Address) -> float:
        at, there = self._position_of(a), self._position_of(b)
        return math.dist(at, there) if at and there else math.nan

    def restart_load(self) -> None:
        """The measurement of loads begins now."""
        for counts in self.load.values():
            counts.clear()

    def deliveries(self) -> dict[str, NDArray[Any]]:
        """Columns of the `deliveries` table; NaN where a system has no coordinates."""
        columns: dict[str, NDArray[Any]] = {name: np.array(values) for name, values in self._real.items()}
        columns |= {name: np.array(values, np.int32) for name, values in self._whole.items()}
        return columns | {name: columns[name].astype(np.bool_) for name in ("pulled", "observer")}

    def event_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the `events` table."""
        told = self.deliveries()
        ends = np.cumsum(np.bincount(told["event"], minlength=len(self.events)))
        hops = np.split(told["hops"][np.argsort(told["event"], kind="stable")], ends)[: len(self.events)]
        rows = [
            (
                *(int(e.time), e.topic, e.publisher, 1.0, len(e.counted)),
                *(e.reached, e.wanted, e.duplicate, e.unwanted, e.relays),
                *_ranks(np.sort(way)),
            )
            for e, way in zip(self.events, hops, strict=True)
        ]
        names = "round topic publisher rate subscribers reached wanted duplicate unwanted relays"
        names += " hops_sum hops_p50 hops_p95 hops_p99 hops_max"
        columns = zip(*rows, strict=True) if rows else [()] * len(names.split())
        return {name: np.array(values) for name, values in zip(names.split(), columns, strict=True)}


def _ranks(hops: NDArray[np.int32]) -> tuple[int, int, int, int, int]:
    """Sum, nearest-rank percentiles and maximum of sorted hops; zeros when nobody was reached."""
    if len(hops) == 0:
        return 0, 0, 0, 0, 0
    p50, p95, p99 = (int(hops[math.ceil(share * len(hops)) - 1]) for share in (0.5, 0.95, 0.99))
    return int(hops.sum()), p50, p95, p99, int(hops[-1])
