"""Coverage: choose neighbours so that each of a node's topics is shared with at least K of them (SpiderCast §2).

The rules work on `need`, one number per topic, zero between calls. `lay_need` writes, for a node and its neighbours,
how many more neighbours each of the node's topics needs: K minus the neighbours that have it. Topics of neighbours that
the node does not want come out negative, so what is positive is wanted and uncovered, and among a neighbour's topics
what is zero is wanted and covered exactly K times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.candidates import Candidates
from grapevine.blocks.consent import has_spare_links, is_short_of_links
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import MEMBERSHIP, NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.overlap import common
from grapevine.kernels.rng import absorb, below, stream, unit

Need = NDArray[np.int64]

_33 = np.uint64(33)
_TRIES = 100  # draws for a random node before looking at everybody
_TAKEN = np.int32(-(2**30))  # a gain that no node can make up for


class Membership(NamedTuple):
    """Whom nodes know (§2.2): the online nodes, by topic; each node knows each other one with probability `share`."""

    seed: int
    share: float  # 1: everybody knows everybody
    alive: NDArray[np.bool_]  # by node
    online: Columns  # the nodes that are alive, ascending
    topic_starts: Starts  # topic → its online subscribers in `topic_nodes`
    topic_nodes: Columns


class Gains(NamedTuple):
    """Scratch of a search for the next neighbour: gain per node (zero between calls), and the nodes that have one."""

    gain: Columns
    touched: Columns


@njit
def lay_need(p: int, k: int, neighbours: Columns, profiles: Profiles, need: Need) -> None:
    """Write what p needs when these are its neighbours (NOBODY: a free slot) into `need`, until `clear_need`."""
    for topic in profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]:
        need[topic] += k
    for q in neighbours:
        if q != NOBODY:
            for topic in profiles.topics[profiles.starts[q] : profiles.starts[q + 1]]:
                need[topic] -= 1


@njit
def clear_need(p: int, neighbours: Columns, profiles: Profiles, need: Need) -> None:
    """Undo `lay_need` for the same node and neighbours."""
    reset(p, profiles, need)
    for q in neighbours:
        if q != NOBODY:
            reset(q, profiles, need)


@njit
def reset(row: int, profiles: Profiles, need: Need) -> None:
    """Set the need of one node's topics to zero."""
    for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
        need[topic] = 0


@njit
def gain(other: int, profiles: Profiles, need: Need) -> int:
    """How many of the topics that still need a neighbour this node would serve."""
    count = 0
    for at in range(np.uint64(profiles.starts[other]), np.uint64(profiles.starts[other + 1])):
        count += need[np.uint32(profiles.topics[at])] > 0
    return count


@njit
def uncovered(p: int, profiles: Profiles, need: Need) -> int:
    """CALCKUNCOVERED (Fig. 3): the topics of p that fewer than K neighbours have."""
    return gain(p, profiles, need)


@njit
def loss(neighbour: int, profiles: Profiles, need: Need) -> int:
    """How many topics would become uncovered without this neighbour."""
    count = 0
    for at in range(np.uint64(profiles.starts[neighbour]), np.uint64(profiles.starts[neighbour + 1])):
        count += need[np.uint32(profiles.topics[at])] == 0
    return count


@njit
def knows(p: int, q: int, members: Membership) -> bool:
    """Whether q is online and in p's interest view, which is drawn once (§3.7)."""
    if not members.alive[q]:
        return False
    return members.share >= 1.0 or unit(absorb(stream(members.seed, MEMBERSHIP, p), q)) < members.share


@njit
def count_gains(p: int, taken: Columns, profiles: Profiles, members: Membership, need: Need, scratch: Gains) -> int:
    """The gain of every node that has one, by walking the subscribers of each topic in need; returns how many have one.

    They are the first entries of `scratch.touched`, in the order in which they were met; p and those `taken` are not
    among them. So a search costs the online subscribers of the uncovered topics: for s of T topics about s²N/T steps at
    first, when everything is uncovered, and less with every neighbour.
    """
    shared, touched = scratch.gain, scratch.touched
    shared[p] = _TAKEN
    for q in taken:
        if q != NOBODY:
            shared[q] = _TAKEN
    found = 0
    for topic in profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]:
        if need[topic] > 0:
            for at in range(members.topic_starts[topic], members.topic_starts[topic + 1]):
                q = members.topic_nodes[at]
                if shared[q] == 0:
                    touched[found] = q
                    found += 1
                shared[q] += 1
    return found


@njit
def clear_gains(p: int, taken: Columns, found: int, scratch: Gains) -> None:
    """Undo `count_gains`, which returned `found`."""
    scratch.gain[p] = 0
    for q in taken:
        if q != NOBODY:
            scratch.gain[q] = 0
    for q in scratch.touched[:found]:
        scratch.gain[q] = 0


@njit
def next_greedy(
    p: int,
    ties: np.uint64,
    taken: Columns,
    profiles: Profiles,
    members: Membership,
    need: Need,
    scratch: Gains,
) -> int:
    """NEXTGREEDYCOVERAGENODE (Fig. 5): who serves most of the uncovered topics; the hash decides ties.

    NOBODY when no known node, except those `taken`, serves any.
    """
    found = count_gains(p, taken, profiles, members, need, scratch)
    best, most, tie = NOBODY, np.int32(0), np.uint64(0)
    for q in scratch.touched[:found]:
        gained = scratch.gain[q]
        if gained < most or not knows(p, q, members):
            continue
        hashed = absorb(ties, q)
        if gained > most or hashed > tie:
            best, most, tie = int(q), gained, hashed
    clear_gains(p, taken, found, scratch)
    return best


