"""Profiles of other nodes: those that are known, and those that were asked for and come in parts.

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
from grapevine.systems.vitis.peer.interests import checksum, find
from grapevine.systems.vitis.peer.messages import TOPICS_A_PART, Profile, Topics, unpack

_SMALL = 5_000  # topics of a profile that is kept as a set, too
_KEPT = 16  # times the most topics of one node: of all known profiles together
_PENDING = 4  # times the most topics of one node: of all incomplete profiles together


class KnownProfile(NamedTuple):
    """The topics of another node, as of a version."""

    version: int
    topics: Topics  # ascending
    first_hand: bool  # from the node itself, or confirmed by it


class KnownProfiles:
    """Profiles of other nodes, and what they have in common with this node's own topics."""

    def __init__(self, most_topics: int) -> None:
        self._most = _KEPT * most_topics
        self._known: dict[Address, KnownProfile] = {}
        self._size = 0
        self._neighbours: set[Address] = set()
        self._own: Topics = np.empty(0, np.uint64)
        self._common: dict[Address, int] = {}  # how many topics are shared, where somebody has asked
        self._shared_at: dict[Address, Columns] = {}  # and which, by index
        self._sets: dict[Address, frozenset[int]] = {}  # of small profiles: a look at one costs a tenth

    def __getitem__(self, node: Address) -> KnownProfile | None:
        return self._known.get(node)

    def version(self, node: Address) -> int:
        """The version of the profile that is known of a node; 0: none is."""
        known = self._known.get(node)
        return known.version if known else 0

    def has(self, node: Address, version: int) -> bool:
        """Whether this version is known, from the node itself: others may have said anything."""
        known = self._known.get(node)
        return known is not None and known.version == version and known.first_hand

    def put(self, node: Address, version: int, topics: Topics, *, first_hand: bool) -> None:
        """A node has these topics. When there are too many in all, what came first is forgotten, neighbours' last."""
        self.forget(node)
        self._known[node] = KnownProfile(version, topics, first_hand)
        self._size += len(topics)
        while self._size > self._most:
            strangers = (other for other in self._known if other not in self._neighbours)
            self.forget(next(strangers, next(iter(self._known))))

    def forget(self, node: Address) -> None:
        """The node is gone, or its profile turned out to be wrong; nothing happens if none is known."""
        known = self._known.pop(node, None)
        self._common.pop(node, None)
        self._shared_at.pop(node, None)
        self._sets.pop(node, None)
        if known is not None:
            self._size -= len(known.topics)

    def trim(self, known: Container[Address], most: int) -> None:
        """Of nodes that nobody speaks of now, so many profiles stay: samples come round again."""
        unheard = [node for node in self._known if node not in known]
        for node in unheard[: max(len(unheard) - most, 0)]:
            self.forget(node)

    def compare_with(self, own: Topics) -> None:
        """These are this node's topics from now on: what others share is worked out anew."""
        if own is not self._own:
            self._own = own
            self._common.clear()
            self._shared_at.clear()

    def overlap(self, node: Address) -> tuple[int, int]:
        """How many topics a node has in common with this one, and in all; none as long as no profile is known."""
        known = self._known.get(node)
        if known is None:
            return 0, 0
        if node not in self._common:
            self._common[node] = common(self._own, known.topics)
        return self._common[node], len(known.topics)

    def shared_at(self, node: Address) -> Columns:
        """The indices in this node's topics of those that both have; the same object until either's topics change."""
        if node not in self._shared_at:
            known = self._known.get(node)
            self._shared_at[node] = common_positions(self._own, known.topics if known else np.empty(0, np.uint64))
        return self._shared_at[node]

    def meet(self, neighbours: Iterable[Address]) -> None:
        """These are the neighbours now: which topics others share is asked of nobody else."""
        self._neighbours = set(neighbours)
        self._shared_at = {node: shared for node, shared in self._shared_at.items() if node in self._neighbours}

    def shared(self, node: Address, topics: Topics) -> Topics:
        """Those of the topics that the node has, as far as is known."""
        known = self._known.get(node)
        return topics[find(known.topics, topics)[1]] if known else topics[:0]

    def wants(self, node: Address, topic: int) -> bool:
        """Whether the node has this topic, as far as is known."""
        known = self._known.get(node)
        if known is None or len(known.topics) > _SMALL:
            return len(self.shared(node, np.array([topic], np.uint64))) > 0
        if node not in self._sets:
            self._sets[node] = frozenset(known.topics.tolist())
        return topic in self._sets[node]


