"""The backup set of one node (OMen §4.2): others that together want each of its topics λ times, as few as can be found.

Finding the smallest set is set cover, so it is approximated. The paper's rules are greedy (always who covers most of
what is missing) and primal-dual (a random missing topic, then whoever among its subscribers covers most of what is
missing). Two more are ours, since with full knowledge the paper's two choose nearly the same nodes
(docs/papers.md#omen): after a random missing topic, `random` takes any of its subscribers, and `gain/load` whoever
covers most of what is missing for the sets that it is in already. Ties are settled by a hash of the candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import BACKUP_TIES, NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below

PRIMAL_DUAL, GREEDY, RANDOM, GAIN_PER_LOAD = range(4)
RULES = {"primal-dual": PRIMAL_DUAL, "greedy": GREEDY, "random": RANDOM, "gain/load": GAIN_PER_LOAD}
_33 = np.uint64(33)
_PARTS = 16  # binary digits after the point of a gain per load


class Search(NamedTuple):
    """What backup sets are looked for: the same for all nodes of a round."""

    wanted: Columns  # node → how often each of its topics shall be covered
    rule: int  # one of RULES
    usable: NDArray[np.bool_]  # node → it answers, and may be a backup
    load: Columns  # node → sets that it is in already; only GAIN_PER_LOAD looks at it
    profiles: Profiles


class Cover(NamedTuple):
    """What came out of building one set."""

    size: int
    coverage: int  # topics covered, each counted up to the number wanted
    complete: bool  # every topic is covered as often as wanted


class Shared(NamedTuple):
    """The candidates that share a topic with the subject, and which: by candidate, and by topic.

    Topics are numbered in the order of the subject's, candidates in the order in which they were given.
    """

    who: Columns  # candidate → node
    starts: Starts  # candidate → its row of topics
    topics: Columns
    by_topic: Starts  # topic → its row of candidates
    candidates: Columns


@njit
def build_backups(subject: int, state: np.uint64, nodes: Columns, search: Search, mark: Columns, out: Columns) -> Cover:
    """`buildBackupsByPD`, `buildBackupsGreedily` (§4.2) or a rule of ours: of distinct nodes, those who cover each
    topic of the subject as often as wanted, into `out`. `mark` is zero for every topic, before and after."""
    profiles, wanted = search.profiles, search.wanted[subject]
    mine = profiles.topics[profiles.starts[subject] : profiles.starts[subject + 1]]
    shared = _share(subject, mine, nodes, search, mark)
    count = len(shared.who)
    ties, load = np.empty(count, np.int64), np.zeros(count, np.int64)
    for i in range(count):
        if search.rule == GAIN_PER_LOAD:
            load[i] = search.load[shared.who[i]]
        ties[i] = np.int64(absorb(absorb(state, BACKUP_TIES), shared.who[i]) >> _33)
    missing = np.full(len(mine), wanted, np.int32)
    gain = (shared.starts[1 : count + 1] - shared.starts[:count]).astype(np.int64)  # topics it wants that are missing
    open_topics, left, size, draws = np.arange(len(mine)).astype(np.int32), len(mine) if wanted > 0 else 0, 0, 0
    where = np.arange(len(mine)).astype(np.int32)  # topic → its place in `open_topics`
    while left > 0:
        topic = open_topics[0]
        if search.rule == GREEDY:
            best = _best(gain, ties)
            if best == NOBODY:
                break
        else:
            topic = open_topics[below(absorb(state, draws), left)]
            draws += 1
            able = shared.candidates[shared.by_topic[topic] : shared.by_topic[topic + 1]]
            best = _best_of(able, search.rule, gain, load, ties)
        if best == NOBODY:
            left = _close(topic, left, open_topics, where)  # no more subscribers
            continue
        out[size] = shared.who[best]
        size += 1
        gain[best] = np.int64(-(2**40))  # taken
        for t in shared.topics[shared.starts[best] : shared.starts[best + 1]]:
            missing[t] -= 1
            if missing[t] == 0:
                left = _close(t, left, open_topics, where)
                for i in shared.candidates[shared.by_topic[t] : shared.by_topic[t + 1]]:
                    gain[i] -= 1
    coverage = 0
    for t in range(len(mine)):
        coverage += wanted - max(missing[t], 0)
    return Cover(size, coverage, coverage == wanted * len(mine))


@njit
def _share(subject: int, mine: NDArray[np.uint32], nodes: Columns, search: Search, mark: Columns) -> Shared:
    """Which of the nodes want which of the subject's topics."""
    profiles = search.profiles
    for i in range(len(mine)):
        mark[mine[i]] = i + 1
    most = 0
    for u in nodes:
        if search.usable[u] and u != subject:
            most += min(len(mine), profiles.starts[u + 1] - profiles.starts[u])
    topics, starts = np.empty(most, np.int32), np.empty(len(nodes) + 1, np.int64)
    who, by_topic = np.empty(len(nodes), np.int32), np.zeros(len(mine) + 1, np.int64)
    count, at = 0, 0
    starts[0] = 0
    for u in nodes:
        if search.usable[u] and u != subject:
            for topic in profiles.topics[profiles.starts[u] : profiles.starts[u + 1]]:
                if mark[topic] > 0:
                    topics[at] = mark[topic] - 1
                    by_topic[mark[topic]] += 1
                    at += 1
            if at > starts[count]:
                who[count] = u
                count += 1
                starts[count] = at
    for topic in mine:
        mark[topic] = 0
    for i in range(len(mine)):
        by_topic[i + 1] += by_topic[i]
    cursor, candidates = by_topic[:-1].copy(), np.empty(at, np.int32)
    for i in range(count):
        for t in topics[starts[i] : starts[i + 1]]:
            candidates[cursor[t]] = i
            cursor[t] += 1
    return Shared(who[:count], starts, topics, by_topic, candidates)


@njit
def _best_of(
    some: Columns, rule: int, gain: NDArray[np.int64], load: NDArray[np.int64], ties: NDArray[np.int64]
) -> int:
    """Of some candidates the best by the rule; NOBODY if none covers anything that is missing."""
    best, key = NOBODY, np.int64(-1)
    for i in some:
        if gain[i] > 0:
            worth = gain[i]
            if rule == RANDOM:
                worth = np.int64(0)
            elif rule == GAIN_PER_LOAD:
                worth = (gain[i] << _PARTS) // (1 + load[i])
            if worth << 31 | ties[i] > key:
                best, key = int(i), worth << 31 | ties[i]
    return best


@njit
def _best(gain: NDArray[np.int64], ties: NDArray[np.int64]) -> int:
    """Of all candidates the one that covers most of what is missing; NOBODY if none covers anything."""
    best, key = NOBODY, np.int64(0)
    for i in range(len(gain)):
        if gain[i] > 0 and gain[i] << 31 | ties[i] > key:
            best, key = i, gain[i] << 31 | ties[i]
    return best


@njit
def _close(topic: int, left: int, open_topics: Columns, where: Columns) -> int:
    """Swap the topic out of the first `left` open ones; returns how many remain."""
    if where[topic] >= left:
        return left
    last = open_topics[left - 1]
    open_topics[where[topic]], open_topics[left - 1] = last, topic
    where[last], where[topic] = where[topic], left - 1
    return left - 1
