"""Which nodes are whose: ranges of nodes, and the contacts of a round sorted by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.exchange import Contacts
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows


class Split(NamedTuple):
    """Nodes 0 … nodes-1 in ranges of one length; the last ones may be shorter, or empty."""

    nodes: int
    parts: int

    @property
    def length(self) -> int:
        return max(1, -(-self.nodes // self.parts))

    def range_of(self, part: int) -> tuple[int, int]:
        """The first node of the part, and the first one behind it."""
        return min(part * self.length, self.nodes), min((part + 1) * self.length, self.nodes)

    def part_of(self, nodes: Columns) -> Columns:
        """The part of each node."""
        return np.asarray(nodes // np.int32(self.length), np.int32)


class Asked(NamedTuple):
    """Whom the nodes of a part contact in one step of a round."""

    partner: Columns  # by own row: a node, or NOBODY
    starts: Starts  # by part: where its rows begin in `rows`
    rows: Columns  # the own rows that have a partner, by its part, ascending

    def of_part(self, part: int) -> Columns:
        """The own rows whose partners are in this part."""
        return self.rows[self.starts[part] : self.starts[part + 1]]


def sort_partners(partner: Columns, split: Split) -> Asked:
    """The rows that have a partner, by its part."""
    rows = np.flatnonzero(partner != NOBODY).astype(np.int32)
    parts = split.part_of(partner[rows])
    starts = count_rows(parts, split.parts)
    return Asked(partner, starts, fill_rows(parts, rows, starts))


class Calls(NamedTuple):
    """Who contacts whom in a part, as cells carry it."""

    called: Columns  # nodes of the part that is asked
    callers: Columns  # nodes of the part that asks, as many


def arrange(asked: Asked, calls: dict[int, Calls], part: int, split: Split) -> tuple[Contacts, list[NDArray[np.int32]]]:
    """Contacts by rows, for a part whose own rows are followed by the answers of others, by their part, and then by the
    rows of callers, by theirs. Also returns the nodes of these rows, in that order, part by part.

    `calls` has those of every other part that asked, by part.
    """
    (first, last), others = split.range_of(part), [other for other in range(split.parts) if other != part]
    partner, nodes, at = np.full(last - first, NOBODY, np.int32), [], last - first
    own = asked.of_part(part)
    partner[own] = asked.partner[own] - first
    for other in others:
        rows = asked.of_part(other)
        partner[rows] = np.arange(at, at + len(rows), dtype=np.int32)
        nodes.append(asked.partner[rows])
        at += len(rows)
    called, who = [], []
    for other in range(split.parts):
        if other == part:
            called.append(partner[own])
            who.append(own)
        elif other in calls:
            called.append(calls[other].called - np.int32(first))
            who.append(np.arange(at, at + len(calls[other].callers), dtype=np.int32))
            nodes.append(calls[other].callers)
            at += len(calls[other].callers)
    rows = np.concatenate(called)
    starts = count_rows(rows, last - first)
    return (partner, starts, fill_rows(rows, np.concatenate(who), starts)), nodes
