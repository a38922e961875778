"""Events on their way: what each subscriber and each relay of a topic receives.

Theory. Whoever gets an event for the first time passes it on to all its neighbours in the topic's graph
(`event_graph`) but the one it came from. So an edge on which the event arrived first carries one notification, any
other two: one each way. Time is counted in hops; nothing is lost.

Every event is published on the overlay as it is: `build_graph` makes the topic's graph, `flood` sends the event over
it, `account` counts what came of it. All counts are integers, so their sums do not depend on the order of events,
chunks or threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import degree_sum, new_scratch, room_for
from grapevine.sim.event_graph import Medium, TopicGraph, build_graph

_0, _1 = np.uint64(0), np.uint64(1)

# Columns of the result, one row per event.
EVENT_FIELDS = (
    "subscribers", "reached", "wanted", "duplicate", "unwanted", "relays", "ids", "payloads",
    "hops_sum", "hops_p50", "hops_p95", "hops_p99", "hops_max",
)  # fmt: skip
SUBSCRIBERS, REACHED, WANTED, DUPLICATE, UNWANTED, RELAYS, IDS, PAYLOADS = range(8)
HOPS_SUM, HOPS_P50, HOPS_P95, HOPS_P99, HOPS_MAX = range(8, 13)
# Columns of the load on nodes.
LOAD_FIELDS = "wanted", "duplicate", "unwanted"
LOAD_WANTED, LOAD_DUPLICATE, LOAD_UNWANTED = range(3)


class Publications(NamedTuple):
    """Events to publish, one after the other, and how each of them counts."""

    topics: Columns  # by event
    publishers: Columns  # by event; an online node
    weights: NDArray[np.int64]  # by topic: what an event adds to the load of nodes per notification
    counted: NDArray[np.bool_]  # by node: subscribers that count; the others still receive and pass on


class Totals(NamedTuple):
    """What all events together did, each times the weight of its topic."""

    load: NDArray[np.int64]  # [node, `LOAD_FIELDS`]: notifications
    deliveries: NDArray[np.int64]  # by hops: subscribers that count and were reached


class Arrivals(NamedTuple):
    """One event's way through a graph, by local number."""

    hops: Columns  # from the publisher; NOBODY: not reached
    sender: Columns  # from whom it came first; NOBODY: the publisher. Only where hops are
    received: Columns  # notifications


def no_totals(node_count: int) -> Totals:
    """Totals of no event; no way is longer than there are nodes."""
    return Totals(np.zeros((node_count, len(LOAD_FIELDS)), np.int64), np.zeros(node_count + 1, np.int64))


@njit
def flood(root: int, graph: TopicGraph, out: Arrivals) -> None:
    """Send an event over the graph, from its publisher's local number. `out` is written for the graph's nodes alone."""
    hops, sender, received = out.hops, out.sender, out.received
    count = len(graph.nodes)
    hops[:count] = NOBODY
    received[:count] = 0
    queue = np.empty(count, np.int32)
    queue[0], hops[root], sender[root] = root, 0, NOBODY
    head, tail = _0, _1
    while head < tail:
        i = np.uint32(queue[head])
        head += _1
        came_from, next_hops = sender[i], hops[i] + 1
        for at in range(np.uint64(graph.starts[i]), np.uint64(graph.starts[i + 1])):
            j = np.uint32(graph.edges[at])
            if graph.edges[at] != came_from:
                received[j] += 1
                if hops[j] == NOBODY:
                    hops[j], sender[j], queue[tail] = next_hops, i, j
                    tail += _1


@njit
def account(
    root: int,
    weight: int,
    graph: TopicGraph,
    arrivals: Arrivals,
    counted: NDArray[np.bool_],
    event: NDArray[np.int64],
    totals: Totals,
) -> None:
    """One event's row of the result (`EVENT_FIELDS`), and its share of the totals.

    Interested nodes receive the first copy as wanted and the others as duplicates; whatever uninterested nodes receive
    is unwanted, repeated or not. The publisher does not count as reached. `event` is overwritten, `totals` added to.

    On a flood every notification is an id, and who hears of an event pulls it; along a tree every notification is the
    event itself, and the lazy links carry ids.
    """
    load, pulls = totals.load, len(graph.lazy_starts) == 0
    size, hops, received = graph.size, arrivals.hops, arrivals.received
    event[:] = 0
    by_hops = np.zeros(len(graph.nodes) + 1, np.int64)
    for i in range(len(graph.nodes)):
        node = graph.nodes[i]
        if pulls:
            event[IDS] += received[i]
            event[PAYLOADS] += hops[i] > 0
        else:
            event[PAYLOADS] += received[i]
            if hops[i] != NOBODY:
                event[IDS] += graph.lazy_starts[i + 1] - graph.lazy_starts[i]
        if i < size:
            first = 1 if hops[i] > 0 else 0
            again = received[i] - first
            event[WANTED] += first
            event[DUPLICATE] += again
            load[node, LOAD_WANTED] += weight * first
            load[node, LOAD_DUPLICATE] += weight * again
            if i != root and counted[node]:
                event[SUBSCRIBERS] += 1
                if hops[i] > 0:
                    event[REACHED] += 1
                    event[HOPS_SUM] += hops[i]
                    by_hops[hops[i]] += 1
                    totals.deliveries[hops[i]] += weight
        elif received[i] > 0:
            event[UNWANTED] += received[i]
            event[RELAYS] += 1
            load[node, LOAD_UNWANTED] += weight * received[i]
    event[HOPS_P50] = _percentile(by_hops, event[REACHED], 50)
    event[HOPS_P95] = _percentile(by_hops, event[REACHED], 95)
    event[HOPS_P99] = _percentile(by_hops, event[REACHED], 99)
    event[HOPS_MAX] = _percentile(by_hops, event[REACHED], 100)


@njit
def _percentile(by_hops: NDArray[np.int64], total: int, percent: int) -> int:
    """The smallest number of hops within which so many percent were reached (nearest rank); 0 when none was."""
    rank, below = (total * percent + 99) // 100, 0
    for hops in range(len(by_hops)):
        below += by_hops[hops]
        if below >= rank:
            return hops
    return 0


@njit
def disseminate(
    some: tuple[int, int],
    publications: Publications,
    medium: Medium,
    events: NDArray[np.int64],
    totals: Totals,
) -> None:
    """Publish the events first … last-1, one at a time: rows of `events` ([event, field]), and sums in `totals`.

    Nothing that an event does has an influence on another, so the events of a run may be split over threads, each with
    totals of its own.
    """
    first, last = some
    topics, publishers, weights, counted = publications
    node_count = len(medium.ids)
    scratch, nodes, up = new_scratch(node_count), np.empty(node_count, np.int32), np.empty(node_count, np.int32)
    hops, sender, received = np.empty((3, node_count), np.int32)
    arrivals = Arrivals(hops, sender, received)
    for i in range(first, last):
        topic, publisher = topics[i], publishers[i]
        a, b = medium.topic_starts[topic], medium.topic_starts[topic + 1]
        scratch = room_for(scratch, degree_sum(medium.topic_nodes[a:b], medium.link_starts))
        graph = build_graph(topic, publisher, medium, scratch, nodes, up)
        root = scratch.local[publisher]
        flood(root, graph, arrivals)
        account(root, weights[topic], graph, arrivals, counted, events[i], totals)
        scratch.local[graph.nodes] = NOBODY
