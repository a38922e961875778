"""Who got what, and when: counted from what was ordered and what applications read, not from nodes' own claims."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class _Published:
    topic: int
    publisher: int
    begun_us: int | None = None  # known once it is confirmed
    is_open: bool = True  # somebody may still confirm it
    arrived: dict[int, int] = field(default_factory=dict)  # time by node


class Tally:
    """Events by number, and the first arrival of each at every subscriber but its publisher."""

    def __init__(self, subscribers_of: Callable[[int], Iterable[int]]) -> None:
        self._subscribers_of = subscribers_of
        self._subscribers: dict[int, frozenset[int]] = {}
        self._events: dict[int, _Published] = {}
        self._delays_ms = array("d")
        self._owed: dict[tuple[int, int], int] = {}  # since when, by event and node (`fault_over`)
        self._recoveries_ms = array("d")
        self._in_session: set[tuple[int, int, int]] = set()
        self.refused = 0  # events without a path when they were published
        self.arrivals = 0
        self.duplicates = 0  # an application was given an event twice
        self.strays = 0  # an event came to a node that did not subscribe, or one that nobody published

    def subscribers(self, topic: int) -> frozenset[int]:
        """Nodes that subscribe to a topic, and are to get its events."""
        if topic not in self._subscribers:
            self._subscribers[topic] = frozenset(int(node) for node in self._subscribers_of(topic))
        return self._subscribers[topic]

    def ordered(self, event: int, topic: int, publisher: int) -> None:
        """A node is told to publish an event; it counts once the node has confirmed it."""
        self._events[event] = _Published(topic, publisher)

    def confirmed(self, event: int, begun_us: int, error: str | None, *, is_kept: bool = True) -> None:
        """It has; or it keeps the event until it finds a path: then the event still has to arrive.

        What the node could not keep, because its disk refused, was not promised to anybody.
        """
        published = self._events[event]
        published.is_open = False
        if not is_kept:
            return
        published.begun_us = begun_us
        self.refused += error is not None
        for time_us in published.arrived.values():
            self._delays_ms.append((time_us - begun_us) / 1e3)

    def arrived(self, event: int, node: int, time_us: int, session: int = 0) -> None:
        """An application has read it; a node that was restarted reads again what it had read before."""
        published = self._events.get(event)
        if published is None or node not in self.subscribers(published.topic):
            self.strays += 1
            return
        if (event, node, session) in self._in_session:
            self.duplicates += 1
            return
        self._in_session.add((event, node, session))
        if node == published.publisher or node in published.arrived:
            return
        self.arrivals += 1
        published.arrived[node] = time_us
        if (since_us := self._owed.pop((event, node), None)) is not None:
            self._recoveries_ms.append((time_us - since_us) / 1e3)
        if published.begun_us is not None:
            self._delays_ms.append((time_us - published.begun_us) / 1e3)

    def abandon(self, nodes: Set[int]) -> None:
        """These nodes were killed: what they did not confirm was not promised, and need not arrive."""
        for published in self._events.values():
            if published.publisher in nodes:
                published.is_open = False

    def fault_over(self, nodes: Set[int], now_us: int) -> None:
        """From now on these nodes can get what they missed: how long that takes is measured, delivery by delivery."""
        for event, published in self._events.items():
            if published.begun_us is not None:
                late = self.subscribers(published.topic) & nodes - published.arrived.keys() - {published.publisher}
                self._owed.update({(event, node): now_us for node in late})

    @property
    def waiting(self) -> int:
        """How many events were ordered and may still be confirmed."""
        return sum(published.is_open for published in self._events.values())

    def delivered(self, down: Set[int] = frozenset()) -> tuple[int, int]:
        """Deliveries, and how many there should be: of confirmed events, to subscribers that are up."""
        found = expected = 0
        for published in self._events.values():
            if published.begun_us is None:
                continue
            wanted = self.subscribers(published.topic)
            if down:
                wanted = wanted - down
                found += sum(node in wanted for node in published.arrived)
            else:
                found += len(published.arrived)
            expected += len(wanted) - (published.publisher in wanted)
        return found, expected

    def missing(self, down: Set[int] = frozenset(), most: int = 20) -> list[tuple[int, int, int]]:
        """Some (event, topic, node) that should have arrived and have not."""
        lost: list[tuple[int, int, int]] = []
        for event, published in self._events.items():
            if published.begun_us is not None:
                late = self.subscribers(published.topic) - down - {published.publisher} - published.arrived.keys()
                lost += [(event, published.topic, node) for node in sorted(late)]
            if len(lost) >= most:
                break
        return lost[:most]

    @property
    def published(self) -> int:
        """How many events were confirmed by their publishers."""
        return sum(published.begun_us is not None for published in self._events.values())

    def delay_ms(self, *quantiles: float) -> list[float | None]:
        """Quantiles of the time from the order to publish to the application."""
        return _quantiles(self._delays_ms, quantiles)

    def recovery_ms(self, *quantiles: float) -> list[float | None]:
        """Quantiles of the time from the end of a fault to deliveries that were missing then (`fault_over`)."""
        return _quantiles(self._recoveries_ms, quantiles)


def _quantiles(found_ms: array[float], quantiles: Sequence[float]) -> list[float | None]:
    if not found_ms:
        return [None] * len(quantiles)
    return [float(found) for found in np.quantile(np.frombuffer(found_ms), quantiles)]
