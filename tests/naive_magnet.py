"""Slow, obvious Magnet: places on the ring, greedy routes, sampled interests, tree joins; written from the paper.

Nodes are numbers, ids are Python integers on a ring of 2^64; randomness is `draw(seed, …)`, as in the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from tests.naive import WORD, draw

INTEREST_SAMPLES, JOIN_ORDER = 2**44, 2**45

Edge = tuple[int, int]  # parent, child


def clockwise(start: int, end: int) -> int:
    return (end - start) % WORD


def below(bits: int, bound: int) -> int:
    return (bits >> 32) * bound >> 32


# Places on the ring (§3.2)


@dataclass
class NaiveCircle:
    """The nodes in their order round the circle, and their ids."""

    order: list[int] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)

    def behind(self, node: int) -> list[int]:
        """All others, clockwise from the node."""
        at = self.order.index(node)
        return self.order[at + 1 :] + self.order[:at]

    def gap(self, node: int) -> int:
        others = self.behind(node)
        return clockwise(self.ids[node], self.ids[others[0]]) if others else WORD - 1

    def insert_after(self, node: int, newcomer: int) -> None:
        """At the mean of the two ids (Algorithm 1, line 3), for as long as there is room."""
        self.ids[newcomer] = (self.ids[node] + self.gap(node) // 2) % WORD
        self.order.insert(self.order.index(node) + 1, newcomer)

    def insert_at(self, id: int, newcomer: int) -> None:
        """At an id of its own, or behind the node that has it."""
        if not self.order:
            self.order, self.ids = [newcomer], {newcomer: id}
            return
        node = min(self.order, key=lambda q: clockwise(self.ids[q], id))
        if self.ids[node] == id:
            self.insert_after(node, newcomer)
        else:
            self.ids[newcomer] = id
            self.order.insert(self.order.index(node) + 1, newcomer)

    def remove(self, node: int) -> None:
        self.order.remove(node)
        del self.ids[node]


def similarity(mine: set[int], other: set[int], rates: Sequence[float]) -> Fraction:
    """§2.1, weighted by the topics' rates."""
    common, union = (sum(Fraction(rates[topic]) for topic in topics) for topics in (mine & other, mine | other))
    return Fraction(common) / union if union else Fraction(0)


def take_places(
    seed: int,
    newcomers: Sequence[int],
    hashed: Sequence[int],
    interests: Sequence[set[int]],
    rates: Sequence[float],
    samples: list[list[int]],
    k: int,
    circle: NaiveCircle,
) -> None:
    """Algorithm 1 for one newcomer after the other; topics with fewer than k samples sample the newcomer too."""
    for p in newcomers:
        view = {q for topic in interests[p] for q in samples[topic] if q in circle.order}
        if view:
            alike = {q: similarity(interests[p], interests[q], rates) for q in view}
            circle.insert_after(max(view, key=lambda q: (alike[q], draw(seed, JOIN_ORDER, p, 1, q) >> 33)), p)
        else:
            circle.insert_at(hashed[p], p)
        for topic in interests[p]:
            if len(samples[topic]) < k:
                samples[topic].append(p)


