"""Gateways: one proposal per topic of this node, revised where something that it depends on has changed (Algorithm 5).

A proposal depends on which neighbours share the topic and on what they propose. Whoever changes either marks the topic,
and only marked ones are chosen again, some thousands a round; where nothing changes any more this is the fixpoint of
choosing all of them in every round (`agreement`, invariant 1). Topics are known by their index in the ascending array
of this node's topics.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import COMPILES
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import find
from grapevine.systems.gossip.messages import Topics
from grapevine.systems.vitis.peer.gateways import Chosen, NeighbourProposals, choose_gateways
from grapevine.systems.vitis.peer.messages import PROPOSAL, Records
from grapevine.systems.vitis.peer.proposals import ReceivedProposals

ELECTED_A_ROUND = 8_192 if COMPILES else 512  # topics: 30 - 60 ms with nine neighbours that share all
SENT_A_ROUND = 16_384  # proposals to a neighbour, half a megabyte: many that are new will have changed before long
_NONE = np.empty(0, np.int32)


class Neighbour(NamedTuple):
    """What an election knows of a neighbour."""

    ring_id: int
    shared_at: Columns  # indices of this node's topics that it has as well
    received: ReceivedProposals  # what it proposes


class Elections:
    """Proposals of one node, one per topic: itself, until something better is known."""

    def __init__(self, me: Address, ring_id: int, reach: int) -> None:
        self._me, self._ring_id, self._reach = me, ring_id, reach
        self.topics: Topics = np.empty(0, np.uint64)
        self.ring_ids: Topics = np.empty(0, np.uint64)  # of the topics
        self.proposals: Records = np.empty(0, PROPOSAL)
        self._stamp = 0  # counts changes of proposals
        self._changed: NDArray[np.int64] = np.empty(0, np.int64)  # the stamp of each topic's last change; 0: none yet
        self._marked: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._neighbours: dict[Address, Neighbour] = {}
        self._next = 0  # the index from which marked topics are taken

    def want(self, topics: Topics, ring_ids: Topics) -> None:
        """These are the node's topics now, ascending; proposals of those that were there before stay."""
        if topics is self.topics:
            return
        at, stays = find(self.topics, topics)
        proposals = np.zeros(len(topics), PROPOSAL)
        proposals["topic"], proposals["gateway"], proposals["parent"] = topics, self._me, self._me
        proposals["gateway_id"] = self._ring_id
        proposals[stays] = self.proposals[at[stays]]
        changed, marked = np.zeros(len(topics), np.int64), np.ones(len(topics), np.bool_)
        changed[stays], marked[stays] = self._changed[at[stays]], self._marked[at[stays]]
        new_index = np.full(len(self.topics), -1, np.int32)
        new_index[at[stays]] = np.flatnonzero(stays)
        for node, neighbour in self._neighbours.items():
            shared_at = new_index[neighbour.shared_at]
            self._neighbours[node] = neighbour._replace(shared_at=shared_at[shared_at >= 0])
        self.topics, self.ring_ids, self.proposals = topics, ring_ids, proposals
        self._changed, self._marked, self._next = changed, marked, 0

    def meet(self, neighbours: Mapping[Address, Neighbour]) -> None:
        """These are the neighbours now; topics that more or fewer of them share than before are marked."""
        for node in {*self._neighbours, *neighbours}:
            old, new = self._neighbours.get(node), neighbours.get(node)
            before, after = old.shared_at if old else _NONE, new.shared_at if new else _NONE
            if before is not after:
                self._marked[np.setxor1d(before, after, assume_unique=True)] = True
        self._neighbours = dict(sorted(neighbours.items()))

    def mark(self, topics: Topics) -> None:
        """A neighbour proposes something else for these topics than before."""
        if len(topics):
            self._marked[np.isin(self.topics, topics, assume_unique=True)] = True

    def elect(self, most: int = ELECTED_A_ROUND) -> None:
        """Choose again for marked topics; what is too much for one round waits for the next, and is then first."""
        marked = np.flatnonzero(self._marked)
        if len(marked) > most:
            first = int(marked.searchsorted(self._next))
            marked = np.sort(np.roll(marked, -first)[:most])
            self._next = int(np.roll(np.flatnonzero(self._marked), -first)[most])
        if not len(marked):
            return
        self._marked[marked] = False
        chosen = self._choose(marked)
        differs = (chosen != self.proposals[marked]) | (self._changed[marked] == 0)
        self.proposals[marked[differs]] = chosen[differs]
        stamps = np.arange(self._stamp + 1, self._stamp + 1 + differs.sum())
        self._changed[marked[differs]] = stamps
        self._stamp += len(stamps)

    def _choose(self, which: NDArray[np.int64]) -> Records:
        """Algorithm 5 for the topics at these indices."""
        count = len(which)
        gateways, gateway_ids, parents = (np.empty(count, np.uint64) for _ in range(3))
        out = Chosen(gateways, gateway_ids, parents, np.empty(count, np.int32))
        topics, ring_ids, proposed = self.topics[which], self.ring_ids[which], self._proposed(which)
        choose_gateways(self._reach, np.uint64(self._me), np.uint64(self._ring_id), topics, ring_ids, proposed, out)
        chosen = np.empty(count, PROPOSAL)
        chosen["topic"], chosen["gateway"], chosen["gateway_id"] = topics, out.gateways, out.gateway_ids
        chosen["parent"], chosen["hops"] = out.parents, out.hops
        return chosen

    def _proposed(self, which: NDArray[np.int64]) -> NeighbourProposals:
        """What the neighbours propose for the topics at these indices, grouped by topic, as the kernel wants it."""
        found, nodes, ids, proposed = [], [], [], []
        for node, neighbour in self._neighbours.items():
            at = np.flatnonzero(np.isin(which, neighbour.shared_at, assume_unique=True))
            there, records = neighbour.received.of(self.topics[which[at]])
            found.append(at[there])
            nodes.append(np.full(len(records), node, np.uint64))
            ids.append(np.full(len(records), neighbour.ring_id, np.uint64))
            proposed.append(records)
        at = np.concatenate([*found, np.empty(0, np.int64)])
        order = np.argsort(at, kind="stable")
        rows = np.concatenate(proposed)[order] if proposed else np.empty(0, PROPOSAL)
        return NeighbourProposals(
            np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(which)))]).astype(np.int64),
            _words(np.concatenate([*nodes, np.empty(0, np.uint64)])[order]),
            _words(np.concatenate([*ids, np.empty(0, np.uint64)])[order]),
            _words(rows["gateway"]),
            _words(rows["gateway_id"]),
            _words(rows["parent"]),
            np.ascontiguousarray(rows["hops"], np.int32),
        )

    def news(self, shared_at: Columns, stamp: int, repeated: Topics) -> tuple[Records, int]:
        """Proposals for the topics at these indices that changed after the stamp, and those to be repeated.

        Of very many only the oldest are taken, some thousands a round; returns also the stamp up to which that is all.
        """
        changed = self._changed[shared_at]
        later, upto = np.flatnonzero(changed > stamp), self._stamp
        if len(later) > SENT_A_ROUND:
            later = later[np.argpartition(changed[later], SENT_A_ROUND)[:SENT_A_ROUND]]
            upto = int(changed[later].max())
        chosen = np.zeros(len(shared_at), np.bool_)
        chosen[later] = True
        if len(repeated):
            chosen |= np.isin(self.topics[shared_at], repeated, assume_unique=True) & (changed > 0)
        return self.proposals[shared_at[chosen]], upto

    def gateway_of(self) -> NDArray[np.int64]:
        """The indices of topics whose gateway this node proposes to be; not of those that it has not chosen for yet."""
        return np.flatnonzero((self.proposals["gateway"] == np.uint64(self._me)) & (self._changed > 0))

    def nearest_of(self, places: Topics, chosen: Container[Address]) -> NDArray[np.int64]:
        """The indices of topics to whose place on the ring this node is nearer than all chosen neighbours that share
        the topic, or than all but one: that one may be an enemy."""
        nearer = np.zeros(len(self.topics), np.int32)
        for node, neighbour in self._neighbours.items():
            if node in chosen:
                shared = neighbour.shared_at
                nearer[shared] += _is_nearer(neighbour.ring_id, self._ring_id, places[shared])
        return np.flatnonzero(nearer <= 1)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to choose."""
        return not self._marked.any()


def _words(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A column of records as an array of its own."""
    return np.ascontiguousarray(values, np.uint64)


def _is_nearer(one: int, other: int, places: Topics) -> NDArray[np.bool_]:
    """Whether a node is nearer to these places on the ring than another is."""
    ones, others = np.uint64(one) - places, np.uint64(other) - places
    return np.asarray(np.minimum(ones, np.negative(ones)) < np.minimum(others, np.negative(others)))
