"""Subscriptions of a range of nodes under a synthetic model. A node's topics depend on (seed, node) alone.

Called by the models of `synthetic/`, which check their parameters. Nodes are first … last-1; a function returns their
topics as rows, ascending, unless it says otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.choose import choose_uniform, choose_weighted, pick
from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below, draw, stream, unit

# The `round` word of the hash: one number per purpose keeps the draws of one node independent of each other.
MODES, TOPICS, SIZES, POSITIONS, INITIAL, GROWTH, FOLLOWERS = range(1, 8)


class Sizes(NamedTuple):
    """How many topics nodes have."""

    smallest: int
    cumulative: NDArray[np.float64]  # running sum of how likely `smallest`, `smallest` + 1, … topics are


class Modes(NamedTuple):
    """Groups of equally many consecutive topics, all with the same popularity inside."""

    total: int
    per_node: int  # modes that a node chooses from
    weights: NDArray[np.float64]  # how likely the first, second, … topic of a mode is


class Hierarchy(NamedTuple):
    """Topics as leaves of a binary tree, numbered from left to right, and what attracts nodes to them."""

    node_order: Columns  # all nodes, in the order of their first subscriptions
    topic_order: Columns  # all topics, the most popular first
    topic_cumulative: NDArray[np.float64]  # running sum of the popularity of topics in this order
    level_cumulative: NDArray[np.float64]  # running sum of how likely a new topic is 1, 2, … levels away
    nodes_in_turn: int  # the first so many subscriptions are of the nodes in their order
    topics_in_turn: int  # the first so many subscriptions are to the topics in their order


@njit
def subscribe_by_bucket(
    seed: int, first: int, last: int, topics: int, buckets: int, buckets_per_node: int, topics_per_bucket: int
) -> tuple[Starts, Columns]:
    """Choose buckets of consecutive topics, then equally many topics in each, all uniformly."""
    size = topics // buckets
    per_node = buckets_per_node * topics_per_bucket
    starts = np.arange(last - first + 1) * per_node
    out = np.empty((last - first) * per_node, np.int32)
    chosen, bucket_marks = np.empty(buckets_per_node, np.int32), np.full(buckets, -1)
    marks, stamp = np.full(size, -1), 0
    for node in range(first, last):
        choose_uniform(stream(seed, MODES, node), buckets_per_node, buckets, bucket_marks, node, chosen)
        row = out[starts[node - first] : starts[node - first + 1]]
        for i in range(buckets_per_node):
            part = row[i * topics_per_bucket : (i + 1) * topics_per_bucket]
            state = absorb(stream(seed, TOPICS, node), chosen[i])
            choose_uniform(state, topics_per_bucket, size, marks, stamp, part)
            part += chosen[i] * size
            stamp += 1
        row.sort()
    return starts, out


@njit
def subscribe_by_mode(seed: int, first: int, last: int, sizes: Sizes, modes: Modes) -> tuple[Starts, Columns]:
    """Draw the number of topics, choose modes uniformly, then topics in their union by weight.

    One mode of one is plain choice by popularity.
    """
    modes_per_node, mode_weights = modes.per_node, modes.weights
    size = len(mode_weights)
    weights = np.empty(size * modes_per_node)
    for i in range(modes_per_node):
        weights[i * size : (i + 1) * size] = mode_weights
    cumulative = np.cumsum(weights)
    starts = np.zeros(last - first + 1, np.int64)
    for node in range(first, last):
        more = pick(stream(seed, SIZES, node), 0, sizes.cumulative)
        starts[node - first + 1] = starts[node - first] + sizes.smallest + more
    out = np.empty(starts[-1], np.int32)
    chosen, mode_marks = np.empty(modes_per_node, np.int32), np.full(modes.total, -1)
    marks = np.full(len(weights), -1)
    for node in range(first, last):
        choose_uniform(stream(seed, MODES, node), modes_per_node, modes.total, mode_marks, node, chosen)
        row = out[starts[node - first] : starts[node - first + 1]]
        choose_weighted(stream(seed, TOPICS, node), len(row), weights, cumulative, marks, node, row)
        for i in range(len(row)):
            row[i] = chosen[row[i] // size] * size + row[i] % size
        row.sort()
    return starts, out


@njit
def subscribe_to_users(
    seed: int, first: int, last: int, nodes: int, sizes: Sizes, appeal: NDArray[np.float64]
) -> tuple[Starts, Columns]:
    """Every node's topic is itself. Each draws how many others it follows, and how many should follow it, from the same
    sizes, independently; then it chooses others by their appeal, which is given for every number of followers wanted.

    Sizes are below `nodes`, and everybody has some appeal.
    """
    weights = np.empty(nodes)
    for node in range(nodes):
        weights[node] = appeal[pick(stream(seed, FOLLOWERS, node), 0, sizes.cumulative)]
    cumulative = np.cumsum(weights)
    starts = np.zeros(last - first + 1, np.int64)
    for node in range(first, last):
        more = pick(stream(seed, SIZES, node), 0, sizes.cumulative)
        starts[node - first + 1] = starts[node - first] + sizes.smallest + more
    out = np.empty(starts[-1], np.int32)
    marks = np.full(nodes, -1)
    for node in range(first, last):
        marks[node] = node  # nobody follows itself
        row = out[starts[node - first] : starts[node - first + 1]]
        choose_weighted(stream(seed, TOPICS, node), len(row), weights, cumulative, marks, node, row)
        row.sort()
    return starts, out


@njit
def positions(seed: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Uniform positions (x, y) of the nodes 0 … nodes-1 in the unit square."""
    x, y = np.empty(nodes), np.empty(nodes)
    for node in range(nodes):
        x[node] = unit(draw(seed, POSITIONS, node, 0))
        y[node] = unit(draw(seed, POSITIONS, node, 1))
    return x, y


