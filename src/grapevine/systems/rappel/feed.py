"""One feed at one node (§4): its parent, its children, and the updates that it keeps. Algorithm 2 is here.

Why the trees have no cycles. Every node has a rank in a feed: its distance from the publisher in network coordinates,
ties broken by the address; the publisher comes before everybody. The one rule is that a parent has a smaller rank than
its child. Algorithm 2 keeps it, since a node sends whoever ranks before itself upwards and takes only who ranks behind.
So ranks fall from parent to parent, and a way that never comes back to a rank cannot come back to a node. No node needs
to know more than the three positions for that, and the order in which messages arrive does not matter:

- An evicted child is told where to ask, not to whom it belongs now: the rule is applied anew there (Fig. 4d).
- A child that leaves hands its own child to its parent (§4.4); grandparents rank before grandchildren.
- Positions stay for a session. A parent that comes back with another position is another parent, which is why `Parent`
  has a session: the first ping that shows a new one ends the relation. Until then the edge leads to a node that knows
  of no child and sends it nothing. A publisher keeps its position between sessions, or all ranks would be void.

Three things hold at any time, and `tests/rappel_world.py` checks them after every step:

1. a parent ranks before its children, so that trees have no cycles;
2. a node has at most β children, and guests: children taken over from a child that leaves. A guest counts as soon as
   the child that it came from is gone;
3. the cache holds the latest updates only, each once; what is older than the window counts as known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from grapevine.systems.contracts.peer import NUMBERS_OF_AN_EPOCH, Address
from grapevine.systems.rappel.messages import Ancestors, Position, Pull, Update
from grapevine.systems.rappel.position import apart_ms

Rank = tuple[float, Address]  # distance to the publisher; ties go to the smaller address (§4.2, footnote 2)
_ROOT: Rank = (-1.0, -1)


class Parent(NamedTuple):
    """The node that a feed's updates come from, in the session in which it took this node as a child."""

    node: Address
    session: int


@dataclass(slots=True)
class Child:
    """A node that a feed's updates are passed on to."""

    position: Position
    session: int
    last_heard: float  # when it joined, or last pinged
    guest_of: Address | None = None  # taken beyond the bound, until the child that it came from has left (§4.4)


@dataclass(slots=True)
class Search:
    """A search for a parent that is under way: whom it asks now, and whom if that one does not answer."""

    contact: Address
    other_contacts: list[Address]
    question: int  # `Feed.questions` when the contact was asked: time-outs of earlier questions do not count
    steps: int = 0  # nodes that have passed it on, from the contact that it began with
    periodic: bool = False  # a rejoin (§4.3), which may end without a change
    failed: Address | None = None  # the silent parent that has to be replaced


class Forward(NamedTuple):
    """Algorithm 2 sends the searcher on to another node."""

    to: Address


class Accept(NamedTuple):
    """Algorithm 2 takes the searcher as a child; for that `evicted`, if anybody, is sent to `instead`."""

    evicted: Address | None = None
    instead: Address | None = None


