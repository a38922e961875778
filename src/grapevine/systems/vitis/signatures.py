"""Signatures: one cache line a profile, by which most candidates for friendship are refused without reading topics.

Theory. Of a hundred candidates that a node hears of in a round, one at most becomes a new friend; the others cannot
beat the worst friend that it has. A line of 64 bytes holds enough to prove that for nearly all of them:

- words 0 … 5: a set of 384 bits, a topic sets bit topic mod 384;
- word 6: the ring id, so that the ring needs no other line;
- word 7: the profile's mass, rounded down to 43 bits (`scale` says by how much), and its slack, 20 bits: how many of
  its topics fell on a bit that was set already.

Two profiles A and B have at most ones(a & b) + min(slack A, slack B) topics in common: every common topic sets a common
bit, and all but one of those on the same bit are among the slack of both. So many topics of A weigh at most as much as
A's heaviest (`heaviest` has the sums; equal weights need none), which bounds Eq. 1 from above.

Invariant: `survivors` never leaves out a candidate whose key would exceed the bar. Rounding is always in favour of the
candidate; a slack that does not fit its bits refuses nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.exchange import Entries
from grapevine.blocks.profiles import Profiles
from grapevine.kernels.bits import ask_for, count_ones
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import inlined, njit

WORDS, ID_WORD, LAST_WORD = 6, 6, 7
_BITS = np.uint64(64 * WORDS)
_SLACK_BITS, _MASS_BITS = 20, 43  # 63 together: the word stays positive when it is taken as signed
_MOST_SLACK = 2**20 - 1
_ONE, _SIX, _63 = np.uint64(1), np.uint64(6), np.uint64(63)
_KEY_ONE = 2147483648.0  # a utility of 1 in the upper bits of a preference


class Signatures(NamedTuple):
    """The lines of all profiles, and the sums that unequal weights need."""

    lines: NDArray[np.uint64]  # [8 * row + word], aligned to cache lines
    scale: int  # masses are kept divided by 2^scale
    heaviest: NDArray[
        np.int64
    ]  # of row, from its start of topics: the weight of its 1, 2, … heaviest; empty: all are 1


def make_signatures(profiles: Profiles) -> Signatures:
    """The signatures of these profiles; made anew whenever profiles are."""
    rows = len(profiles.mass)
    spare = np.zeros(8 * rows + 8, np.uint64)
    offset = (-spare.ctypes.data % 64) // 8
    lines = spare[offset : offset + 8 * rows]
    largest = int(profiles.mass.max(initial=0))
    scale = max(0, largest.bit_length() - _MASS_BITS)
    _sign(profiles, scale, lines)
    unequal = len(profiles.weights) > 0 and profiles.weights.max() != 1
    heaviest = np.empty(len(profiles.topics) if unequal else 0, np.int64)
    if unequal:
        _add_heaviest(profiles.starts, profiles.topics, profiles.weights, heaviest)
    return Signatures(lines, scale, heaviest)


@njit
def _sign(profiles: Profiles, scale: int, lines: NDArray[np.uint64]) -> None:
    for row in range(len(profiles.mass)):
        line = 8 * row
        for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
            bit = np.uint64(topic) % _BITS
            lines[line + np.int64(bit >> _SIX)] |= _ONE << (bit & _63)
        ones = np.uint64(0)
        for word in range(WORDS):
            ones += count_ones(lines[line + word])
        slack = min(profiles.starts[row + 1] - profiles.starts[row] - np.int64(ones), _MOST_SLACK)
        lines[line + ID_WORD] = profiles.ids[row]
        lines[line + LAST_WORD] = np.uint64(profiles.mass[row] >> scale << _SLACK_BITS | slack)


@njit
def _add_heaviest(starts: Starts, topics: NDArray[Any], weights: NDArray[Any], out: NDArray[np.int64]) -> None:
    for row in range(len(starts) - 1):
        mine = np.empty(starts[row + 1] - starts[row], np.int64)
        for i in range(len(mine)):
            mine[i] = -np.int64(weights[topics[starts[row] + i]])
        mine.sort()
        total = np.int64(0)
        for i in range(len(mine)):
            total -= mine[i]
            out[starts[row] + i] = total


@inlined
def read_ids(heard_of: Entries, count: int, signatures: Signatures) -> None:
    """Note the ring ids of the first `count` entries beside them; their lines are asked for first, all at once."""
    nodes, points = heard_of
    for i in range(np.uint64(count)):
        ask_for(signatures.lines, 8 * int(nodes[i]))
    for i in range(np.uint64(count)):
        points[i] = signatures.lines[np.uint64(nodes[i]) << np.uint64(3) | np.uint64(ID_WORD)]


@inlined
def bar_of(least: int) -> float:
    """What `survivors` compares with, for candidates that must exceed the key `least` (negative: none is refused).

    A candidate fails if common / (mass - common) is below t, that is if common is below t / (1 + t) of both masses. One
    is taken off t, so that no rounding matters.
    """
    t = max((np.int64(least) >> 31) - 1, np.int64(0))
    return t / (t + _KEY_ONE)


@inlined
def survivors(
    p: int,
    some: tuple[int, int],
    nodes: Columns,
    bar: float,
    signatures: Signatures,
    starts: Starts,
    out: tuple[Columns, int],
) -> int:
    """Append those of the nodes at first … last-1 that may clear the bar to a list of so many; returns how many it has
    then.

    Nothing in the loop depends on a comparison but where the next one is written, so it runs at the speed of loads.
    """
    lines, scale, heaviest = signatures
    mine = np.uint64(8 * p)
    one = np.uint64(1)
    w0, w1, w2 = lines[mine], lines[mine + one], lines[mine + np.uint64(2)]
    w3, w4, w5 = lines[mine + np.uint64(3)], lines[mine + np.uint64(4)], lines[mine + np.uint64(5)]
    # Signed from here on: the processor turns signed integers into floats, and has to be talked round for others.
    own = np.int64(lines[mine + np.uint64(7)])
    own_slack, own_mass = own & _MOST_SLACK, own >> _SLACK_BITS
    first, size, equal = starts[p], starts[p + 1] - starts[p], len(heaviest) == 0
    found, (passed, _) = np.uint64(out[1]), out
    for i in range(np.uint64(some[0]), np.uint64(some[1])):
        line = np.uint64(nodes[i]) << np.uint64(3)
        ones = np.int64(
            count_ones(w0 & lines[line])
            + count_ones(w1 & lines[line | one])
            + count_ones(w2 & lines[line | np.uint64(2)])
            + count_ones(w3 & lines[line | np.uint64(3)])
            + count_ones(w4 & lines[line | np.uint64(4)])
            + count_ones(w5 & lines[line | np.uint64(5)])
        )
        last = np.int64(lines[line | np.uint64(7)])
        slack = min(own_slack, last & _MOST_SLACK)
        common = min(ones + slack, size) if slack < _MOST_SLACK else size
        if not equal and common > 0:
            common = (heaviest[np.uint64(first + common - 1)] >> scale) + 1
        passed[found] = nodes[i]
        found += np.uint64(np.float64(common) >= bar * np.float64(own_mass + (last >> _SLACK_BITS)))
    return int(np.int64(found))
