"""A node's own topics, and the log of their changes, from which others get only what is new to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.messages import TOPICS_A_PART, WORDS, Profile, Topics, pack, parts

LOGGED = TOPICS_A_PART  # changes; so what changed fits one message
_FEW = 1_000


def total(topics: Topics) -> int:
    """A sum that wraps around: it tells two sets of the same size apart."""
    return int(topics.sum(dtype=np.uint64))


def array_of(topics: Iterable[int]) -> Topics:
    """Topics, ascending."""
    made = np.fromiter(topics, np.uint64)
    made.sort()
    return made


def find(topics: Topics, wanted: Topics) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the wanted topics are among these ascending ones, or would be; and whether they are there."""
    at = topics.searchsorted(wanted)
    there = at < len(topics)
    there[there] = topics[at[there]] == wanted[there]
    return at, there


def check_topic(topic: int) -> None:
    """Topics are words of 64 bits."""
    if not 0 <= topic < WORDS:
        raise UsageError(f"topic {topic}: topics are numbers from 0 to 2**64 - 1")


class Interests:
    """Topics at a version; every change is a new one."""

    def __init__(self, topics: Iterable[int], version: int, most: int) -> None:
        self.topics: set[int] = set()
        self._most = most
        for topic in topics:
            self._check(topic)
            self.topics.add(topic)
        self.version = version
        self._log: deque[int] = deque(maxlen=LOGGED)  # the topic that each of the last versions added or removed
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

    def hold(self, topics: Topics) -> NDArray[np.bool_]:
        """Which of these are there. A few are looked up one by one, where sorting all anew would take longer."""
        if self._array is None and len(topics) < _FEW:
            return np.fromiter((topic in self.topics for topic in topics.tolist()), np.bool_, len(topics))
        return find(self.array(), topics)[1]

    def add(self, topic: int) -> None:
        """Want it."""
        if topic not in self.topics:
            self._check(topic)
            self.topics.add(topic)
            self._log_change(topic)

    def remove(self, topic: int) -> None:
        """Want it no more."""
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

    def told_to(self, node: Address, version: int) -> list[Profile]:
        """The profile of this node, for somebody who has this version of it."""
        changes = self.changes_since(version) if version else None
        mine = self.array()
        if changes is None or sum(map(len, changes)) > len(mine):
            return whole_profile(node, self.version, mine)
        added, removed = map(pack, changes)
        return [Profile(node, self.version, version, 0, 1, len(mine), total(mine), added, removed)]


def whole_profile(node: Address, version: int, topics: Topics) -> list[Profile]:
    """All topics of a node, in parts."""
    some, check = list(parts(topics, TOPICS_A_PART)), total(topics)
    return [Profile(node, version, 0, i, len(some), len(topics), check, pack(part)) for i, part in enumerate(some)]
