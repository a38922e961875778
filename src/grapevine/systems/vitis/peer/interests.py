"""A node's own topics, and the log of their latest changes, so that others can be sent what is new to them alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.messages import TOPICS_A_PART, WORDS, Profile, Topics, pack, parts

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
    """The topics that a node subscribes to, and their version, which grows by one with every change."""

    def __init__(self, topics: Iterable[int], version: int, most: int) -> None:
        self.topics: set[int] = set()
        self._most = most
        for topic in topics:
            self._check(topic)
            self.topics.add(topic)
        self.version = version
        self._log: deque[int] = deque(maxlen=LOGGED)  # what each of the last versions added or removed
        self._array: Topics | None = None

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

    def add(self, topic: int) -> None:
        """Subscribe to a topic; UsageError if there are too many. Nothing happens if it is there already."""
        if topic not in self.topics:
            self._check(topic)
            self.topics.add(topic)
            self._log_change(topic)

    def remove(self, topic: int) -> None:
        """Unsubscribe from a topic; nothing happens if it is not there."""
        if topic in self.topics:
            self.topics.discard(topic)
            self._log_change(topic)

    def _log_change(self, topic: int) -> None:
        self.version += 1
        self._log.append(topic)
        self._array = None

    def changes_since(self, version: int) -> tuple[Topics, Topics] | None:
        """Topics that were touched since: those that are there now, and those that are not. None: it is too long ago.

        A topic that went and came back is among the first, so that who follows starts anew with it.
        """
        steps = self.version - version
        if not 0 <= steps <= len(self._log):
            return None
        touched = set(islice(reversed(self._log), steps))
        return array_of(touched & self.topics), array_of(touched - self.topics)

    def profile_for(self, me: Address, version: int) -> list[Profile]:
        """This node's profile for somebody who has this version of it: what changed, or all if that is shorter."""
        changes = self.changes_since(version) if version else None
        mine = self.array()
        if changes is None or sum(map(len, changes)) > len(mine):
            return whole_profile(me, self.version, mine)
        added, removed = map(pack, changes)
        return [Profile(me, self.version, version, 0, 1, len(mine), checksum(mine), added, removed)]


def whole_profile(node: Address, version: int, topics: Topics) -> list[Profile]:
    """All topics of a node, in as many parts as they need."""
    some, total = list(parts(topics, TOPICS_A_PART)), checksum(topics)
    return [Profile(node, version, 0, i, len(some), len(topics), total, pack(part)) for i, part in enumerate(some)]
