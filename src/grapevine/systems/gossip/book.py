"""Who is known: descriptors of nodes, how fresh each is, and Newscast, by which they spread.

A node describes itself, and others pass that on with its age, which is since when nobody has heard of it. So what a
node believes of another grows old unless somebody has news, and in the end it is forgotten: a node that is gone needs
no obituary.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from grapevine.systems.contracts.peer import Address


class Described(Protocol):
    """A descriptor: a struct in which a node says who it is."""

    @property
    def node(self) -> Address: ...

    @property
    def version(self) -> int:
        """Of its profile: who has another one asks for the topics."""
        ...

    @property
    def topic_count(self) -> int:
        """Topics in that version."""
        ...

    @property
    def age_s(self) -> float:
        """How long ago somebody last heard of it."""
        ...


D = TypeVar("D", bound=Described)
_MOST_ANSWERED = 10_000


class Book(ABC, Generic[D]):
    """Descriptors of known nodes, with the time at which somebody last heard of each, and this node's own (`me`).

    What a node knows is in dictionaries with the same keys; `forget` removes it from all.
    """

    def __init__(self, me: D) -> None:
        self.me = me
        self.known: dict[Address, D] = {}
        self.heard: dict[Address, float] = {}
        self.described_by: dict[Address, Address] = {}  # from whom the descriptors are
        self.answered: dict[Address, float] = {}  # when a node last spoke to this one itself; it need not be known
        self._gone: dict[Address, float] = {}  # nodes that were dropped; what others heard of them before is old news

    @abstractmethod
    def describe(self, now: float, node: Address) -> D:
        """The descriptor of a known node as it is passed on, with its age."""

    def learn(self, now: float, descriptors: Iterable[D], sender: Address | None = None) -> None:
        """Take what others know, where it is fresher. What the sender says of itself counts in any case."""
        for found in descriptors:
            node, heard = found.node, now - max(found.age_s, 0.0)
            if node == self.me.node:
                continue
            if node != sender and heard <= max(self.heard.get(node, -math.inf), self._gone.get(node, -math.inf)):
                continue
            known = self.known.get(node)
            if known is None or found.version >= known.version or node == sender:
                self._note(node, found, heard)
                self.described_by[node] = node if sender is None else sender
            self.hear(node, heard)

    def _note(self, node: Address, found: D, heard: float) -> None:
        """This is what is known of the node now, as of the time at which somebody heard of it."""
        self.known[node] = found

    def hear(self, node: Address, when: float) -> None:
        """A sign of life of a node at this time; nothing happens if it is not known."""
        if node in self.known:
            self.heard[node] = max(when, self.heard.get(node, when))

    def hear_from(self, node: Address, now: float) -> None:
        """A message of the node came, over a connection on which it has proven who it is."""
        self.answered.pop(node, None)
        self.answered[node] = now
        if len(self.answered) > _MOST_ANSWERED:
            del self.answered[next(iter(self.answered))]
        self.hear(node, now)

    def note_version(self, node: Address, version: int) -> None:
        """The node itself said which version its profile has."""
        if node in self.known:
            known: Any = self.known[node]
            self.known[node] = msgspec.structs.replace(known, version=version)

    def forget(self, node: Address, gone: float = -math.inf) -> None:
        """Drop a node; what others heard of it until `gone` does not bring it back."""
        if self.known.pop(node, None) is not None:
            del self.heard[node], self.described_by[node]
            if gone > -math.inf:
                self._gone[node] = gone

    def forget_older(self, when: float) -> None:
        """Drop those of whom nobody has heard since this time, and forget who has not spoken to this node since."""
        self.answered = {node: answered for node, answered in self.answered.items() if answered >= when}
        for node in [node for node, heard in self.heard.items() if heard < when]:
            self.forget(node)
        self._gone = {node: gone for node, gone in self._gone.items() if gone >= when}

    def trim(self, most: int, keep: Collection[Address], *, by_teller: bool = False) -> None:
        """Of the others than those to keep, only the most recently heard of stay.

        `by_teller`: of each who told about nodes the freshest, then of each the next, so that nobody fills the book
        with what it says; nodes that have answered this one count as their own tellers.
        """
        others = {node: heard for node, heard in self.heard.items() if node not in keep}
        if len(others) <= most:
            return
        ranked = by_freshness(others, len(others))
        if by_teller:
            told: Counter[Address] = Counter()
            turn: dict[Address, int] = {}
            for node in ranked:
                teller = self.teller(node)
                turn[node] = told[teller]
                told[teller] += 1
            ranked.sort(key=turn.__getitem__)
        for node in ranked[most:]:
            self.forget(node)

    def teller(self, node: Address) -> Address:
        """On whose word a known node is believed to be there: its own, if it has answered this one."""
        return node if node in self.answered else self.described_by[node]

    def descriptors_of(self, now: float, nodes: Iterable[Address]) -> tuple[D, ...]:
        """Descriptors to send, each with its age; those of nodes that are not known are left out."""
        return tuple(self.describe(now, node) for node in nodes if node in self.known)


class Newscast(Generic[D]):
    """A cache of random nodes (Newscast): two nodes put theirs together, and both keep the freshest.

    `cache` has when somebody last heard of each, and only nodes of the book: `drop_unknown`.
    """

    def __init__(self, book: Book[D], size: int, random: Random, most_of_a_teller: int | None = None) -> None:
        self._book, self._size, self._random = book, size, random
        self._most_of_a_teller = most_of_a_teller  # None: anybody may fill the cache
        self.cache: dict[Address, float] = {}

    def partner(self) -> Address | None:
        """A random member of the cache; None if it is empty."""
        return self._random.choice(sorted(self.cache)) if self.cache else None

    def sample(self, now: float) -> tuple[D, ...]:
        """What is sent: this node, and the cache."""
        return self._book.me, *self._book.descriptors_of(now, self.cache)

    def merge(self, descriptors: Iterable[D]) -> None:
        """Somebody's cache came, and the book has learnt from it: keep the freshest of both."""
        heard = self._book.heard
        nodes = {found.node for found in descriptors if found.node in heard} | {n for n in self.cache if n in heard}
        fresh = by_freshness({node: heard[node] for node in nodes}, len(nodes))
        self.cache = {node: heard[node] for node in self._of_several(fresh)[: self._size]}

    def _of_several(self, nodes: list[Address]) -> list[Address]:
        """The nodes, without those beyond the most that one and the same node may tell of."""
        if self._most_of_a_teller is None:
            return nodes
        told: Counter[Address] = Counter()
        kept = []
        for node in nodes:
            teller = self._book.teller(node)
            told[teller] += 1
            if told[teller] <= self._most_of_a_teller:
                kept.append(node)
        return kept

    def drop_unknown(self) -> None:
        """Whoever is not in the book any more is not in the cache either."""
        self.cache = {node: heard for node, heard in self.cache.items() if node in self._book.known}


def by_freshness(heard: Mapping[Address, float], most: int) -> list[Address]:
    """At most so many of these nodes, the most recently heard of first; ties go to the smaller address."""
    return sorted(heard, key=lambda node: (-heard[node], node))[:most]
