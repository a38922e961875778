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
from grapevine.systems.gossip.interests import checksum, find
from grapevine.systems.gossip.messages import TOPICS_A_PART, Profile, Topics, unpack
from grapevine.systems.gossip.weights import ONE, Weights, unpack_weights

_SMALL = 5_000  # topics of a profile that is kept as a set, too
_KEPT = 16  # times the most topics of one node: of all known profiles together
_PENDING = 4  # times the most topics of one node: of all incomplete profiles together


class KnownProfile(NamedTuple):
    """The topics of another node, as of a version."""

    version: int
    topics: Topics  # ascending
    first_hand: bool  # from the node itself, or confirmed by it
    weights: Weights | None = None  # of the topics; None: this node weighs all alike


class KnownProfiles:
    """Profiles of other nodes, and what they have in common with this node's own topics.

    Where topics weigh differently (`weighed`), a node says what its own do. Two nodes may differ about a topic that
    both have: then it weighs the mean of what they say, so that both find the same utility.
    """

    def __init__(self, most_topics: int, *, weighed: bool = False) -> None:
        self._most, self.weighed = _KEPT * most_topics, weighed
        self._known: dict[Address, KnownProfile] = {}
        self._size = 0
        self._neighbours: set[Address] = set()
        self._own: Topics = np.empty(0, np.uint64)
        self._own_weights: Weights | None = None
        self._overlaps: dict[Address, tuple[int, int]] = {}  # where somebody has asked
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

    def put(
        self, node: Address, version: int, topics: Topics, *, first_hand: bool, weights: Weights | None = None
    ) -> None:
        """A node has these topics, which weigh so much; None: all alike.

        When there are too many in all, what came first is forgotten, neighbours' last.
        """
        self.forget(node)
        if self.weighed and weights is None:
            weights = np.full(len(topics), ONE, np.int64)
        self._known[node] = KnownProfile(version, topics, first_hand, weights if self.weighed else None)
        self._size += len(topics)
        while self._size > self._most:
            strangers = (other for other in self._known if other not in self._neighbours)
            self.forget(next(strangers, next(iter(self._known))))

    def forget(self, node: Address) -> None:
        """The node is gone, or its profile turned out to be wrong; nothing happens if none is known."""
        known = self._known.pop(node, None)
        self._overlaps.pop(node, None)
        self._shared_at.pop(node, None)
        self._sets.pop(node, None)
        if known is not None:
            self._size -= len(known.topics)

    def trim(self, known: Container[Address], most: int) -> None:
        """Of nodes that nobody speaks of now, so many profiles stay: samples come round again."""
        unheard = [node for node in self._known if node not in known]
        for node in unheard[: max(len(unheard) - most, 0)]:
            self.forget(node)

    def compare_with(self, own: Topics, weights: Weights | None = None) -> None:
        """These are this node's topics from now on, and their weights: what others share is worked out anew."""
        if own is not self._own:
            self._shared_at.clear()
        if own is not self._own or weights is not self._own_weights:
            self._own, self._own_weights = own, weights
            self._overlaps.clear()

    @property
    def own(self) -> tuple[int, int]:
        """This node's topics in terms of `overlap`: it has all of them in common with itself."""
        mass = len(self._own) if self._own_weights is None else 2 * int(self._own_weights.sum())
        return mass, mass

    def overlap(self, node: Address) -> tuple[int, int]:
        """How many topics a node has in common with this one, and in all; none as long as no profile is known.

        Where topics weigh differently: twice what they weigh, since those in common weigh the mean of two numbers.
        """
        known = self._known.get(node)
        if known is None:
            return 0, 0
        if node not in self._overlaps:
            self._overlaps[node] = self._overlap(known)
        return self._overlaps[node]

    def _overlap(self, known: KnownProfile) -> tuple[int, int]:
        own, theirs = self._own_weights, known.weights
        if own is None or theirs is None:
            return common(self._own, known.topics), len(known.topics)
        mine = own[common_positions(self._own, known.topics)]
        yours = theirs[common_positions(known.topics, self._own)]
        return int(mine.sum() + yours.sum()), 2 * int(theirs.sum())

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

    __slots__ = ("asked_at", "asked_of", "attempts", "first_part", "parts", "weights")

    def __init__(self) -> None:
        self.asked_at, self.attempts = -np.inf, 0
        self.asked_of: Address | None = None  # None: no answer is awaited
        self.first_part: Profile | None = None  # which the others have to fit
        self.parts: dict[int, Topics] = {}
        self.weights: dict[int, Weights] = {}  # of the parts, where topics weigh differently

    def start_over(self, first_part: Profile | None = None) -> None:
        """The parts that have come are of no use."""
        self.first_part, self.parts, self.weights = first_part, {}, {}


class NewProfile(NamedTuple):
    """A profile all of whose parts have come and fit together."""

    node: Address
    version: int
    topics: Topics
    added: Topics | None  # topics that are new, or new again; None: it came whole, so any may be
    weights: Weights | None = None  # of the topics; None: this node weighs all alike


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
        weights = _changed_weights(known, topics, added, message)
        if not _is_whole(topics, message) or (weights is None and self._known.weighed):
            self._known.forget(message.node)  # so that the next answer is the whole
            return None
        return NewProfile(message.node, message.version, topics, added, weights)

    def _collect(self, question: _Question, message: Profile) -> NewProfile | None:
        if question.first_part is None or question.first_part.version < message.version:
            question.start_over(message)
        elif _announced(question.first_part) != _announced(message):
            return None
        part = unpack(message.added)
        last = message.part == message.parts - 1
        if len(part) != (message.topic_count - message.part * TOPICS_A_PART if last else TOPICS_A_PART):
            return None
        if self._known.weighed:
            weights = unpack_weights(message.rates, len(part))
            if weights is None:
                return None
            question.weights[message.part] = weights
        question.parts[message.part] = part
        if len(question.parts) < message.parts:
            if self.buffered > _PENDING * self._most:
                question.start_over()
            return None
        topics = np.concatenate([question.parts[i] for i in range(message.parts)])
        if not _is_whole(topics, message):
            return None
        every = [question.weights[i] for i in range(message.parts)] if self._known.weighed else None
        return NewProfile(message.node, message.version, topics, None, np.concatenate(every) if every else None)


def _changed_weights(known: KnownProfile, topics: Topics, added: Topics, message: Profile) -> Weights | None:
    """What the topics of a changed profile weigh; None: all alike, or the message has rates that cannot be."""
    if known.weights is None:
        return None
    told = np.concatenate([added, unpack(message.rated)])
    said = unpack_weights(message.rates, len(told))
    if said is None:
        return None
    weights = np.full(len(topics), ONE, np.int64)
    at, there = find(known.topics, topics)
    weights[there] = known.weights[at[there]]
    at, there = find(topics, told)
    weights[at[there]] = said[there]
    return weights


def _announced(message: Profile) -> tuple[int, int, int]:
    """What all parts of one profile have in common."""
    return message.version, message.topic_count, message.checksum


def _is_whole(topics: Topics, message: Profile) -> bool:
    """Whether these are the topics that the message announces."""
    ascending = bool((topics[1:] > topics[:-1]).all())
    return ascending and len(topics) == message.topic_count and checksum(topics) == message.checksum
