"""Consent: what a node decides about links that both ends have to agree on (SpiderCast §2.3.1), from what it knows.

Rounds (`connections`) and sans-IO peers call the same functions, so there is one text of every rule. All are of one
task of one node, and of its own numbers:

- `degree`, its neighbours in the task; `limit`, the most that it looks for (L^max); `target`, the number that it is
  content with (L); `margin`, how many more it accepts.
- `missing`, how many topics are uncovered, or how many neighbours are wanting (CALCKUNCOVERED).
- `spare`, whether nothing would be missing without a certain neighbour.

Where the paper's figures and its prose differ, `Printed` says which of the two is followed.
"""

from __future__ import annotations

from typing import NamedTuple

from grapevine.kernels.jit import njit


class Printed(NamedTuple):
    """Where the paper's figures and its prose differ: which rules are the figures' (docs/papers.md#spidercast)."""

    target: bool  # Fig. 4, lines 4-5: every accepted link raises the target, not only those from Margin above it on
    disconnect: bool  # line 23: a node above its target lets a neighbour go, not only one above its limit
    redirect: bool  # line 7: to neighbours less than Margin above their target, not only to those below it


@njit
def iterate(missing: int, degree: int, limit: int) -> tuple[int, bool, bool]:
    """MAINTAINNEIGHBORS (Fig. 2, lines 4-13): the new target; whether to ask somebody to connect; whether to look for a
    neighbour to part from.

    A node that misses something asks for more, unless it is at its limit; one that misses nothing, or is above its
    limit, has reached what it needs and tries to get by with less.
    """
    connects = missing > 0 and degree < limit
    parts = missing == 0 or degree > limit
    return min(limit, degree) if parts else limit, connects, parts


@njit
def asks_to_part(degree: int, target: int, spare: bool) -> bool:
    """DISCONNECT (Fig. 2, lines 24-30): whether a node asks the candidate that it found to disconnect."""
    return degree > target or spare


@njit
def accepts(degree: int, limit: int, margin: int) -> bool:
    """Whether a node takes one neighbour more (Fig. 4, lines 2 and 13)."""
    return degree < limit + margin


@njit
def raised(degree: int, target: int, limit: int, margin: int, printed: bool) -> int:
    """The target after a link was accepted, which `degree` counts already (Fig. 4, lines 4-5 and 15-16): it follows the
    degree.

    Printed is `<`: then every accepted link raises the target, a neighbour below L^max hardly ever has more links than
    its target, and over-covered nodes can hardly disconnect as §2.3 says they do. So the other rule is `>=`: the target
    follows a degree that is Margin above it (docs/papers.md#spidercast).
    """
    is_far = degree >= target + margin
    return target + 1 if target < limit and is_far != printed else target


@njit
def lets_go(degree: int, target: int, limit: int, spare: bool, printed: bool) -> bool:
    """Whether a node that is asked to disconnect does so (Fig. 4, line 23)."""
    return spare or degree > (target if printed else limit)


@njit
def has_spare_links(degree: int, target: int) -> bool:
    """Whether a neighbour may be asked to disconnect (Fig. 3, line 11), as far as it told."""
    return degree > target


@njit
def is_short_of_links(degree: int, target: int, margin: int, printed: bool) -> bool:
    """Whether a neighbour may be named in a REDIRECT (Fig. 4, line 7), as far as it told."""
    return degree < target + (margin if printed else 0)
