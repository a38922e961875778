"""Profiles of other nodes: those that are known, and those that were asked for and are coming in parts.

Descriptors say which version a profile has; who lacks it asks. A stranger may answer anything, so a profile is taken
only from whom it was asked, and only when its parts make the set that they announce.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

import numpy as np

from grapevine.kernels.csr import Columns
from grapevine.kernels.overlap import common, common_positions
from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.interests import find, total
from grapevine.systems.vitis.peer.messages import TOPICS_A_PART, Profile, Topics, unpack

_SMALL = 5_000  # topics
_KEPT = 16  # times the most topics of a node: of all known profiles together
_COMING = 4  # the same for those that are coming


class Known(NamedTuple):
    """A profile."""

    version: int
    topics: Topics
    first_hand: bool  # the node itself told, or confirmed it


class Shelf:
    """Known profiles, and what they have in common with this node's own topics."""

    def __init__(self, most_topics: int) -> None:
        self._most = _KEPT * most_topics
        self._known: dict[Address, Known] = {}
        self._size = 0
        self._near: set[Address] = set()
        self._own: Topics = np.empty(0, np.uint64)
        self._common: dict[Address, int] = {}
        self._places: dict[Address, Columns] = {}
        self._sets: dict[Address, frozenset[int]] = {}  # of small profiles: a look at one costs a tenth

    def __getitem__(self, node: Address) -> Known | None:
        return self._known.get(node)

    def version(self, node: Address) -> int:
        """Of the known profile; 0: none."""
        known = self._known.get(node)
        return known.version if known else 0

    def has(self, node: Address, version: int) -> bool:
        """Whether this version is known, from the node itself: others may have told anything."""
        known = self._known.get(node)
        return known is not None and known.version == version and known.first_hand

    def put(self, node: Address, version: int, topics: Topics, *, first_hand: bool) -> None:
        """It has these topics. When there are too many in all, what came first is forgotten, neighbours' last."""
        self.forget(node)
        self._known[node] = Known(version, topics, first_hand)
        self._size += len(topics)
        while self._size > self._most:
            strangers = (other for other in self._known if other not in self._near)
            self.forget(next(strangers, next(iter(self._known))))

    def forget(self, node: Address) -> None:
        """It is gone, or its profile is wrong."""
        known = self._known.pop(node, None)
        self._common.pop(node, None)
        self._places.pop(node, None)
        self._sets.pop(node, None)
        if known is not None:
            self._size -= len(known.topics)

    def trim(self, known: Container[Address], most: int) -> None:
        """Of nodes that nobody speaks of now, so many profiles stay: samples come round again."""
        unheard = [node for node in self._known if node not in known]
        for node in unheard[: max(len(unheard) - most, 0)]:
            self.forget(node)

    def measure_by(self, own: Topics) -> None:
        """This node's topics, from now on."""
        if own is not self._own:
            self._own = own
            self._common.clear()
            self._places.clear()

    def overlap(self, node: Address) -> tuple[int, int]:
        """How many topics it has in common with this node, and in all; none as long as nobody told."""
        known = self._known.get(node)
        if known is None:
            return 0, 0
        if node not in self._common:
            self._common[node] = common(self._own, known.topics)
        return self._common[node], len(known.topics)

    def places(self, node: Address) -> Columns:
        """Where in this node's topics the common ones are; the same object until either changes."""
        if node not in self._places:
            known = self._known.get(node)
            self._places[node] = common_positions(self._own, known.topics if known else np.empty(0, np.uint64))
        return self._places[node]

    def meet(self, neighbours: Iterable[Address]) -> None:
        """These are the neighbours now: nobody asks for the places of others."""
        self._near = set(neighbours)
        self._places = {node: places for node, places in self._places.items() if node in self._near}

    def shared(self, node: Address, topics: Topics) -> Topics:
        """Those of the topics that the node has."""
        known = self._known.get(node)
        return topics[find(known.topics, topics)[1]] if known else topics[:0]

    def wants(self, node: Address, topic: int) -> bool:
        """Whether the node has this topic."""
        known = self._known.get(node)
        if known is None or len(known.topics) > _SMALL:
            return len(self.shared(node, np.array([topic], np.uint64))) > 0
        if node not in self._sets:
            self._sets[node] = frozenset(known.topics.tolist())
        return topic in self._sets[node]


