"""A node's place in the tree of a topic, and which events it has seen there.

A tree is nothing but the routes of its subscribers to one key, the id of the topic's publisher, laid over each other: a
node's parent is its next hop. That is why there are no cycles once everybody has asked the same tables: a hop by the
table shares more digits with the key, or as many and is nearer to it on the ring; the last hops, among leaves, are only
nearer (`pastry`). So no route comes back to a node. The root is whoever has no next hop: the publisher or, while it is
away, the node nearest to its id.

While tables change, neighbours may have asked different ones, and parents may form a circle for a while. Three rules
keep that short and harmless:

1. a node asks along its current route whenever tables or suspects have changed, at the next heartbeat (`_tick`);
2. a node that is asked to be the parent of its own parent takes it as a child and looks for another parent at once
   (`_on_subscribe`), so two nodes are never each other's parents for longer than a message takes;
3. an event is passed on once by every node (`Window`), so that it cannot go round.

Parent and child agree in the end because each tells the other what it takes it for: heartbeats list the topics, and who
is no child answers with `Leave`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grapevine.systems.contracts.peer import Address


@dataclass(slots=True)
class Tree:
    """A node's place in a topic's tree. It is in the tree as long as it has such a place."""

    parent: Address | None = None  # from whom events come; None at the root, or until somebody has accepted
    asked: Address | None = None  # who shall be the parent and has not answered; the old one is kept until then
    question: int = 0  # the number of that question, which tells its time-out from earlier ones
    children: dict[Address, None] = field(default_factory=dict)  # a set in the order of arrival


class Window:
    """Which events of a topic came, among the latest by number; what is older counts as seen."""

    def __init__(self, size: int) -> None:
        self._size, self._latest, self._seen = size, 0, 0  # numbers begin at 1; a bit for each, the latest lowest

    def is_new(self, sequence: int) -> bool:
        """Whether this one comes for the first time; from now on it is seen."""
        behind = self._latest - sequence
        if behind < 0:
            self._seen = (self._seen << min(-behind, self._size) | 1) & (1 << self._size) - 1
            self._latest = sequence
            return True
        if behind >= self._size or self._seen >> behind & 1:
            return False
        self._seen |= 1 << behind
        return True