def first_ring(
    seed: int,
    hashed: Sequence[int],
    topic_ids: Sequence[int],
    interests: Sequence[set[int]],
    rates: Sequence[float],
    k: int,
) -> NaiveCircle:
    """All nodes join in random order; topics are sampled anew, by draws of its own each time, whenever the network has
    grown by a quarter."""
    order = sorted(range(len(hashed)), key=lambda p: draw(seed, JOIN_ORDER, p, 0))
    circle = NaiveCircle()
    samples: list[list[int]] = [[] for _ in topic_ids]
    sampling = 0
    while len(circle.order) < len(order):
        joined, sampling = len(circle.order), sampling + 1
        take_places(seed, order[joined : joined + max(1, joined // 4)], hashed, interests, rates, samples, k, circle)
        nodes = sorted(circle.order, key=lambda p: hashed[p])
        ring, place = [hashed[p] for p in nodes], {p: at for at, p in enumerate(nodes)}
        for topic, key in enumerate(topic_ids):
            home = min(range(len(ring)), key=lambda at: clockwise(key, ring[at]))
            members = [p for p in range(len(hashed)) if topic in interests[p]]
            samples[topic] = sample_topic(seed, sampling, topic, ring, place, home, k, members)
    return circle


# The control ring (Chord) and the samples of interests (§3.4); a place is an index into the ascending ids


def finger_table(at: int, ring: Sequence[int]) -> list[int]:
    """Chord: for every j the first node 2^j or more ids away."""
    points = [(ring[at] + 2**j) % WORD for j in range(64)]
    return [min(range(len(ring)), key=lambda place: clockwise(point, ring[place])) for point in points]


def next_place(at: int, home: int, ring: Sequence[int]) -> int:
    """The finger nearest to the home that does not pass it."""
    left = clockwise(ring[at], ring[home])
    fitting = [f for f in finger_table(at, ring) if 0 < clockwise(ring[at], ring[f]) <= left]
    return max(fitting, key=lambda f: clockwise(ring[at], ring[f]))


def sample_topic(
    seed: int,
    sampling: int,
    topic: int,
    ring: Sequence[int],
    place: Mapping[int, int],
    home: int,
    k: int,
    of: Iterable[int],
) -> list[int]:
    """Bottom-up over the tree of the subscribers' routes to the home; each node keeps k of what it has and is sent.

    Draws count tree nodes in the order in which the routes of the subscribers, one after the other, find them.
    """
    members = {place[q]: q for q in of if q in place}
    parent: dict[int, int | None] = {}
    for at in members:
        here: int | None = at
        while here is not None and here not in parent:
            parent[here] = None if here == home else next_place(here, home, ring)
            here = parent[here]
    number = {at: i for i, at in enumerate(parent)}
    held = {at: [members[at]] if at in members else [] for at in parent}
    offered = {at: len(held[at]) for at in parent}
    for at in sorted(parent, key=lambda at: -clockwise(ring[at], ring[home])):
        up = parent[at]
        for item in held[at] if up is not None else []:
            assert up is not None
            offered[up] += 1
            if len(held[up]) < k:
                held[up].append(item)
                continue
            slot = below(draw(seed, INTEREST_SAMPLES + sampling, topic, item, number[up]), offered[up])
            if slot < k:
                held[up][slot] = item
    return held.get(home, [])


# Routes and trees (§3.3)


def greedy_hop(p: int, target: int, ids: Sequence[int], links: Mapping[int, Iterable[int]]) -> int | None:
    """Of p's links the one closest to the target from below."""
    steps = {q: clockwise(ids[p], ids[q]) for q in links.get(p, ())}
    fitting = [q for q in steps if 0 < steps[q] <= clockwise(ids[p], ids[target])]
    return max(fitting, key=lambda q: steps[q], default=None)


def greedy_route(p: int, target: int, ids: Sequence[int], links: Mapping[int, Iterable[int]]) -> list[int]:
    """The nodes from p on; it ends at the target, or where no link leads on."""
    route = [p]
    while route[-1] != target:
        hop = greedy_hop(route[-1], target, ids, links)
        if hop is None:
            break
        route.append(hop)
    return route


def join_tree(
    p: int,
    home: int,
    edges: set[Edge],
    start: int | None,
    ids: Sequence[int],
    links: Mapping[int, Iterable[int]],
    *,
    as_printed: bool = False,
) -> None:
    """Algorithm 2: graft p onto the tree, starting at some subscriber in it (None: nobody is known).

    Phase 2 looks for "a grafting point lying on the top-down routing path from the root to that node" (§1). Lines 8-11
    test less: that the grafting point's next hop towards p, in the order that starts at the home, is its child. A link
    that an ancestor has and the grafting point has not may lead nearer to p; then the two differ (`as_printed`).
    """
    above = {child: parent for parent, child in edges}
    at = home if start is None else start  # phase 1
    while at != home and not _is_grafting_point(at, p, home, edges, ids, links, as_printed):  # phase 2
        at = above[at]
    edges |= set(pairwise(greedy_route(at, p, ids, links)))  # phase 3


def _is_grafting_point(
    at: int,
    p: int,
    home: int,
    edges: set[Edge],
    ids: Sequence[int],
    links: Mapping[int, Iterable[int]],
    as_printed: bool,
) -> bool:
    if at == p:
        return True  # it relays the topic already
    if clockwise(ids[home], ids[p]) < clockwise(ids[home], ids[at]):
        return False  # nothing of what at links to further on is below p
    hop = greedy_hop(at, p, ids, links)
    return hop is not None and (at, hop) in edges and (as_printed or at in greedy_route(home, p, ids, links))


def tree_of_joins(
    subscribers: Sequence[int],
    home: int,
    ids: Sequence[int],
    links: Mapping[int, Iterable[int]],
    choose: Callable[[list[int]], int],
    *,
    as_printed: bool = False,
) -> set[Edge]:
    """The edges after all subscribers have joined in this order, each through one that has, whom `choose` picks."""
    edges: set[Edge] = set()
    joined: list[int] = []
    for p in subscribers:
        join_tree(p, home, edges, choose(joined) if joined else None, ids, links, as_printed=as_printed)
        joined.append(p)
    return edges
