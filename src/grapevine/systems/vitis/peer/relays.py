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
from grapevine.systems.vitis.peer.interests import find
from grapevine.systems.vitis.peer.messages import Topics

Keys = Callable[[Topics], Topics]  # places of topics on the ring


class _Carried(NamedTuple):
    topics: Topics
    keys: Topics
    until: NDArray[np.float64]

    def ends_of(self, topics: Topics) -> NDArray[np.float64]:
        """Until when each of these is carried; minus infinity: it is not."""
        ends = np.full(len(topics), -np.inf)
        at, there = find(self.topics, topics)
        ends[there] = self.until[at[there]]
        return ends


_NOTHING = _Carried(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.float64))


class Relays:
    """The paths that pass a node."""

    def __init__(self, keys: Keys, most: int) -> None:
        self._keys, self._most = keys, most
        self._carried: dict[Address, _Carried] = {}

    def exceeds(self, node: Address, topics: Topics) -> bool:
        """Whether a neighbour asks for more than is carried for one."""
        carried = self._carried.get(node, _NOTHING)
        return len(topics) + len(carried.topics) > self._most and self._new(carried, topics).sum() > self._room(carried)

    @staticmethod
    def _new(carried: _Carried, topics: Topics) -> NDArray[np.bool_]:
        return np.asarray(carried.ends_of(topics) == -np.inf)

    def _room(self, carried: _Carried) -> int:
        return self._most - len(carried.topics)

    def join(self, node: Address, topics: Topics, until: float, recent: float) -> tuple[Topics, Topics]:
        """A neighbour asks for these (ascending) topics; those whose path is to be extended, and their keys.

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
        keys = self.carry(node, topics, until)
        return topics[~renewed], keys[~renewed]

    def carry(self, node: Address, topics: Topics, until: float, keys: Topics | None = None) -> Topics:
        """Exchange the events of these topics with a neighbour until then; returns their places on the ring."""
        carried = self._carried.get(node, _NOTHING)
        at, there = find(carried.topics, topics)
        carried.until[at[there]] = until
        if keys is None:
            keys = np.empty(len(topics), np.uint64)
            keys[there] = carried.keys[at[there]]
            keys[~there] = self._keys(topics[~there])
        if not there.all():
            at, new = at[~there], topics[~there]
            self._carried[node] = _Carried(
                np.insert(carried.topics, at, new),
                np.insert(carried.keys, at, keys[~there]),
                np.insert(carried.until, at, until),
            )
        return keys

    def drop(self, node: Address) -> None:
        """The neighbour is gone."""
        self._carried.pop(node, None)

    def expire(self, now: float) -> None:
        """Paths that were not renewed end."""
        for node, carried in list(self._carried.items()):
            live = carried.until > now
            if not live.any():
                del self._carried[node]
            elif not live.all():
                self._carried[node] = _Carried(carried.topics[live], carried.keys[live], carried.until[live])

    def of(self, now: float, topic: int) -> list[Address]:
        """With whom a topic's events are exchanged."""
        wanted = np.array([topic], np.uint64)
        return [node for node, carried in self._carried.items() if carried.ends_of(wanted)[0] > now]

    def topics(self, now: float) -> set[int]:
        """All that are carried."""
        found: set[int] = set()
        for carried in self._carried.values():
            found.update(carried.topics[carried.until > now].tolist())
        return found
