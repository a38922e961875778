"""Local views (OMen §4.3): what every node keeps for its L predecessors on the identifier ring, and who those are.

The rules and the exchange of one round are in `backups`; here they are run for a whole network. The ring is the
one that everybody believes in: who joined is on it, and who left until that is detected.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY, group_contacts
from grapevine.kernels.csr import Columns
from grapevine.systems.omen import backups as rules
from grapevine.systems.omen.backups import Kept, Ring, new_backups, reassign
from grapevine.systems.omen.set_cover import Search


class LocalViews:
    """The ring, and the backup set of every node as each of its successors keeps it."""

    def __init__(self, network: Network, ranks: int) -> None:
        self.network, self.ranks = network, ranks
        self.present = np.zeros(network.size, np.bool_)  # believed to be there
        self._order = np.argsort(network.ids, kind="stable").astype(np.int32)
        self.ring = self._listed(())
        self.backups = self._spare = new_backups(np.zeros(network.size, np.int64), ranks)

    def make_room(self, wanted: int) -> None:
        """Room for sets that cover the topics that nodes have now so many times; what fits is kept. 0: none."""
        most = np.minimum(wanted * np.diff(self.network.profiles.starts), max(self.network.size - 1, 0))
        before, self.backups = self.backups, new_backups(most, self.ranks)
        self._spare = new_backups(most, self.ranks)
        reassign(self.network.now, self.ring, before, self.backups)

    def _listed(self, departed: Iterable[int]) -> Ring:
        listed = self.present.copy()
        listed[list(departed)] = True
        order = self._order[listed[self._order]]
        place = np.full(self.network.size, NOBODY, np.int32)
        place[order] = np.arange(len(order))
        return Ring(order, place, self.present.copy())

    def ring_changed(self, departed: Iterable[int]) -> list[int]:
        """Somebody came or went, or what happened to somebody is handled; `departed` stay listed for now. Returns the
        nodes that got a new successor, each as often as it got one."""
        self.ring = self._listed(departed)
        reassign(self.network.now, self.ring, self.backups, self._spare)
        before, after = self.backups.keeper, self._spare.keeper
        is_new = (after != NOBODY) & ~(after[:, None] == before[None]).any(axis=1)
        self.backups, self._spare = self._spare, self.backups
        return np.nonzero(is_new)[1].tolist()

    def forget(self, nodes: Iterable[int]) -> None:
        """These have come back with nothing of what they kept."""
        self.backups.keeper[np.isin(self.backups.keeper, list(nodes))] = NOBODY

    def exchange(self, search: Search) -> tuple[int, int, int]:
        """One round of T-Man (Algorithms 3 and 4); returns the messages sent, the descriptors in them, and how many
        nodes were asked because they had become backups."""
        network, backups = self.network, self.backups
        kept, partner = Kept(self.ring, backups, network.views), np.full(network.size, NOBODY, np.int32)
        network.in_chunks(lambda a, b: rules.choose_partners(network.seed, network.now, (a, b), kept, partner))
        contacts = partner, *group_contacts(partner)
        new, sizes, asked = self._spare, np.zeros(network.size, np.int64), np.zeros(network.size, np.int64)
        new.keeper[:] = backups.keeper
        out = new, sizes, asked
        network.in_chunks(
            lambda a, b: rules.exchange_round(network.seed, network.now, (a, b), search, kept, contacts, out)
        )
        self.backups, self._spare = new, backups
        callers = np.flatnonzero(partner != NOBODY)
        carried = int(sizes[callers].sum() + sizes[partner[callers]].sum())
        return 2 * len(callers), carried, int(asked.sum())

    def load(self) -> Columns:
        """By node, the backup sets that it is in, whoever of those who are there keeps them."""
        out = np.zeros(self.network.size, np.int32)
        rules.count_sets(self.backups, self.network.alive, out)
        return out

    def keepers(self, node: int) -> list[int]:
        """The L-successor range of a node (Algorithm 6), nearest first."""
        return [int(v) for v in self.backups.keeper[:, node] if v != NOBODY]

    def is_coordinator(self, node: int, subject: int) -> bool:
        """Whether the node is the immediate successor of the subject."""
        return bool(self.backups.keeper[0, subject] == node)

    def is_in_pred_range(self, node: int, subject: int) -> bool:
        """Whether the subject is among the L predecessors of the node."""
        return bool((self.backups.keeper[:, subject] == node).any())

    def is_ready(self, node: int, subject: int, patience: int) -> bool:
        """v.R(v'): the backup set covers what it should, or gossip has brought nothing more for so many rounds."""
        rank = self._rank(node, subject)
        waited = self.network.now - int(self.backups.gained[rank, subject]) >= patience
        return bool(self.backups.complete[rank, subject]) or waited

    def backups_of(self, subject: int, node: int) -> Columns:
        """v.B(v'): the backup set of the subject that this node keeps."""
        rank, first = self._rank(node, subject), self.backups.starts[subject]
        return self.backups.nodes[rank, first : first + self.backups.size[rank, subject]]

    def _rank(self, node: int, subject: int) -> int:
        return int(np.flatnonzero(self.backups.keeper[:, subject] == node)[0])

    def sizes(self) -> NDArray[np.int64]:
        """How many different nodes are in the view of each."""
        out = np.zeros(self.network.size, np.int64)
        rules.view_sizes(0, self.network.size, Kept(self.ring, self.backups, self.network.views), out)
        return out
