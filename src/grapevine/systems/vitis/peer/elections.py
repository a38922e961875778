"""Gateways: one proposal per topic of this node, revised where something that it depends on has changed (Algorithm 5).

A proposal depends on which neighbours share the topic and on what they propose. Whoever changes either marks the topic,
and only marked ones are chosen again, some thousands a turn; where nothing changes any more this is the fixpoint of
choosing all of them in every turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.gateways import Chosen, Told, choose_gateways
from grapevine.systems.vitis.peer.interests import find
from grapevine.systems.vitis.peer.messages import PROPOSAL, Records, Topics
from grapevine.systems.vitis.peer.proposals import Heard

ELECTED_A_TURN = 8_192  # topics: about 30 ms with nine neighbours that share all
TOLD_A_TURN = 16_384  # proposals to a neighbour, half a megabyte: many that are new will have changed before long
_NONE = np.empty(0, np.int32)


class Member(NamedTuple):
    """A neighbour: where it is on the ring, which of this node's topics (by place) it shares, and its proposals."""

    ring_id: int
    places: Columns
    heard: Heard


class Elections:
    """Proposals of one node."""

    def __init__(self, me: Address, ring_id: int, reach: int) -> None:
        self._me, self._ring_id, self._reach = me, ring_id, reach
        self.topics: Topics = np.empty(0, np.uint64)
        self.keys: Topics = np.empty(0, np.uint64)
        self.proposals: Records = np.empty(0, PROPOSAL)
        self._stamp = 0  # counts changes of proposals
        self._changed: NDArray[np.int64] = np.empty(0, np.int64)  # the stamp of each topic's last change; 0: none yet
        self._marked: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._members: dict[Address, Member] = {}
        self._next = 0  # the place from which marked topics are taken

    def want(self, topics: Topics, keys: Topics) -> None:
        """These are the node's topics now, and their places on the ring."""
        if topics is self.topics:
            return
        at, stays = find(self.topics, topics)
        proposals = np.zeros(len(topics), PROPOSAL)
        proposals["topic"], proposals["gateway"], proposals["parent"] = topics, self._me, self._me
        proposals["gateway_id"] = self._ring_id
        proposals[stays] = self.proposals[at[stays]]
        changed, marked = np.zeros(len(topics), np.int64), np.ones(len(topics), np.bool_)
        changed[stays], marked[stays] = self._changed[at[stays]], self._marked[at[stays]]
        new_place = np.full(len(self.topics), -1, np.int32)
        new_place[at[stays]] = np.flatnonzero(stays)
        for node, member in self._members.items():
            places = new_place[member.places]
            self._members[node] = member._replace(places=places[places >= 0])
        self.topics, self.keys, self.proposals, self._changed, self._marked = topics, keys, proposals, changed, marked
        self._next = 0

    def meet(self, members: Mapping[Address, Member]) -> None:
        """These are the neighbours now; their places are those in the node's topics."""
        for node in {*self._members, *members}:
            old, new = self._members.get(node), members.get(node)
            before, after = old.places if old else _NONE, new.places if new else _NONE
            if before is not after:
                self._marked[np.setxor1d(before, after, assume_unique=True)] = True
        self._members = dict(sorted(members.items()))

    def mark(self, topics: Topics) -> None:
        """A neighbour proposes something else for these."""
        if len(topics):
            self._marked[np.isin(self.topics, topics, assume_unique=True)] = True

    def elect(self, most: int = ELECTED_A_TURN) -> None:
        """Choose again where something has changed; what is too much for one turn waits for the next."""
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

    def _choose(self, places: NDArray[np.int64]) -> Records:
        which, nodes, ids, told = [], [], [], []
        for node, member in self._members.items():
            at = np.flatnonzero(np.isin(places, member.places, assume_unique=True))
            there, records = member.heard.of(self.topics[places[at]])
            which.append(at[there])
            nodes.append(np.full(len(records), node, np.uint64))
            ids.append(np.full(len(records), member.ring_id, np.uint64))
            told.append(records)
        count = len(places)
        at = np.concatenate([*which, np.empty(0, np.int64)])
        order = np.argsort(at, kind="stable")
        rows = np.concatenate(told)[order] if told else np.empty(0, PROPOSAL)
        starts = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=count))]).astype(np.int64)

        def words(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
            return np.ascontiguousarray(values, np.uint64)

        made = Told(
            starts,
            words(np.concatenate([*nodes, np.empty(0, np.uint64)])[order]),
            words(np.concatenate([*ids, np.empty(0, np.uint64)])[order]),
            words(rows["gateway"]),
            words(rows["gateway_id"]),
            words(rows["parent"]),
            np.ascontiguousarray(rows["hops"], np.int32),
        )
        gateways, ids_of, parents = (np.empty(count, np.uint64) for _ in range(3))
        out = Chosen(gateways, ids_of, parents, np.empty(count, np.int32))
        topics, keys = self.topics[places], self.keys[places]
        choose_gateways(self._reach, np.uint64(self._me), np.uint64(self._ring_id), topics, keys, made, out)
        chosen = np.empty(count, PROPOSAL)
        chosen["topic"], chosen["gateway"], chosen["gateway_id"] = topics, out.gateways, out.gateway_ids
        chosen["parent"], chosen["hops"] = out.parents, out.hops
        return chosen

    def news(self, places: Columns, stamp: int, again: Topics) -> tuple[Records, int]:
        """Proposals for the topics at these places that changed after the stamp, and those to be told again.

        Of very many only the oldest are told, some thousands a turn; returns also the stamp up to which that is all.
        """
        changed = self._changed[places]
        later, upto = np.flatnonzero(changed > stamp), self._stamp
        if len(later) > TOLD_A_TURN:
            later = later[np.argpartition(changed[later], TOLD_A_TURN)[:TOLD_A_TURN]]
            upto = int(changed[later].max())
        tell = np.zeros(len(places), np.bool_)
        tell[later] = True
        if len(again):
            tell |= np.isin(self.topics[places], again, assume_unique=True) & (changed > 0)
        return self.proposals[places[tell]], upto

    def gateway_of(self) -> NDArray[np.int64]:
        """The places of topics whose gateway this node proposes to be."""
        return np.flatnonzero((self.proposals["gateway"] == np.uint64(self._me)) & (self._changed > 0))

    @property
    def is_settled(self) -> bool:
        """Nothing is left to choose."""
        return not self._marked.any()