@njit
def next_random(
    p: int,
    bits: np.uint64,
    taken: Columns,
    profiles: Profiles,
    members: Membership,
    need: Need,
    scratch: Gains,
) -> int:
    """NEXTRANDOMCOVERAGENODE (Fig. 5): any known node that serves an uncovered topic, with equal chance.

    NOBODY when no known node, except those `taken`, serves any.
    """
    found = count_gains(p, taken, profiles, members, need, scratch)
    able = 0
    for q in scratch.touched[:found]:
        able += knows(p, q, members)
    chosen, skip = NOBODY, below(bits, able) if able > 0 else 0
    for q in scratch.touched[:found]:
        if knows(p, q, members):
            if skip == 0:
                chosen = int(q)
                break
            skip -= 1
    clear_gains(p, taken, found, scratch)
    return chosen


@njit
def next_stranger(p: int, bits: np.uint64, taken: Columns, members: Membership) -> int:
    """NEXTRANDOMNODE (§3.9.1): any known node, whatever its interest, with equal chance.

    NOBODY when p knows no other node, except those `taken`. Draws from all who are online nearly always meet one at
    once; in a small view they may not, and then those who are known are counted.
    """
    for attempt in range(_TRIES if len(members.online) > 0 else 0):
        q = int(members.online[below(absorb(bits, attempt), len(members.online))])
        if _is_stranger(p, q, taken, members):
            return q
    able = 0
    for q in members.online:
        able += _is_stranger(p, q, taken, members)
    skip = below(absorb(bits, _TRIES), able) if able > 0 else 0
    for q in members.online:
        if _is_stranger(p, q, taken, members):
            if skip == 0:
                return int(q)
            skip -= 1
    return NOBODY


@njit
def _is_stranger(p: int, q: int, taken: Columns, members: Membership) -> bool:
    """Whether p knows q and may ask it."""
    return q != p and knows(p, q, members) and not holds(taken, q)


@njit
def holds(row: Columns, node: int) -> bool:
    """Whether the node is among the row's entries."""
    return bool((row == node).any())


@njit
def disconnect_candidate(
    neighbours: Columns,
    degree: Columns,
    target: Columns,
    ties: np.uint64,
    profiles: Profiles,
    need: Need,
) -> int:
    """DISCONNECTCANDIDATE (Fig. 3): of the neighbours with more links than they need, one whose loss costs least.

    `degree` and `target` are those of all nodes, as heartbeats told. The hash decides ties. NOBODY when no neighbour
    has more than it needs.
    """
    best, least, tie = NOBODY, 0, np.uint64(0)
    for q in neighbours:
        if q == NOBODY or not has_spare_links(degree[q], target[q]):
            continue
        lost, hashed = loss(q, profiles, need), absorb(ties, q)
        if best == NOBODY or lost < least or (lost == least and hashed > tie):
            best, least, tie = int(q), lost, hashed
    return best


@njit
def redirect_candidate(
    asking: int,
    neighbours: Columns,
    degree: Columns,
    target: Columns,
    how: tuple[int, bool],
    ties: np.uint64,
    profiles: Profiles,
) -> int:
    """§2.3.1, Redirect: of the neighbours below their target, the one that shares most topics with the asking node.

    `how` is the margin, and whether it counts (Fig. 4). The hash decides ties. NOBODY when every neighbour has its
    target.
    """
    margin, printed = how
    mine = profiles.topics[profiles.starts[asking] : profiles.starts[asking + 1]]
    best, most, tie = NOBODY, 0, np.uint64(0)
    for q in neighbours:
        if q in (NOBODY, asking) or not is_short_of_links(degree[q], target[q], margin, printed):
            continue
        shared = common(mine, profiles.topics[profiles.starts[q] : profiles.starts[q + 1]])
        hashed = absorb(ties, q)
        if best == NOBODY or shared > most or (shared == most and hashed > tie):
            best, most, tie = int(q), shared, hashed
    return best


@njit
def choose_greedily(
    p: int,
    k: int,
    ties: np.uint64,
    pool: Candidates,
    profiles: Profiles,
    scratch: tuple[Need, NDArray[np.int64]],
    picks: Columns,
) -> None:
    """Fill `picks` with positions in the pool, each serving most of the topics that fewer than k earlier picks serve.

    The hash decides ties; unused picks are NOBODY. Ends when nothing is gained or `picks` is full. Gains only fall as
    picks are made, so a gain computed earlier is a bound: the best candidate is recomputed until its gain stands (lazy
    greedy), instead of all after every pick. `scratch` is need per topic (all zero before and after) and a key per
    candidate.
    """
    need, keys = scratch
    lay_need(p, k, picks[:0], profiles, need)
    count = pool.size[0]
    for at in range(count):
        tie = np.int64(absorb(ties, pool.nodes[at]) >> _33)
        keys[at] = np.int64(gain(pool.nodes[at], profiles, need)) << 31 | tie
    picked = 0
    while picked < len(picks):
        best = -1
        for at in range(count):
            if best < 0 or keys[at] > keys[best]:
                best = at
        if best < 0 or keys[best] >> 31 <= 0:
            break
        now = gain(pool.nodes[best], profiles, need)
        if now < keys[best] >> 31:
            keys[best] = np.int64(now) << 31 | keys[best] & 0x7FFFFFFF
            continue
        picks[picked] = best
        picked += 1
        keys[best] = -1
        other = pool.nodes[best]
        for topic in profiles.topics[profiles.starts[other] : profiles.starts[other + 1]]:
            need[topic] -= 1
    picks[picked:] = NOBODY
    reset(p, profiles, need)
    for at in picks[:picked]:
        reset(pool.nodes[at], profiles, need)
