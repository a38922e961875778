"""One feed at one node (§4): its place in the tree, whom it serves, and the updates that it keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.messages import Chain, Position, Pull, Update

Rank = tuple[float, Address]  # distance to the publisher; ties go to the smaller address (§4.2, footnote 2)
_ROOT: Rank = (-1.0, -1)


class Parent(NamedTuple):
    """From whom updates come."""

    node: Address
    session: int


@dataclass(slots=True)
class Child:
    """Whom they go to."""

    position: Position
    session: int
    heard: float
    guest_of: Address | None = None  # taken beyond the bound, until the child that it came from has left (§4.4)


@dataclass(slots=True)
class Search:
    """Looking for a parent: whom was asked, and whom to ask if it does not answer."""

    contact: Address
    others: list[Address]
    number: int  # tells a late answer, or time-out, of a former search
    steps: int = 0
    periodic: bool = False
    failed: Address | None = None  # the parent that it needs another one for


class Forward(NamedTuple):
    """Algorithm 2 sends the newcomer on."""

    to: Address


class Accept(NamedTuple):
    """Algorithm 2 takes the newcomer, and sends `evicted` to `instead`."""

    evicted: Address | None = None
    instead: Address | None = None


@dataclass(slots=True)
class Feed:
    """A node's membership in the tree of one feed."""

    topic: int
    publisher: Address
    is_root: bool = False
    publisher_position: Position | None = None  # known from the parent on
    parent: Parent | None = None
    chain: Chain = ()  # ancestors, the parent first, the publisher last
    step: float = 0.0  # ms from the parent
    length: float = 0.0  # ms along the tree from the publisher
    children: dict[Address, Child] = field(default_factory=dict)
    search: Search | None = None
    searches: int = 0
    skip_rejoin: bool = False  # an evicted node skips its next periodic one (§4.2)
    leaving: bool = False
    drained_at: float | None = None  # no longer in the tree; what is still on its way is swallowed
    cache: dict[int, Update] = field(default_factory=dict)  # by sequence
    last: int = 0  # the last update that is known to exist
    asked: int = 0  # pulls in vain, to ask somebody else the next time
    rejoins: int = 0  # periodic rejoins that began here, for the measurement

    @property
    def height(self) -> int:
        """Steps from the publisher."""
        return len(self.chain)

    def is_child_of(self, node: Address) -> bool:
        """Whether this node is the parent."""
        return self.parent is not None and self.parent.node == node

    def rank(self, node: Address, position: Position) -> Rank:
        """How close a node is to the publisher; parents have smaller ranks than their children (§4.2)."""
        assert self.publisher_position is not None
        return math.dist(position, self.publisher_position), node

    # Algorithm 2

    def receive_join(self, me: Address, position: Position, node: Address, at: Position, most: int) -> Accept | Forward:
        """What a node in the tree answers to a newcomer at this position."""
        if self.publisher_position is None:
            return Forward(self.publisher)  # it looks for its first parent itself: not in the paper
        newcomer = self.rank(node, at)
        if newcomer < (_ROOT if self.is_root else self.rank(me, position)):
            return Forward(self.parent.node if self.parent else self.publisher)  # Fig. 4a
        if node in self.children or len(self.children) < most:
            return Accept()  # Fig. 4b
        ranks = {child: self.rank(child, known.position) for child, known in self.children.items()}
        farthest = max(ranks, key=ranks.__getitem__)
        if ranks[farthest] < newcomer:
            return Forward(_nearest(at, {child: known.position for child, known in self.children.items()}))  # Fig. 4c
        staying = {child: known.position for child, known in self.children.items() if child != farthest}
        instead = _nearest(self.children[farthest].position, staying | {node: at})
        return Accept(farthest, instead)  # Fig. 4d

    def farthest(self) -> tuple[Address, Address]:
        """The child farthest from the publisher, guests aside, and the child closest to it."""
        ranks = {
            node: self.rank(node, child.position) for node, child in self.children.items() if child.guest_of is None
        }
        node = max(ranks, key=ranks.__getitem__)
        others = {other: child.position for other, child in self.children.items() if other != node}
        return node, _nearest(self.children[node].position, others)

    def ancestor_for_rejoin(self, fan_out: int, random: Random) -> Address | None:
        """A non-parent ancestor, the less likely the farther it is (§4.3)."""
        if len(self.chain) < 2:
            return None
        weights = [fan_out**-steps for steps in range(2, len(self.chain) + 1)]
        return random.choices(self.chain[1:], weights)[0]

    # Updates

    def missing(self, window: int) -> tuple[int, ...]:
        """Updates that exist and could still be had."""
        return tuple(n for n in range(max(1, self.last - window + 1), self.last + 1) if n not in self.cache)

    def keep(self, update: Update, window: int) -> bool:
        """Keep an update; False if it is known already, or too old to tell."""
        if update.sequence in self.cache or update.sequence <= self.last - window:
            return False
        self.cache[update.sequence] = update
        self.last = max(self.last, update.sequence)
        for old in [n for n in self.cache if n <= self.last - window]:
            del self.cache[old]
        return True

    def pull(self, window: int) -> Pull:
        """Ask for all that is missing, and for what this node has not heard of yet."""
        return Pull(self.topic, self.last, self.missing(window))

    def answer(self, pull: Pull) -> list[Update]:
        """What of it this node has, the oldest first."""
        wanted = set(pull.missing)
        found = [n for n in sorted(self.cache) if n > pull.after or n in wanted]
        return [Update(u.topic, u.sequence, u.payload, u.signature, True) for u in (self.cache[n] for n in found)]


def _nearest(position: Position, places: dict[Address, Position]) -> Address:
    return min(places, key=lambda node: (math.dist(position, places[node]), node))
