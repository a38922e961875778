"""Interest-aware membership (Magnet §3.4): for every topic a small random sample of its subscribers' interests.

The subscribers of a topic form a tree over the control ring, a name-independent DHT: each routes towards the topic's
home, the first node after the topic's id. Samples travel up this tree. Whoever has more than k interests, its
own included, keeps k of them at random; what arrives at the home is the sample, and the home tells all subscribers
down the same tree. No two samplings of a run share a draw: a topic's sample is another one each time.
The control ring is a Chord (Stoica et al. 2001) with exact fingers: its upkeep is not Magnet's subject.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import INTEREST_SAMPLES, NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise
from grapevine.kernels.rng import absorb, below, draw

_ONE = np.uint64(1)


class ControlRing(NamedTuple):
    """Online nodes in the order of their hashed ids. A position counts from 0 in this order."""

    ids: Ids  # by position, ascending
    position: Columns  # by node; NOBODY: it is not online
    homes: NDArray[np.int64]  # by topic: the position of its home


def home_positions(ring: Ids, keys: Ids) -> NDArray[np.int64]:
    """The position on the ring (ascending ids) of the first node at or after each key."""
    return np.asarray(np.searchsorted(ring, keys) % max(len(ring), 1), np.int64)


@njit
def next_position(at: int, home: int, ring: Ids) -> int:
    """Chord: the next hop from a position to another, the home: the finger nearest to it that does not pass it. Fingers
    are the first nodes that are 2^j or more ids away."""
    left = clockwise(ring[at], ring[home])
    jump = _ONE
    while jump <= left >> _ONE:
        jump <<= _ONE
    return int(np.searchsorted(ring, ring[at] + jump) % len(ring))


@njit
def route_length(at: int, home: int, ring: Ids) -> int:
    """Hops of Chord's route between two positions."""
    hops = 0
    while at != home:
        at = next_position(at, home, ring)
        hops += 1
    return hops


@njit
def count_lookups(starts: Columns, ends: Columns, control: ControlRing) -> int:
    """Hops of the routes over the control ring from each of the nodes `starts` to that of `ends` beside it; of nodes
    that are not online there are none."""
    hops = 0
    for i in range(len(starts)):
        at, end = control.position[starts[i]], control.position[ends[i]]
        if at != NOBODY and end != NOBODY:
            hops += route_length(int(at), int(end), control.ids)
    return hops


@njit
def count_questions(nodes: Columns, profiles: Profiles, known: Columns, control: ControlRing) -> tuple[int, int]:
    """Messages by which these online nodes ask the homes of their topics for samples (known[t] of topic t), with the
    answers; and the interests that these carry."""
    messages, interests = 0, 0
    for p in nodes:
        for topic in profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]:
            messages += route_length(int(control.position[p]), int(control.homes[topic]), control.ids) + 1
            interests += known[topic]
    return messages, interests


@njit
def sample_topics(
    seed: int,
    sampling: int,
    topics: tuple[int, int],
    control: ControlRing,
    subscribers: tuple[Starts, Columns],
    samples: NDArray[np.int32],
    size: Columns,
) -> tuple[int, int]:
    """One sampling round of the topics first … last-1: samples[t] gets size[t] of the topic's online subscribers.

    At most as many as `samples` has columns. What stood there before is not used. `sampling` is the number of the
    round, which no other round of the run has. Returns the messages, one up and one down on every edge of a topic's
    tree, and the interests that they carry.
    """
    messages, interests = 0, 0
    starts, columns = subscribers
    ring, position, homes = control.ids, control.position, control.homes
    k = samples.shape[1]
    local = np.full(len(ring), NOBODY, np.int32)
    for topic in range(topics[0], topics[1]):
        members = columns[starts[topic] : starts[topic + 1]]
        tree, up = _climb_all(members, int(homes[topic]), control, local)
        away = np.empty(len(tree), np.uint64)
        for i in range(len(tree)):
            away[i] = clockwise(ring[tree[i]], ring[homes[topic]])
        held = np.empty((len(tree), k), np.int32)
        count, offered = np.zeros((2, len(tree)), np.int32)
        for i in range(len(members)):
            if position[members[i]] != NOBODY:
                at = local[position[members[i]]]
                held[at, 0] = members[i]
                count[at] = offered[at] = 1
        for i in np.argsort(away)[::-1]:  # children are farther from home than their parents
            j = up[i]
            if j == NOBODY:
                continue
            messages, interests = messages + 2, interests + count[i]
            for s in range(count[i]):
                bits = draw(seed, INTEREST_SAMPLES + sampling, topic, held[i, s])
                _offer(held[i, s], bits, j, k, held, count, offered)
        size[topic] = 0
        if len(tree) > 0:
            root = local[homes[topic]]
            size[topic] = count[root]
            samples[topic, : count[root]] = held[root, : count[root]]
            interests += (len(tree) - 1) * count[root]
        for i in tree:
            local[i] = NOBODY
    return messages, interests


@njit
def _climb_all(members: Columns, home: int, control: ControlRing, local: Columns) -> tuple[NDArray[np.int64], Columns]:
    """The positions on the routes from the members to the home, and for each the index of the next one (NOBODY: home).

    `local` has the index of every position that is in the answer; the caller clears it.
    """
    ring, position = control.ids, control.position
    tree, up = np.empty(len(ring), np.int64), np.empty(len(ring), np.int32)
    count = 0
    for member in members:
        at = int(position[member])
        if at == NOBODY:
            continue
        below_it = NOBODY
        while True:
            known = local[at] != NOBODY
            if not known:
                local[at] = count
                tree[count], up[count] = at, NOBODY
                count += 1
            if below_it != NOBODY:
                up[below_it] = local[at]
            if known or at == home:
                break
            below_it = int(local[at])
            at = next_position(at, home, ring)
    return tree[:count].copy(), up[:count].copy()


@njit
def _offer(
    item: int, bits: np.uint64, at: int, k: int, held: NDArray[np.int32], count: Columns, offered: Columns
) -> None:
    """Keep k of all that are offered, each with the same chance (reservoir)."""
    offered[at] += 1
    if count[at] < k:
        held[at, count[at]] = item
        count[at] += 1
        return
    chosen = below(absorb(bits, at), offered[at])
    if chosen < k:
        held[at, chosen] = item
