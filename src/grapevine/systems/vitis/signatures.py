"""Signatures: one cache line a profile, by which most candidates for friendship are refused without reading topics.

Theory. Of a hundred candidates that a node hears of in a round, one at most becomes a new friend; the others cannot
beat the worst friend that it has. A line of 64 bytes holds enough to prove that for nearly all of them:

- words 0 … 5: a set of 384 bits. A topic sets the bit that its hash says: otherwise profiles that want topics of
  different groups would often look alike. Where topics weigh unequally, it is bit topic mod 384: there every bit that
  two share by chance costs much, and topics that are neighbours by number never share one;
- word 6: the ring id, so that the ring needs no other line;
- word 7: the profile's mass, rounded down to 43 bits (`scale` says by how much), and its slack, 20 bits: how many of
  its topics fell on a bit that was set already.

Two profiles A and B have at most ones(a & b) + min(slack A, slack B) topics in common: every common topic sets a common
bit, and all but one of those on the same bit are among the slack of both. So many topics of A weigh at most as much as
A's heaviest (`heaviest` has the sums; equal weights need none), which bounds Eq. 1 from above.

Invariant: `sift` never leaves out a candidate whose key would exceed the bar. Rounding is always in favour of the
candidate; a profile of so many topics that its slack may not fit its bits refuses nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.entries import Entries
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.sights import Sights, look_at_eight, up_to
from grapevine.kernels.bits import ask_for, count_ones
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.lanes import LANES, add_smaller, compress, count_common, reach
from grapevine.kernels.rng import mix

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
    unequal = len(profiles.weights) > 0 and int(profiles.weights.max()) != 1
    _sign(profiles, scale, not unequal, lines)
    heaviest = np.empty(len(profiles.topics) if unequal else 0, np.int64)
    if unequal:
        _add_heaviest(profiles.starts, profiles.topics, profiles.weights, heaviest)
    return Signatures(lines, scale, heaviest)


@njit
def _sign(profiles: Profiles, scale: int, alike: bool, lines: NDArray[np.uint64]) -> None:
    for row in range(len(profiles.mass)):
        line = 8 * row
        for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
            bit = (mix(np.uint64(topic)) if alike else np.uint64(topic)) % _BITS
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
def ask_for_lines(nodes: Columns, count: int, signatures: Signatures) -> None:
    """Begin to load the lines of the first `count` nodes, all at once."""
    for i in range(np.uint64(count)):
        ask_for(signatures.lines, 8 * int(nodes[i]))


@inlined
def read_ids(heard_of: Entries, count: int, signatures: Signatures) -> None:
    """Note the ring ids of the first `count` entries beside them."""
    nodes, points = heard_of
    for i in range(np.uint64(count)):
        points[i] = signatures.lines[np.uint64(nodes[i]) << np.uint64(3) | np.uint64(ID_WORD)]


@inlined
def bar_of(least: int) -> float:
    """What `sift` compares with, for candidates that must exceed the key `least` (negative: none is refused).

    A candidate fails if common / (mass - common) is below t, that is if common is below t / (1 + t) of both masses. One
    is taken off t, so that no rounding matters.
    """
    t = max((np.int64(least) >> 31) - 1, np.int64(0))
    return t / (t + _KEY_ONE)


class Eight(NamedTuple):
    """Room for what is compared of eight candidates at once."""

    counts: NDArray[np.int64]  # bits that are set in both lines; then the most that the two can have in common
    tails: NDArray[np.uint64]  # their ring ids, then their last words


@njit
def new_eight() -> Eight:
    """Room for one comparison."""
    return Eight(np.empty(LANES, np.int64), np.empty(2 * LANES, np.uint64))


@inlined
def sift(
    p: int,
    some: tuple[int, int],
    nodes: Columns,
    bar: float,
    signatures: Signatures,
    starts: Starts,
    eight: Eight,
    out: tuple[Columns, int],
    sights: tuple[Sights, int, Columns],
) -> tuple[int, int]:
    """Append those of the nodes at first … last-1 that may clear the bar to a list of so many, and write those that
    are in one of so many sights into another; returns how many the two have then.

    The first list may be the nodes themselves, up to `first`. There must be room for seven more behind the last of
    them.
    """
    (first, last), (passed, found), (counts, tails), seen = some, out, eight, 0
    for at in range(np.uint64(last), np.uint64(last + LANES - 1)):
        nodes[at] = p  # anybody whose line can be read
    for at in range(first, last, LANES):
        count_common(signatures.lines, 8 * p, nodes, at, WORDS, counts, tails)
        which = look_at_eight(tails, 0, sights[0], sights[1]) & up_to(last - at)
        if which != 0:
            compress(which, nodes, at, sights[2], seen)
            seen += int(np.int64(count_ones(np.uint64(which))))
        which = _reach_bar(p, bar, signatures, starts, eight) & up_to(last - at)
        if which != 0:
            compress(which, nodes, at, passed, found)
            found += int(np.int64(count_ones(np.uint64(which))))
    return found, seen


@inlined
def _reach_bar(p: int, bar: float, signatures: Signatures, starts: Starts, eight: Eight) -> int:
    """Which of eight candidates may clear the bar, from the bits that they share with p, as a mask."""
    (lines, scale, heaviest), (counts, tails) = signatures, eight
    own, size = np.int64(lines[np.uint64(8 * p + LAST_WORD)]), starts[p + 1] - starts[p]
    add_smaller(counts, tails, LANES, own, _SLACK_BITS, size)
    if len(heaviest) > 0:
        for i in range(np.uint64(LANES)):
            if counts[i] > 0:
                counts[i] = (heaviest[np.uint64(starts[p] + counts[i] - 1)] >> scale) + 1
    return reach(counts, tails, LANES, own, _SLACK_BITS, bar if size < _MOST_SLACK else 0.0)
