"""Relay paths: which topics are carried to and from which neighbour, as soft state that ends unless it is renewed.

A path has two ends: the neighbour that asked for it, and the next hop that this node asked on its behalf. Each
direction has a budget of its own, or a neighbour's requests would use up what this node may ask of it. What is asked of
a next hop for others takes three quarters of that budget at most, and half of it for any one neighbour, so that a flood
from one side neither crowds out this node's own paths nor those of other neighbours.

A neighbour's topics are an ascending array with ends beside it: 24 bytes a topic, since a gateway may have hundreds of
thousands and renews them all in one go.
"""

from __future__ import annotations

from collections import Counter
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

    def has(self, topic: np.uint64, now: float) -> bool:
        """Whether this one is carried now. Asked for every topic in every round: a fifth of `ends_of`'s time."""
        at = self.topics.searchsorted(topic)
        return bool(at < len(self.topics) and self.topics[at] == topic and self.until[at] > now)

    def renewed(self, topics: Topics, ring_ids: Topics, until: float) -> _Carried:
        """The same, with these topics until then."""
        at, there = find(self.topics, topics)
        self.until[at[there]] = until
        if there.all():
            return self
        at, new = at[~there], topics[~there]
        return _Carried(
            np.insert(self.topics, at, new),
            np.insert(self.ring_ids, at, ring_ids[~there]),
            np.insert(self.until, at, until),
        )


_NOTHING = _Carried(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.float64))
_Direction = dict[Address, _Carried]


class Relays:
    """The relay paths that pass a node, by neighbour and topic; at most so many of one neighbour each way."""

    def __init__(self, ring_ids: RingIds, most: int) -> None:
        self._ring_ids, self._most = ring_ids, most
        self._from: _Direction = {}  # what neighbours asked for
        self._to: _Direction = {}  # what next hops were asked for
        self._passed_on: Counter[tuple[Address, Address]] = Counter()  # topics asked of a hop for a neighbour, lately

    def exceeds(self, node: Address, topics: Topics) -> bool:
        """Whether a neighbour asks for more topics than are carried for one; `join` refuses the surplus."""
        carried = self._from.get(node, _NOTHING)
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
        carried = self._from.get(node, _NOTHING)
        is_new, room = self._new(carried, topics), self._room(carried)
        if is_new.sum() > room:
            topics = topics[~is_new | (np.cumsum(is_new) <= room)]
        renewed = np.zeros(len(topics), np.bool_)
        for direction in (self._from, self._to):
            for other, theirs in direction.items():
                if other != node:
                    renewed |= theirs.ends_of(topics) > recent
        at, there = find(carried.topics, topics)
        ring_ids = np.empty(len(topics), np.uint64)
        ring_ids[there] = carried.ring_ids[at[there]]
        ring_ids[~there] = self._ring_ids(topics[~there])
        self._from[node] = carried.renewed(topics, ring_ids, until)
        return topics[~renewed], ring_ids[~renewed]

    def ask(self, hop: Address, topics: Topics, ring_ids: Topics, until: float, origin: Address | None) -> Topics:
        """A next hop is to carry these for `origin` (None: for this node itself); returns those to ask it for."""
        carried = self._to.get(hop, _NOTHING)
        if origin is not None:
            is_new = self._new(carried, topics)
            room = min(self._most * 3 // 4 - len(carried.topics), self._most // 2 - self._passed_on[hop, origin])
            taken = ~is_new | (np.cumsum(is_new) <= room)
            topics, ring_ids = topics[taken], ring_ids[taken]
            self._passed_on[hop, origin] += int(is_new[taken].sum())
        if len(topics):
            self._to[hop] = carried.renewed(topics, ring_ids, until)
        return topics

    def drop(self, node: Address) -> None:
        """The neighbour is gone, and with it all paths that lead there."""
        self._from.pop(node, None)
        self._to.pop(node, None)

    def expire(self, now: float) -> None:
        """End the paths that were not renewed in time. Called once a round."""
        for direction in (self._from, self._to):
            for node, carried in list(direction.items()):
                live = carried.until > now
                if not live.any():
                    del direction[node]
                elif not live.all():
                    direction[node] = _Carried(carried.topics[live], carried.ring_ids[live], carried.until[live])
        lately = {way: count // 2 for way, count in self._passed_on.items() if way[0] in self._to}
        self._passed_on = Counter({way: count for way, count in lately.items() if count})

    def of(self, now: float, topic: int) -> list[Address]:
        """The neighbours to and from which a topic's events are carried."""
        wanted = np.uint64(topic)
        found = [
            node
            for direction in (self._from, self._to)
            for node, carried in direction.items()
            if carried.has(wanted, now)
        ]
        return list(dict.fromkeys(found))

    def topics(self, now: float) -> set[int]:
        """All topics that are carried for somebody."""
        found: set[int] = set()
        for carried in (*self._from.values(), *self._to.values()):
            found.update(carried.topics[carried.until > now].tolist())
        return found
