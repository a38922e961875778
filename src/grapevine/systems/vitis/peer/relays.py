"""Relay paths: which topics are carried to and from which neighbour, as soft state that ends unless it is renewed.

A neighbour's topics are an ascending array with ends beside it: 24 bytes a topic, since a gateway may have hundreds of
thousands and renews them all in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import find
from grapevine.systems.gossip.messages import Topics

RingIds = Callable[[Topics], Topics]  # of topics: where on the ring their rendezvous is


class _Carried(NamedTuple):
    """What is carried to and from one neighbour."""

    topics: Topics  # ascending
    ring_ids: Topics
    until: NDArray[np.float64]  # when each path ends, unless it is renewed

    def ends_of(self, topics: Topics) -> NDArray[np.float64]:
        """Until when each of these is carried; minus infinity: it is not."""
        ends = np.full(len(topics), -np.inf)
        at, there = find(self.topics, topics)
        ends[there] = self.until[at[there]]
        return ends


_NOTHING = _Carried(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.float64))


class Relays:
    """The relay paths that pass a node, by neighbour and topic."""

    def __init__(self, ring_ids: RingIds, most: int) -> None:
        self._ring_ids, self._most = ring_ids, most
        self._carried: dict[Address, _Carried] = {}

    def exceeds(self, node: Address, topics: Topics) -> bool:
        """Whether a neighbour asks for more topics than are carried for one; `join` refuses the surplus."""
        carried = self._carried.get(node, _NOTHING)
        return len(topics) + len(carried.topics) > self._most and self._new(carried, topics).sum() > self._room(carried)

    @staticmethod
    def _new(carried: _Carried, topics: Topics) -> NDArray[np.bool_]:
        return np.asarray(carried.ends_of(topics) == -np.inf)

    def _room(self, carried: _Carried) -> int:
        return self._most - len(carried.topics)

    def join(self, node: Address, topics: Topics, until: float, recent: float) -> tuple[Topics, Topics]:
        """A neighbour asks for these (ascending) topics; returns those whose path is to be extended, with ring ids.

        It is not where it was renewed after `recent` for another neighbour: two gateways of a cluster may ask in the
        same moment. What exceeds the most that is carried for one neighbour is refused.
        """
        carried = self._carried.get(node, _NOTHING)
        is_new, room = self._new(carried, topics), self._room(carried)
        if is_new.sum() > room:
            topics = topics[~is_new | (np.cumsum(is_new) <= room)]
        renewed = np.zeros(len(topics), np.bool_)
        for other, theirs in self._carried.items():
            if other != node:
                renewed |= theirs.ends_of(topics) > recent
        ring_ids = self.carry(node, topics, until)
        return topics[~renewed], ring_ids[~renewed]

    def carry(self, node: Address, topics: Topics, until: float, ring_ids: Topics | None = None) -> Topics:
        """Exchange the events of these topics with a neighbour until then; returns their ring ids."""
        carried = self._carried.get(node, _NOTHING)
        at, there = find(carried.topics, topics)
        carried.until[at[there]] = until
        if ring_ids is None:
            ring_ids = np.empty(len(topics), np.uint64)
            ring_ids[there] = carried.ring_ids[at[there]]
            ring_ids[~there] = self._ring_ids(topics[~there])
        if not there.all():
            at, new = at[~there], topics[~there]
            self._carried[node] = _Carried(
                np.insert(carried.topics, at, new),
                np.insert(carried.ring_ids, at, ring_ids[~there]),
                np.insert(carried.until, at, until),
            )
        return ring_ids

    def drop(self, node: Address) -> None:
        """The neighbour is gone, and with it all paths that lead there."""
        self._carried.pop(node, None)

    def expire(self, now: float) -> None:
        """End the paths that were not renewed in time."""
        for node, carried in list(self._carried.items()):
            live = carried.until > now
            if not live.any():
                del self._carried[node]
            elif not live.all():
                self._carried[node] = _Carried(carried.topics[live], carried.ring_ids[live], carried.until[live])

    def of(self, now: float, topic: int) -> list[Address]:
        """The neighbours to and from which a topic's events are carried."""
        wanted = np.array([topic], np.uint64)
        return [node for node, carried in self._carried.items() if carried.ends_of(wanted)[0] > now]

    def topics(self, now: float) -> set[int]:
        """All topics that are carried for somebody."""
        found: set[int] = set()
        for carried in self._carried.values():
            found.update(carried.topics[carried.until > now].tolist())
        return found
