"""Meetings: what a node need not look at again, because it saw it when the two met before and has refused it since.

Theory. A node meets the same few neighbours again and again, and what they know hardly changes. A choice is *steady* if
a candidate that it refused stays refused while the table only gets better: ring links and backups (the nearest), long
links (the nearest to a fixed point), friends (the most similar). So of a neighbour's links those that it has taken
since the two met last are news, and all others were refused then; of its ring backups all are news, or none.

Invariants, while everyone is online and settled, links need no consent and profiles stay:

1. If `met` of a slot is a round m, then every node that the neighbour's row held at the start of round m, backups
   included, is in the own row, or would be refused by it at the start of this round.
2. What a row took in round m has `since` of m at the least, so that `since >= met` finds all that invariant 1 does not
   speak of.

A table may also get worse: the points of long links move when ring links change, and where a link of the table takes on
another purpose, it leaves its old place to somebody who was refused before. So a row whose ring or long links change
looks at everything it hears of in that round, and forgets all meetings before it. Whoever else changes links lets the
network drop all meetings (`Network.links_changed`). Nothing but time depends on them: a network in parts does without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import inlined

NEVER = -1


class Meetings(NamedTuple):
    """What rows remember of meetings. All arrays are empty where nothing is remembered."""

    met: NDArray[np.int32]  # slot → the round in which the row last exchanged views with the neighbour; or NEVER
    since: NDArray[np.int32]  # slot → the round in which the neighbour was taken into the row
    renewed: NDArray[np.int32]  # row → the round in which its ring backups last changed


# At the start of a round, and where those of its end are: a copy, in which rows that change write. So everybody reads
# what others knew at the start of the round.
BeforeAndAfter = tuple[Meetings, Meetings]


def new_meetings(rows: int, slots: int) -> Meetings:
    """So many rows with so many slots, none of which has met anybody."""
    return Meetings(np.full(slots, NEVER, np.int32), np.zeros(slots, np.int32), np.zeros(rows, np.int32))


NewRow = tuple[Columns, NDArray[np.int32]]  # where the new links and ring backups are
NO_MEETINGS: BeforeAndAfter = (new_meetings(0, 0), new_meetings(0, 0))


@inlined
def is_remembered(meetings: BeforeAndAfter) -> bool:
    """Whether the last round was one of a steady choice with everyone: then rows were chosen among all that they heard
    of, and every link was heard."""
    return len(meetings[0].met) > 0


@inlined
def last_met(p: int, node: int, views: Views, meetings: BeforeAndAfter) -> np.int32:
    """The round in which the row p last exchanged views with the node; NEVER also if it is no neighbour."""
    met, latest = meetings[0].met, np.int32(NEVER)
    if len(met) > 0:
        for at in range(np.uint64(views.starts[p]), np.uint64(views.starts[p + 1])):
            latest = max(latest, met[at] if views.links[at] == node else np.int32(NEVER))
    return latest


def keep_all(rows: tuple[int, int], starts: Starts, meetings: BeforeAndAfter) -> None:
    """Let the rows first … last-1 remember at the end of the round what they did at its start, until they write."""
    before, after = meetings
    if len(before.met) > 0:
        slots = slice(starts[rows[0]], starts[rows[1]])
        after.met[slots], after.since[slots] = before.met[slots], before.since[slots]
        after.renewed[rows[0] : rows[1]] = before.renewed[rows[0] : rows[1]]


@inlined
def carry_over(p: int, now: int, views: Views, meetings: BeforeAndAfter, row: NewRow, structured: int) -> None:
    """What the row p remembers after a round in which it may have changed: of whom it keeps what it knew, of whom it
    took that they are new. If one of its first `structured` links is another, it has met nobody."""
    (links, backups), (before, after) = row, meetings
    a, b = np.uint64(views.starts[p]), np.uint64(views.starts[p + 1])
    moved = False
    for at in range(a, a + np.uint64(structured)):
        moved |= links[at] != views.links[at]
    for at in range(a, b):
        if moved or links[at] != views.links[at]:
            after.met[at], after.since[at] = NEVER, now
            for other in range(a, b):
                if views.links[other] == links[at]:
                    after.met[at], after.since[at] = NEVER if moved else before.met[other], before.since[other]
    for i in range(np.uint64(backups.shape[1])):
        if backups[p, i] != views.backups[p, i]:
            after.renewed[p] = now


@inlined
def note(p: int, now: int, node: int, views: Views, meetings: BeforeAndAfter, links: Columns) -> None:
    """The row p, whose new links are in `links`, has exchanged views with the node in this round."""
    for at in range(np.uint64(views.starts[p]), np.uint64(views.starts[p + 1])):
        if links[at] == node:
            meetings[1].met[at] = now