class _Asked:
    """A question, and the parts of the answer that have come."""

    __slots__ = ("at", "came", "like", "of", "times")

    def __init__(self) -> None:
        self.at, self.times = -np.inf, 0
        self.of: Address | None = None  # None: nothing is expected
        self.like: Profile | None = None  # the first part that came
        self.came: dict[int, Topics] = {}


class Update(NamedTuple):
    """A profile that is complete. `added`: topics that are new, or new again; None: it came whole."""

    node: Address
    version: int
    topics: Topics
    added: Topics | None


class Inbox:
    """Profiles that were asked for."""

    def __init__(self, shelf: Shelf, most_topics: int) -> None:
        self._shelf, self._most = shelf, most_topics
        self._asked: dict[Address, _Asked] = {}

    def may_ask(self, node: Address) -> bool:
        """Not while an answer may still come."""
        asked = self._asked.get(node)
        return asked is None or asked.of is None

    def times_asked(self, node: Address) -> int:
        """In vain, since the last answer."""
        asked = self._asked.get(node)
        return asked.times if asked else 0

    def ask(self, now: float, node: Address, of: Address) -> None:
        """This one is asked for the node's profile."""
        asked = self._asked.setdefault(node, _Asked())
        asked.at, asked.of, asked.times = now, of, asked.times + 1
        asked.like, asked.came = None, {}

    def drop_stale(self, oldest: float, known: Container[Address]) -> None:
        """Answers that did not come in time, and questions about those who are gone."""
        self._asked = {node: asked for node, asked in self._asked.items() if node in known}
        for asked in self._asked.values():
            if asked.at < oldest:
                asked.of, asked.like, asked.came = None, None, {}

    @property
    def buffered(self) -> int:
        """Topics of profiles that are not complete."""
        return sum(len(part) for asked in self._asked.values() for part in asked.came.values())

    def take(self, sender: Address, message: Profile) -> Update | None:
        """A part came; the profile, if that completes it."""
        asked = self._asked.get(message.node)
        if asked is None or asked.of != sender or not message.is_sound(self._most):
            return None
        if message.version < self._shelf.version(message.node) and sender != message.node:
            return None
        update = self._change(message) if message.base else self._collect(asked, message)
        if update is not None or message.base:  # a change that does not fit is an answer, too: ask again
            asked.of, asked.like, asked.came, asked.times = None, None, {}, 0
        return update

    def _change(self, message: Profile) -> Update | None:
        known = self._shelf[message.node]
        if known is None or known.version != message.base:
            return None
        added, removed = unpack(message.added), unpack(message.removed)
        topics = np.union1d(np.setdiff1d(known.topics, removed, assume_unique=True), added)
        if not _is_whole(topics, message):
            self._shelf.forget(message.node)  # so that the next answer is the whole
            return None
        return Update(message.node, message.version, topics, added)

    def _collect(self, asked: _Asked, message: Profile) -> Update | None:
        like = asked.like
        if like is None or like.version < message.version:
            asked.like, asked.came = message, {}
        elif (like.version, like.count, like.total) != (message.version, message.count, message.total):
            return None
        part = unpack(message.added)
        last = message.part == message.parts - 1
        if len(part) != (message.count - message.part * TOPICS_A_PART if last else TOPICS_A_PART):
            return None
        asked.came[message.part] = part
        if len(asked.came) < message.parts:
            if self.buffered > _COMING * self._most:
                asked.like, asked.came = None, {}
            return None
        topics = np.concatenate([asked.came[i] for i in range(message.parts)])
        return Update(message.node, message.version, topics, None) if _is_whole(topics, message) else None


def _is_whole(topics: Topics, message: Profile) -> bool:
    ascending = bool((topics[1:] > topics[:-1]).all())
    return ascending and len(topics) == message.count and total(topics) == message.total
