"""The friends that a node would choose if it knew everybody: an optimum that gossip can be compared with.

No part of the protocol. What is measured with such friends is the best that Algorithm 4 can do on a workload, so a
claim that fails even here does not fail for lack of convergence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles, new_marks
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.systems.vitis.rules import choose_friends, new_best, tie_state


@njit
def rank_friends(
    seed: int,
    nodes: tuple[int, int],
    common_ties: bool,
    alive: NDArray[np.bool_],
    profiles: Profiles,
    members: tuple[Starts, Columns],
    out: NDArray[np.int32],
) -> None:
    """For each of the nodes first … last-1 the online nodes that it prefers to all others, the best first, into its row
    of `out`; NOBODY where fewer share a topic with it. `members` are the subscribers of every topic."""
    starts, subscribers = members
    seen = np.full(len(alive), NOBODY, np.int32)  # who has listed a node last
    candidates, marks = np.empty(len(alive), np.int32), new_marks(profiles)
    best = new_best(out.shape[1])
    for p in range(nodes[0], nodes[1]):
        count = 0
        seen[p] = p
        for topic in profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]:
            for q in subscribers[starts[np.int64(topic)] : starts[np.int64(topic) + 1]]:
                if seen[q] != p and alive[q]:
                    seen[q] = p
                    candidates[count] = q
                    count += 1
        ties = tie_state(seed, p, common_ties)
        kept = choose_friends(p, ties, (candidates, count), profiles, marks, best, 0) if alive[p] else 0
        out[p, :kept] = best.nodes[:kept]
        out[p, kept:] = NOBODY


@njit
def take_friends(
    structured: int, ranked: NDArray[np.int32], now: int, starts: Starts, links: Columns, heard: Columns
) -> None:
    """Let everybody's friends be the first of its ranked nodes that are no ring or long links of it, heard of now."""
    for p in range(len(starts) - 1):
        a, at = starts[p], starts[p] + structured
        for q in ranked[p]:
            taken = q == NOBODY or at == starts[p + 1]
            for other in range(a, a + structured):
                taken = taken or links[other] == q
            if not taken:
                links[at], heard[at] = q, now
                at += 1
        links[at : starts[p + 1]] = NOBODY
