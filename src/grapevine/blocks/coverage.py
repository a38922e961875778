"""Coverage: choose neighbours so that each of a node's topics is shared with at least K of them (SpiderCast's idea)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.candidates import Candidates
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb

_33 = np.uint64(33)


@njit
def gain(other: int, profiles: Profiles, need: NDArray[np.int64]) -> int:
    """Topics that this neighbour would serve among those that still need one."""
    count = 0
    for at in range(np.uint64(profiles.starts[other]), np.uint64(profiles.starts[other + 1])):
        count += need[np.uint32(profiles.topics[at])] > 0
    return count


@njit
def choose_greedily(
    p: int,
    k: int,
    ties: np.uint64,
    pool: Candidates,
    profiles: Profiles,
    scratch: tuple[NDArray[np.int64], NDArray[np.int64]],
    picks: Columns,
) -> None:
    """Fill `picks` with candidates, each serving most of the topics that fewer than k earlier picks serve.

    Ends when nothing is gained or `picks` is full. Gains only fall as picks are made, so a gain computed earlier is a
    bound: the best candidate is recomputed until its gain stands (lazy greedy), instead of all after every pick.
    `scratch` is need per topic (all zero before and after) and a key per candidate.
    """
    need, keys = scratch
    for topic in profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]:
        need[topic] = k
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
    _reset(p, profiles, need)
    for at in picks[:picked]:
        _reset(pool.nodes[at], profiles, need)


@njit
def _reset(row: int, profiles: Profiles, need: NDArray[np.int64]) -> None:
    for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
        need[topic] = 0