class _Question:
    """A question for a profile, and the parts of the answer that have come."""

    __slots__ = ("asked_at", "asked_of", "attempts", "first_part", "parts")

    def __init__(self) -> None:
        self.asked_at, self.attempts = -np.inf, 0
        self.asked_of: Address | None = None  # None: no answer is awaited
        self.first_part: Profile | None = None  # which the others have to fit
        self.parts: dict[int, Topics] = {}

    def start_over(self) -> None:
        """The parts that have come are of no use."""
        self.first_part, self.parts = None, {}


class NewProfile(NamedTuple):
    """A profile all of whose parts have come and fit together."""

    node: Address
    version: int
    topics: Topics
    added: Topics | None  # topics that are new, or new again; None: it came whole, so any may be


class PendingProfiles:
    """Profiles that were asked for. What comes unasked, or from others than who was asked, is not taken."""

    def __init__(self, known: KnownProfiles, most_topics: int) -> None:
        self._known, self._most = known, most_topics
        self._questions: dict[Address, _Question] = {}

    def may_ask(self, node: Address) -> bool:
        """Whether to ask for a node's profile: not while an answer may still come."""
        question = self._questions.get(node)
        return question is None or question.asked_of is None

    def times_asked(self, node: Address) -> int:
        """How often a node's profile was asked for since the last answer."""
        question = self._questions.get(node)
        return question.attempts if question else 0

    def ask(self, now: float, node: Address, of: Address) -> None:
        """`of` is asked for the node's profile now."""
        question = self._questions.setdefault(node, _Question())
        question.asked_at, question.asked_of, question.attempts = now, of, question.attempts + 1
        question.start_over()

    def drop_stale(self, oldest: float, known: Container[Address]) -> None:
        """Give up questions that were asked before `oldest`, so that they can be asked again, and those about nodes of
        whom nobody speaks any more."""
        self._questions = {node: question for node, question in self._questions.items() if node in known}
        for question in self._questions.values():
            if question.asked_at < oldest:
                question.asked_of = None
                question.start_over()

    @property
    def buffered(self) -> int:
        """Topics of profiles that are not complete."""
        return sum(len(part) for question in self._questions.values() for part in question.parts.values())

    def take(self, sender: Address, message: Profile) -> NewProfile | None:
        """A part came; returns the profile if that completes it."""
        question = self._questions.get(message.node)
        if question is None or question.asked_of != sender or not message.is_sound(self._most):
            return None
        if message.version < self._known.version(message.node) and sender != message.node:
            return None
        update = self._change(message) if message.base else self._collect(question, message)
        if update is not None or message.base:  # a change that does not fit is an answer, too: ask again
            question.asked_of, question.attempts = None, 0
            question.start_over()
        return update

    def _change(self, message: Profile) -> NewProfile | None:
        known = self._known[message.node]
        if known is None or known.version != message.base:
            return None
        added, removed = unpack(message.added), unpack(message.removed)
        topics = np.union1d(np.setdiff1d(known.topics, removed, assume_unique=True), added)
        if not _is_whole(topics, message):
            self._known.forget(message.node)  # so that the next answer is the whole
            return None
        return NewProfile(message.node, message.version, topics, added)

    def _collect(self, question: _Question, message: Profile) -> NewProfile | None:
        if question.first_part is None or question.first_part.version < message.version:
            question.first_part, question.parts = message, {}
        elif _announced(question.first_part) != _announced(message):
            return None
        part = unpack(message.added)
        last = message.part == message.parts - 1
        if len(part) != (message.topic_count - message.part * TOPICS_A_PART if last else TOPICS_A_PART):
            return None
        question.parts[message.part] = part
        if len(question.parts) < message.parts:
            if self.buffered > _PENDING * self._most:
                question.start_over()
            return None
        topics = np.concatenate([question.parts[i] for i in range(message.parts)])
        return NewProfile(message.node, message.version, topics, None) if _is_whole(topics, message) else None


def _announced(message: Profile) -> tuple[int, int, int]:
    """What all parts of one profile have in common."""
    return message.version, message.topic_count, message.checksum


def _is_whole(topics: Topics, message: Profile) -> bool:
    """Whether these are the topics that the message announces."""
    ascending = bool((topics[1:] > topics[:-1]).all())
    return ascending and len(topics) == message.topic_count and checksum(topics) == message.checksum
