"""The labels of a node's own topics: who is the root of its cluster, and how far away.

Theory. By rounds a root makes a tick in every round, and a label whose tick stalls is dropped. A peer that is to be
silent while nothing changes cannot do that. Here a tick is made when somebody asks for it, and no label needs one to
live: it holds as long as the parent has it. What must not happen then is a circle of parents, which would keep a dead
root's label for ever. The condition that forbids it is Babel's (RFC 8966, §2.4 and 3.5.1):

For every root a member remembers the latest tick that it had a label with, and the fewest hops that it ever said with
that tick: its *distance*. A neighbour's label is **feasible** if its tick is later, or the same with fewer hops than
this distance. Only feasible labels are taken.

Invariants, at every instant and whatever is late:
1. Along parents of the same root, (tick, distance) strictly improves: a parent had a later tick, or less distance, when
   it was chosen, and distances of a tick only fall. So parents are never a circle.
2. Hence every chain of parents ends, at the root or at a member that has just lost its parent. The latter becomes its
   own root at once, its children see that and do the same, and the label of a root that is gone is extinct after as
   many steps as the tree is deep.
3. Who sees a lower root by labels that are not feasible alone asks for a later tick (`Wanted`). The question climbs
   from parent to parent; the root makes the tick, which comes down the whole tree. If the root is gone, the question
   ends where the label does.

Messages bring labels in order (`channel`), and a member says nothing with a tick before it has noted the distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.messages import MOST_COUNT, Label, Wanted
from grapevine.systems.trellis.peer.plain import is_better_label, is_other_way, may_adopt, parent_tie, rank_of

_MOST_DISTANCES = 8  # roots that are remembered for a topic: those of the clusters around


class Distance(NamedTuple):
    """How near to a root a member has ever said to be."""

    tick: int
    hops: int


class OwnLabel:
    """The label of one of a node's own topics."""

    __slots__ = ("_own_tick", "distances", "has_other_way", "hops", "parent", "root", "settled", "tick", "topic")

    def __init__(self, topic: int, me: Address, now: float) -> None:
        self.topic, self.root, self.tick, self.hops = topic, me, 0, 0
        self.parent: Address | None = None
        self.settled = now  # when the root changed
        self.has_other_way = False  # another neighbour would do as parent
        self.distances: dict[Address, Distance] = {}
        self._own_tick = 0  # the latest that this node made as a root

    @property
    def rank(self) -> int:
        """The rank of the cluster."""
        return rank_of(self.topic, self.root)

    def is_feasible(self, label: Label) -> bool:
        """Whether a neighbour's label cannot have come by way of this node."""
        known = self.distances.get(label.root)
        return known is None or label.tick > known.tick or (label.tick == known.tick and label.hops < known.hops)

    def tells(self, node: Address, theirs: Label | None) -> Label:
        """What a neighbour is told, whose own label for the topic this is; None: it does not want it."""
        if theirs is None:
            return Label(self.topic, self.root)
        is_child = node == self.parent
        return Label(self.topic, self.root, self.tick, self.hops, is_child, is_child and self.has_other_way)

    def revise(self, now: float, me: Address, heard: Mapping[Address, Label]) -> bool:
        """Choose anew from what the neighbours in the topic say; whether the label is another now."""
        before = self.root, self.tick, self.hops, self.parent, self.has_other_way
        best, chosen = (rank_of(self.topic, me), 0, 0), None
        for node, label in heard.items():
            if not may_adopt(label.hops, label.is_child or label.root == me, not self.is_feasible(label)):
                continue
            found = rank_of(self.topic, label.root), label.hops + 1, parent_tie(me, node, node == self.parent)
            if is_better_label(found, best):
                best, chosen = found, node
        self.parent = chosen
        if chosen is None:
            self._take(now, me, self._own_tick, 0)
        else:
            self._take(now, heard[chosen].root, heard[chosen].tick, heard[chosen].hops + 1)
        spare = [node for node, label in heard.items() if self._is_other_way(node, label)]
        self.has_other_way = chosen is not None and bool(spare)
        return before != (self.root, self.tick, self.hops, self.parent, self.has_other_way)

    def _take(self, now: float, root: Address, tick: int, hops: int) -> None:
        if root != self.root:
            self.root, self.settled = root, now
        self.tick, self.hops = tick, hops
        known = self.distances.pop(root, None)  # and put back as the youngest
        is_nearer = known is None or tick > known.tick or hops < known.hops
        self.distances[root] = Distance(tick, hops) if known is None or is_nearer else known
        while len(self.distances) > _MOST_DISTANCES:
            del self.distances[next(iter(self.distances))]

    def _is_other_way(self, node: Address, label: Label) -> bool:
        found: bool = is_other_way(label.root == self.root, label.hops, self.hops, node == self.parent, label.is_child)
        return found

    def make_tick(self, me: Address, wanted: Iterable[Wanted]) -> bool:
        """Neighbours want later ticks: if this is the root they mean, the next one is as late; whether there is one."""
        tick = max((ask.tick for ask in wanted if ask.root == me), default=0)
        if tick <= self._own_tick:
            return False
        self._own_tick = tick
        return True

    def wants(
        self, me: Address, heard: Mapping[Address, Label], asked: Iterable[Wanted]
    ) -> tuple[Address, Wanted] | None:
        """Whom to ask for a later tick: a neighbour with a better root, none of whose labels is feasible; or the
        parent, for somebody else. None: nobody."""
        best: tuple[tuple[int, int, int], Address] | None = None
        for node, label in heard.items():
            found = rank_of(self.topic, label.root), label.hops + 1, parent_tie(me, node, False)
            is_lower = label.root != me and found[0] < self.rank and may_adopt(label.hops, label.is_child, False)
            if is_lower and (best is None or is_better_label(found, best[0])):
                best = found, node
        if best is not None:
            root = heard[best[1]].root
            tick = max(self.distances[root].tick, heard[best[1]].tick) + 1 if root in self.distances else 0
            return (best[1], Wanted(self.topic, root, tick)) if 0 < tick < MOST_COUNT else None
        tick = max((ask.tick for ask in asked if ask.root == self.root), default=0)
        if self.parent is not None and tick > self.tick:
            return self.parent, Wanted(self.topic, self.root, tick)
        return None
