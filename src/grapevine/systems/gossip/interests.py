"""A node's own topics, and the log of their latest changes, so that others can be sent what is new to them alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.messages import TOPICS_A_PART, WORDS, Profile, Topics, pack, parts
from grapevine.systems.gossip.weights import ONE, Weights, pack_weights

LOGGED = TOPICS_A_PART  # changes that are remembered; so what changed fits one message
_FEW = 1_000  # topics that are looked up one by one


def checksum(topics: Topics) -> int:
    """The sum of the topics, modulo 2**64: it tells sets of the same size apart, but not against a clever enemy."""
    return int(topics.sum(dtype=np.uint64))


def array_of(topics: Iterable[int]) -> Topics:
    """Topics as rules and messages have them: an ascending array."""
    made = np.fromiter(topics, np.uint64)
    made.sort()
    return made


def find(topics: Topics, wanted: Topics) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """At which index of these ascending topics the wanted ones are, or would be; and whether they are there."""
    at = topics.searchsorted(wanted)
    there = at < len(topics)
    there[there] = topics[at[there]] == wanted[there]
    return at, there


def check_topic(topic: int) -> None:
    """UsageError if this cannot be a topic: topics are words of 64 bits."""
    if not 0 <= topic < WORDS:
        raise UsageError(f"topic {topic}: topics are numbers from 0 to 2**64 - 1")


class Interests:
    """The topics that a node subscribes to, what they weigh, and their version, which grows by one with every change.

    `weights` has those of topics that do not weigh `ONE`; None: all weigh alike for good, and nobody is told.
    """

    def __init__(
        self, topics: Iterable[int], version: int, most: int, weights: Mapping[int, int] | None = None
    ) -> None:
        self.topics: set[int] = set()
        self._most = most
        for topic in topics:
            self._check(topic)
            self.topics.add(topic)
        self.version = version
        self._log: deque[int] = deque(maxlen=LOGGED)  # what each of the last versions added or removed
        self._array: Topics | None = None
        self._weights = None if weights is None else dict(weights)
        self._reweighed: deque[bool] = deque(maxlen=LOGGED)  # beside the log: whether only the weight is another
        self._weight_array: Weights | None = None

    def _check(self, topic: int) -> None:
        check_topic(topic)
        if len(self.topics) >= self._most:
            raise UsageError(f"topic {topic}: there are {self._most:,} subscriptions already; raise most_topics")

    def array(self) -> Topics:
        """The topics, ascending; the same object until they change."""
        if self._array is None:
            self._array = array_of(self.topics)
        return self._array

    def contains(self, topics: Topics) -> NDArray[np.bool_]:
        """Which of these the node subscribes to. A few are looked up one by one: sorting all anew would take longer."""
        if self._array is None and len(topics) < _FEW:
            return np.fromiter((topic in self.topics for topic in topics.tolist()), np.bool_, len(topics))
        return find(self.array(), topics)[1]

    def weights(self) -> Weights | None:
        """What the topics of `array` weigh; the same object until that changes. None: all alike."""
        if self._weights is not None and self._weight_array is None:
            weigh = self._weights.get
            self._weight_array = np.fromiter((weigh(topic, ONE) for topic in self.array().tolist()), np.int64)
        return self._weight_array

    def weight(self, topic: int) -> int:
        """What a topic weighs."""
        return self._weights.get(topic, ONE) if self._weights is not None else ONE

    def weigh(self, topic: int, weight: int) -> None:
        """A topic weighs so much from now on; nothing happens if it does already, is not there, or all weigh alike."""
        if self._weights is not None and topic in self.topics and self.weight(topic) != weight:
            self._weights[topic] = weight
            self._log_change(topic, reweighed=True)

    def add(self, topic: int, weight: int = ONE) -> None:
        """Subscribe to a topic; UsageError if there are too many. Nothing happens if it is there already."""
        if topic not in self.topics:
            self._check(topic)
            self.topics.add(topic)
            if self._weights is not None:
                self._weights[topic] = weight
            self._log_change(topic)

    def remove(self, topic: int) -> None:
        """Unsubscribe from a topic; nothing happens if it is not there."""
        if topic in self.topics:
            self.topics.discard(topic)
            if self._weights is not None:
                self._weights.pop(topic, None)
            self._log_change(topic)

    def _log_change(self, topic: int, *, reweighed: bool = False) -> None:
        self.version += 1
        self._log.append(topic)
        self._reweighed.append(reweighed)
        self._weight_array = None
        if not reweighed:
            self._array = None

    def changes_since(self, version: int) -> tuple[Topics, Topics] | None:
        """Topics that came or went since: those that are there now, and those that are not. None: it is too long ago.

        A topic that went and came back is among the first, so that who follows starts anew with it.
        """
        if not 0 <= self.version - version <= len(self._log):
            return None
        touched = self._logged_since(version, reweighed=False)
        return array_of(touched & self.topics), array_of(touched - self.topics)

    def _logged_since(self, version: int, *, reweighed: bool) -> set[int]:
        """Topics in the log since a version that came or went, or that weigh something else."""
        log = zip(reversed(self._log), reversed(self._reweighed), strict=True)
        return {topic for topic, which in islice(log, self.version - version) if which == reweighed}

    def profile_for(self, me: Address, version: int) -> list[Profile]:
        """This node's profile for somebody who has this version of it: what changed, or all if that is shorter."""
        changes = self.changes_since(version) if version else None
        mine, weights = self.array(), self.weights()
        if changes is None:
            return whole_profile(me, self.version, mine, weights)
        added, removed = changes
        rated = np.setdiff1d(array_of(self._logged_since(version, reweighed=True) & self.topics), added)
        if len(added) + len(removed) + len(rated) > len(mine):
            return whole_profile(me, self.version, mine, weights)
        told = np.concatenate([added, rated])
        rates = b"" if weights is None else pack_weights(weights[find(mine, told)[0]])
        head = me, self.version, version, 0, 1, len(mine), checksum(mine)
        return [Profile(*head, pack(added), pack(removed), pack(rated), rates)]


def whole_profile(node: Address, version: int, topics: Topics, weights: Weights | None = None) -> list[Profile]:
    """All topics of a node, and what they weigh unless that is all the same, in as many parts as they need."""
    some, total = list(parts(topics, TOPICS_A_PART)), checksum(topics)
    rates = [b""] * len(some) if weights is None else [pack_weights(part) for part in parts(weights, TOPICS_A_PART)]
    return [
        Profile(node, version, 0, i, len(some), len(topics), total, pack(part), rates=rates[i])
        for i, part in enumerate(some)
    ]
