"""The nodes that a node knows, as the arrays in which the rules of coverage want them: a row each, its own first.

Only topics that the node itself wants count in those rules, so these are numbered from 0 on, and the table has of every
other node those that both want.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.coverage import Gains, Membership
from grapevine.blocks.profiles import Profiles
from grapevine.kernels import csr
from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.peer import Address

OWN = 0  # the row of the node itself
Rows = NDArray[np.int32]


class Table:
    """Some nodes as rows, with the scratch that rules leave as they found it. Made anew when anything changes.

    `shared` has the topics that each of them has in common with the node `me`, as numbers of these.
    """

    def __init__(self, me: Address, topics: int, shared: Mapping[Address, Columns]) -> None:
        self.shared, self.nodes = shared, [me, *shared]
        self._row_of = {node: row for row, node in enumerate(self.nodes)}
        of_row = [np.arange(topics, dtype=np.int32), *(those.astype(np.int32, copy=False) for those in shared.values())]
        self.profiles = profiles_of(of_row, topics)
        others = np.arange(1, len(self.nodes), dtype=np.int32)
        alive = np.ones(len(self.nodes), np.bool_)
        by_topic = csr.transpose(self.profiles.starts, self.profiles.topics, topics)
        self.members = Membership(0, 1.0, alive, others, *by_topic)
        self.need = np.zeros(topics, np.int64)
        self.gains = Gains(np.zeros(len(self.nodes), np.int32), np.empty(len(self.nodes), np.int32))

    def rows(self, nodes: Iterable[Address]) -> Rows:
        """The rows of these nodes; those that have none are left out."""
        found = [self._row_of[node] for node in nodes if node in self._row_of]
        return np.array(found, np.int32)

    def row(self, node: Address) -> int:
        """The row of a node that has one."""
        return self._row_of[node]

    def wanting(self) -> NDArray[np.int64]:
        """By topic, how many of the others want it."""
        return np.diff(self.members.topic_starts) - 1


def profiles_of(of_row: Sequence[NDArray[Any]], topics: int) -> Profiles:
    """These rows of topics as rules read them, where all weigh the same."""
    starts = np.zeros(len(of_row) + 1, np.int64)
    np.cumsum([len(row) for row in of_row], out=starts[1:])
    ids, mass = np.zeros(len(of_row), np.uint64), np.zeros(len(of_row), np.int64)
    return Profiles(ids, starts, np.concatenate(of_row), np.ones(topics, np.int64), mass)