@njit
def subscribe_by_distance(seed: int, first: int, last: int, nodes: int, radius: float) -> tuple[Starts, Columns]:
    """Every node's topic is itself; it subscribes to the others within the radius. A grid keeps it near-linear."""
    x, y = positions(seed, nodes)
    side = max(1, min(int(1.0 / radius), 2048))
    cell = np.empty(nodes, np.int32)
    for node in range(nodes):
        cell[node] = int(y[node] * side) * side + int(x[node] * side)
    cell_starts = count_rows(cell, side * side)
    members = fill_rows(cell, np.arange(nodes).astype(np.int32), cell_starts)
    starts = np.zeros(last - first + 1, np.int64)
    out = np.empty(0, np.int32)
    for filling in range(2):  # count, then fill
        if filling:
            out = np.empty(starts[-1], np.int32)
        for node in range(first, last):
            found = starts[node - first]
            column, line = int(x[node] * side), int(y[node] * side)
            for near_line in range(max(0, line - 1), min(side, line + 2)):
                for near_column in range(max(0, column - 1), min(side, column + 2)):
                    here = near_line * side + near_column
                    for other in members[cell_starts[here] : cell_starts[here + 1]]:
                        dx, dy = x[other] - x[node], y[other] - y[node]
                        if other != node and dx * dx + dy * dy <= radius * radius:
                            if filling:
                                out[found] = other
                            found += 1
            if filling:
                out[starts[node - first] : found].sort()
            else:
                starts[node - first + 1] = found
    return starts, out


@njit
def subscribe_by_hierarchy(seed: int, initial: int, total: int, hierarchy: Hierarchy) -> tuple[Columns, Columns]:
    """Distinct pairs (node, topic) of all nodes, in the order in which they arise: one sequential process.

    Fewer than `total` when nothing new is to be had in a thousand attempts a pair. The first `initial` are at random:
    some nodes and topics in turn, as the hierarchy says, then nodes uniformly and topics by popularity. All
    others copy: a random pair (which is a topic by its popularity and one of its subscribers) leads its node to a topic
    some levels up and down the binary tree.
    """
    node_order, topic_order, topic_cumulative, level_cumulative, nodes_in_turn, topics_in_turn = hierarchy
    nodes, topics = len(node_order), len(topic_order)
    out_node, out_topic = np.empty(total, np.int32), np.empty(total, np.int32)
    slots = 1
    while slots < 2 * total:
        slots *= 2
    taken = np.full(slots, -1)
    found, step = 0, 0
    while found < total and step < 1000 * total:
        if found < initial:
            state = absorb(stream(seed, INITIAL, 0), step)
            topic = topic_order[step if step < topics_in_turn else pick(state, 0, topic_cumulative)]
            node = node_order[step] if step < nodes_in_turn else np.int32(below(absorb(state, 1), nodes))
        else:
            state = absorb(stream(seed, GROWTH, 0), step)
            pair = below(absorb(state, 0), found)
            node, level = out_node[pair], pick(state, 1, level_cumulative)  # level 0: the sibling
            # The leaves at distance level+1 share the bits above it, differ in bit `level`, and vary below it.
            topic = np.int32(((out_topic[pair] >> level) ^ 1) << level | below(absorb(state, 2), 1 << level))
        step += 1
        key = np.int64(node) * topics + topic
        slot = np.int64(draw(0, 0, int(key), 0) & np.uint64(slots - 1))
        while taken[slot] >= 0 and taken[slot] != key:
            slot = (slot + 1) & (slots - 1)
        if taken[slot] < 0:
            taken[slot] = key
            out_node[found], out_topic[found] = node, topic
            found += 1
    return out_node[:found], out_topic[:found]