@dataclass(slots=True)
class Feed:
    """A node's membership in the tree of one feed."""

    topic: int
    publisher: Address
    is_root: bool = False  # this node publishes it
    publisher_position: Position | None = None  # None until a first parent has sent it, or the root knows its own
    parent: Parent | None = None
    ancestors: Ancestors = ()  # those of a lost parent stay, to search from
    to_parent_ms: float = 0.0  # by coordinates
    path_ms: float = 0.0  # from the publisher along the tree, by coordinates
    children: dict[Address, Child] = field(default_factory=dict)
    search: Search | None = None
    questions: int = 0  # asked by all searches so far
    skip_rejoin: bool = False  # an evicted node skips its next periodic one (§4.2)
    leaving: bool = False  # in good order (§4.4): children are served until they have other parents
    drained_at: float | None = None  # out of the tree; until then what is still on its way is swallowed
    cache: dict[int, Update] = field(default_factory=dict)  # the latest updates, by sequence
    last: int = 0  # the highest sequence number that is known to exist
    pulls_in_vain: int = 0  # so that the next one goes to somebody else
    rejoins: int = 0  # periodic rejoins of others that began here, for the measurement
    heights: bool = False  # coordinates have one (`position`)

    @property
    def height(self) -> int:
        """Steps from the publisher, as far as the parent knows."""
        return len(self.ancestors)

    def is_child_of(self, node: Address) -> bool:
        """Whether the given node is the parent, in whichever session."""
        return self.parent is not None and self.parent.node == node

    def rank(self, node: Address, position: Position) -> Rank:
        """How close a node is to the publisher. Only to be called once the publisher's position is known."""
        assert self.publisher_position is not None
        return apart_ms(position, self.publisher_position, self.heights), node

    # Algorithm 2

    def receive_join(
        self, me: Address, my_position: Position, searcher: Address, position: Position, most: int
    ) -> Accept | Forward:
        """What this node, at `my_position` and with room for `most` children, answers to a searcher at `position`."""
        if self.publisher_position is None:
            return Forward(self.publisher)  # it looks for its first parent itself: not in the paper
        rank = self.rank(searcher, position)
        if rank < (_ROOT if self.is_root else self.rank(me, my_position)):
            return Forward(self.parent.node if self.parent else self.publisher)  # Fig. 4a
        if searcher in self.children or len(self.children) < most:
            return Accept()  # Fig. 4b
        ranks = {node: self.rank(node, child.position) for node, child in self.children.items()}
        farthest = max(ranks, key=ranks.__getitem__)
        if ranks[farthest] < rank:
            children = {node: child.position for node, child in self.children.items()}
            return Forward(self._nearest(position, children))  # Fig. 4c
        staying = {node: child.position for node, child in self.children.items() if node != farthest}
        instead = self._nearest(self.children[farthest].position, staying | {searcher: position})
        return Accept(farthest, instead)  # Fig. 4d

    def _nearest(self, position: Position, others: dict[Address, Position]) -> Address:
        return min(others, key=lambda node: (apart_ms(position, others[node], self.heights), node))

    def farthest(self) -> tuple[Address, Address]:
        """The child farthest from the publisher, guests aside, and the child closest to it."""
        ranks = {
            node: self.rank(node, child.position) for node, child in self.children.items() if child.guest_of is None
        }
        node = max(ranks, key=ranks.__getitem__)
        others = {other: child.position for other, child in self.children.items() if other != node}
        return node, self._nearest(self.children[node].position, others)

    def ancestor_for_rejoin(self, fan_out: int, random: Random) -> Address | None:
        """A non-parent ancestor, the less likely the farther it is (§4.3); None if there is none."""
        if len(self.ancestors) < 2:
            return None
        weights = [fan_out**-steps for steps in range(2, len(self.ancestors) + 1)]
        return random.choices(self.ancestors[1:], weights)[0]

    # Updates

    def missing(self, window: int) -> tuple[int, ...]:
        """Sequence numbers of updates that exist, are recent enough for others to have them, and are not here."""
        first = self.last - (self.last - 1) % NUMBERS_OF_AN_EPOCH  # no update has a number between two epochs
        return tuple(n for n in range(max(1, first, self.last - window + 1), self.last + 1) if n not in self.cache)

    def keep(self, update: Update, window: int) -> bool:
        """Keep an update, and drop those that fall out of the window; False if it is known, or too old to tell."""
        if update.sequence in self.cache or update.sequence <= self.last - window:
            return False
        self.cache[update.sequence] = update
        self.last = max(self.last, update.sequence)
        for old in [n for n in self.cache if n <= self.last - window]:
            del self.cache[old]
        return True

    def pull(self, window: int) -> Pull:
        """A request for all that is missing, and for what this node has not heard of yet."""
        return Pull(self.topic, self.last, self.missing(window))

    def answer(self, pull: Pull) -> list[Update]:
        """The updates that were asked for and are here, the oldest first."""
        wanted = set(pull.missing)
        found = [n for n in sorted(self.cache) if n > pull.after or n in wanted]
        return [Update(u.topic, u.sequence, u.payload, u.signature, True) for u in (self.cache[n] for n in found)]
