"""Topic-connected overlays designed from full knowledge: add the best edge until every topic is connected.

The contribution of an edge is the number of topics that both ends want and whose graph it would join: the two ends lie
in different components of it. Three rules choose the next edge:

- GM (Chockler et al., PODC 2007): the largest contribution. Few edges in all, but hubs.
- MinMaxODA (Onus & Richa, INFOCOM 2009): the largest contribution among the edges that leave the largest degree
  lowest.
- LowODA (Onus & Richa, ICDCS 2010): GM's edge if it contributes more than ρ times as much as MinMaxODA's, else that.

Cost: every pair of nodes loses each common topic at most once, when the components of the two are merged, so keeping
all contributions up to date takes O(|V|² |T|) steps in all. The best edge is found through a bound per node, the best
of its row when it was last looked at: contributions only fall, so a bound that still holds is the best, and only the
largest bound has to be checked.

Invariants of a `Design`:
1. contribution[p, q] is the number of common topics of p and q in which the two lie in different components; it never
   grows, and is 0 for the ends of every edge that was added.
2. A component is a list: its label is one of its entries, at which the list begins; `following` leads through the rest.
3. Every edge that a rule adds joins two components of a topic at least, so there are fewer edges than entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import EDGE_TIES
from grapevine.kernels.csr import Columns, Starts, transpose
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream

GM, MINMAX_ODA, LOW_ODA = range(3)  # rules
SHADOW, NEIGHBOURS, OVERLAY = range(3)  # how far OMen's coordinator sees (`mend`)
SIGHTS = {"shadow": SHADOW, "neighbours": NEIGHBOURS, "overlay": OVERLAY}
_33 = np.uint64(33)
_NONE = -1


Edges = tuple[Columns, Columns]  # lower ends, higher ends


class Design(NamedTuple):
    """An overlay in the making. Nodes and topics are numbered from 0; entries are (node, topic) pairs in node order."""

    contribution: NDArray[np.int16]  # [node, node], symmetric
    starts: Starts  # node → entries
    topics: Columns
    label: Columns  # entry → component of its topic, named by one of its entries
    following: Columns  # entry → the next entry of the same component, or _NONE
    size: Columns  # component → entries
    owner: Columns  # entry → node
    degree: Columns


class Bounds(NamedTuple):
    """For each node the best edge when its row was last searched: no edge of its row is better now."""

    key: NDArray[np.int64]  # `edge_key` of that edge; -1: none; at first the largest number there is
    partner: Columns  # its other end; _NONE: not known


@njit
def begin(starts: Starts, topics: Columns, topic_count: int) -> Design:
    """A design without edges, in which every subscriber is a component of its topic.

    The nodes' topics are rows (`starts`, `topics`) of numbers below `topic_count`, ascending.
    """
    nodes, entries = len(starts) - 1, len(topics)
    owner = np.empty(entries, np.int32)
    for p in range(nodes):
        owner[starts[p] : starts[p + 1]] = p
    contribution = np.zeros((nodes, nodes), np.int16)
    by_topic, members = transpose(starts, topics, topic_count)
    for topic in range(topic_count):
        some = members[by_topic[topic] : by_topic[topic + 1]]
        for i in range(len(some)):
            for j in range(i):
                contribution[some[i], some[j]] += 1
                contribution[some[j], some[i]] += 1
    label, following = np.arange(entries).astype(np.int32), np.full(entries, _NONE, np.int32)
    return Design(
        contribution, starts, topics, label, following, np.ones(entries, np.int32), owner, np.zeros(nodes, np.int32)
    )


@njit
def add_edge(p: int, q: int, design: Design) -> int:
    """Add the edge between p and q: joins the components of every common topic; returns how many were joined."""
    joined, i, j = 0, design.starts[p], design.starts[q]
    while i < design.starts[p + 1] and j < design.starts[q + 1]:
        if design.topics[i] < design.topics[j]:
            i += 1
        elif design.topics[i] > design.topics[j]:
            j += 1
        else:
            joined += _merge(design.label[i], design.label[j], design)
            i += 1
            j += 1
    design.degree[p] += 1
    design.degree[q] += 1
    return joined


@njit
def add_edges(sources: Columns, targets: Columns, design: Design) -> None:
    """Add edges that exist already, given by their ends."""
    for i in range(len(sources)):
        add_edge(sources[i], targets[i], design)


@njit
def _merge(a: int, b: int, design: Design) -> int:
    """Make two components of a topic, given by their labels, one; pairs across them lose this topic. Returns 1, or 0
    when they were the same."""
    if a == b:
        return 0
    if design.size[a] < design.size[b]:
        a, b = b, a
    at, last = b, b
    while at != _NONE:
        other = a
        while other != _NONE:
            design.contribution[design.owner[at], design.owner[other]] -= 1
            design.contribution[design.owner[other], design.owner[at]] -= 1
            other = design.following[other]
        last = at
        at = design.following[at]
    at = b
    while at != _NONE:
        design.label[at] = a
        at = design.following[at]
    design.following[last] = design.following[a]
    design.following[a] = b
    design.size[a] += design.size[b]
    return 1


@njit
def edge_key(seed: int, p: int, q: int, contribution: int) -> np.int64:
    """Larger is better: the contribution, then a hash of the pair, which is the same from both ends."""
    tie = absorb(stream(seed, EDGE_TIES, min(p, q)), max(p, q))
    return np.int64(contribution) << 31 | np.int64(tie >> _33)


@njit
def _search_row(seed: int, p: int, most: int, design: Design, bounds: Bounds) -> None:
    """The best edge of p to a node of a degree below `most`, into the bounds."""
    best, key, row = _NONE, np.int64(-1), design.contribution[p]
    least = np.int16(1)
    for q in range(len(row)):
        if row[q] >= least and design.degree[q] < most:
            found = edge_key(seed, p, q, row[q])
            if found > key:
                best, key, least = q, found, row[q]
    bounds.key[p], bounds.partner[p] = key, best


@njit
def _best(seed: int, most: int, design: Design, bounds: Bounds) -> int:
    """The node with the best edge among nodes of degrees below `most`; _NONE when nothing contributes."""
    while True:
        p = int(np.argmax(bounds.key))
        if bounds.key[p] < 0:
            return _NONE
        q = bounds.partner[p]
        if design.degree[p] >= most:
            bounds.key[p] = -1
        elif (
            q != _NONE
            and design.degree[q] < most
            and np.int64(design.contribution[p, q]) == bounds.key[p] >> np.int64(31)
        ):
            return p
        else:
            _search_row(seed, p, most, design, bounds)


@njit
def connect_topics(seed: int, rule: int, rho: float, design: Design) -> tuple[Columns, Columns]:
    """Add edges by the rule until every topic is connected; returns their lower and higher ends, in the order of
    choice.

    `rho` is LowODA's ρ; the other rules do not look at it. Ties are broken by a hash of the two ends and the seed.
    """
    nodes = len(design.starts) - 1
    if nodes == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    room = max(len(design.topics), 1)  # every edge joins two components at least once
    sources, targets, count = np.empty(room, np.int32), np.empty(room, np.int32), 0
    anywhere = Bounds(np.full(nodes, np.iinfo(np.int64).max, np.int64), np.full(nodes, _NONE, np.int32))
    low = Bounds(anywhere.key.copy(), anywhere.partner.copy())
    unlimited, largest = np.iinfo(np.int32).max, 0  # degrees may count links to nodes that are not here
    for p in range(nodes):
        largest = max(largest, design.degree[p])
    while True:
        p = _NONE
        if rule != GM:
            p = _best(seed, largest, design, low)
        if p == _NONE or rule == LOW_ODA:
            u = _best(seed, unlimited, design, anywhere)
            if u == _NONE:
                return sources[:count], targets[:count]
            most = np.float64(anywhere.key[u] >> np.int64(31))
            if p == _NONE or most > rho * np.float64(low.key[p] >> np.int64(31)):
                p, q = u, int(anywhere.partner[u])
            else:
                q = int(low.partner[p])
        else:
            q = int(low.partner[p])
        add_edge(p, q, design)
        sources[count], targets[count] = min(p, q), max(p, q)
        count += 1
        if max(design.degree[p], design.degree[q]) > largest:
            largest = max(design.degree[p], design.degree[q])
            low.key[:] = anywhere.key  # more nodes may take part again: what bounds all edges bounds theirs
            low.partner[:] = _NONE


def design(
    seed: int, rule: int, rho: float, interests: tuple[Starts, Columns], topic_count: int, existing: Edges
) -> Edges:
    """An overlay in which every topic is connected: the existing edges, then those that the rule adds.

    `interests` are rows of ascending topics below `topic_count`, of nodes that are numbered from 0.
    """
    starts, topics = interests
    made = begin(starts, topics, topic_count)
    add_edges(*existing, made)
    sources, targets = connect_topics(seed, rule, rho, made)
    return np.concatenate([existing[0], sources]), np.concatenate([existing[1], targets])


@njit
def mend(
    seed: int,
    rho: float,
    sight: int,
    shadow: Columns,
    wanted: Columns,
    profiles: Profiles,
    links: tuple[Starts, Columns],
    degree: Columns,
) -> tuple[Columns, Columns, int]:
    """OMen Algorithm 1: the edges that LowODA adds among the shadow set until it connects the wanted topics.

    Called by OMen's coordinator of a churn event. `shadow` (nodes) and `wanted` (topics) ascend; `links` are the tables
    of all nodes, with free slots below 0. Existing links count as far as `sight` goes: SHADOW, those inside the shadow
    set; NEIGHBOURS, also those to neighbours, if two members have one in common; OVERLAY, all. For the rule, links to
    anybody count (`degree`). Returns the ends of the new edges, and how many nodes, topic by topic, a search along
    links had to reach to find out what is connected.
    """
    size = len(shadow)
    starts, room = np.zeros(size + 1, np.int64), 0
    for i in range(size):
        room += profiles.starts[shadow[i] + 1] - profiles.starts[shadow[i]]
    topics, count = np.empty(room, np.int32), 0
    for i in range(size):
        at = 0
        for topic in profiles.topics[profiles.starts[shadow[i]] : profiles.starts[shadow[i] + 1]]:
            while at < len(wanted) and wanted[at] < topic:
                at += 1
            if at < len(wanted) and wanted[at] == topic:
                topics[count] = at
                count += 1
        starts[i + 1] = count
    made = begin(starts, topics[:count], len(wanted))
    by_topic, members = transpose(starts, topics[:count], len(wanted))
    entry, seen = np.full(len(degree), _NONE, np.int32), np.full(len(degree), _NONE, np.int32)
    reached = 0
    for at in range(len(wanted)):
        interested = members[by_topic[at] : by_topic[at + 1]]
        for i in interested:
            entry[shadow[i]] = starts[i] + np.searchsorted(topics[starts[i] : starts[i + 1]], at)
        reached += _join_connected((at, wanted[at]), sight, shadow[interested], profiles, links, (entry, seen), made)
        for i in interested:
            entry[shadow[i]] = _NONE
    for i in range(size):
        made.degree[i] = degree[shadow[i]]
    sources, targets = connect_topics(seed, LOW_ODA, rho, made)
    return shadow[sources], shadow[targets], reached


@njit
def _join_connected(
    wanted: tuple[int, int],
    sight: int,
    members: Columns,
    profiles: Profiles,
    links: tuple[Starts, Columns],
    marks: tuple[Columns, Columns],
    design: Design,
) -> int:
    """Join the members whom existing links connect in one topic: a search from one after the other, until all are
    found. Returns how many nodes were reached, other than those from which searches began.

    `wanted` is the topic's position among the wanted ones, and the topic. `marks` has an entry per node of the network:
    the design's entry of a member (_NONE: no member), and the position of the last topic that the node was reached in.
    """
    at, topic = wanted
    entry, seen = marks
    rows, columns = links
    queue, left, reached = [np.int32(0) for _ in range(0)], len(members), 0
    for root in members:
        if left <= 0:
            break
        if seen[root] == at:
            continue
        queue.clear()
        queue.append(root)
        seen[root] = at
        left -= 1
        head = 0
        while head < len(queue) and left > 0:
            p = queue[head]
            head += 1
            for q in columns[rows[p] : rows[p + 1]]:
                if q < 0 or seen[q] == at:
                    continue
                if entry[q] != _NONE:
                    _merge(design.label[entry[root]], design.label[entry[q]], design)
                    left -= 1
                else:
                    if sight == SHADOW or (sight == NEIGHBOURS and entry[p] == _NONE):
                        continue
                    mine = profiles.topics[profiles.starts[q] : profiles.starts[q + 1]]
                    found = np.searchsorted(mine, topic)
                    if found == len(mine) or mine[found] != topic:
                        continue
                seen[q] = at
                reached += 1
                queue.append(q)
    return reached
