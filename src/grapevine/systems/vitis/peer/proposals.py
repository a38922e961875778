"""Proposals on their way between two neighbours: only what changed is told, and what got lost is noticed.

Every message has a number, and a proposal that was told later is not undone by one that comes late, so order does not
matter. Numbers that are missing at the next turn make the receiver ask for everything again.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.interests import Interests, find
from grapevine.systems.vitis.peer.messages import (
    PROPOSAL,
    PROPOSALS_A_PART,
    Heartbeat,
    Records,
    Topics,
    pack,
    parts,
    unpack,
    unpack_proposals,
)

HEARD = np.dtype([*((name, PROPOSAL[name]) for name in PROPOSAL.names or ()), ("number", "<i8")])
WITHDRAWN = np.iinfo(np.uint16).max  # hops of what is no longer proposed; kept, lest an old message brings it back
_MOST_AHEAD = 4_096  # numbers after one that is missing
_ASK_EVERY = 4  # turns


class Heard:
    """What one neighbour proposes, for topics that this node has."""

    def __init__(self) -> None:
        self._session: int | None = None
        self._since = self._upto = 0  # all numbers between these have come
        self._ahead: set[int] = set()  # and these
        self._lost = False  # there were too many of these
        self._turns_behind = 0
        self.records: Records = np.empty(0, HEARD)

    def _start(self, message: Heartbeat) -> None:
        """Its session is a new one."""
        self._session, self._since, self._upto = message.session, message.since, message.since - 1
        self._ahead, self._lost = set(), False
        self.records = np.empty(0, HEARD)

    def take(self, message: Heartbeat, own: Interests) -> Topics:
        """The topics for which it now proposes something else."""
        if not message.is_sound():
            return np.empty(0, np.uint64)
        changed = np.empty(0, np.uint64)
        if message.session != self._session:
            changed = self.records["topic"].copy()
            self._start(message)
        if message.since > self._since:
            self._since, self._upto, self._lost = message.since, message.since - 1, False
            self._ahead = {number for number in self._ahead if number >= message.since}
        if message.number <= self._upto or message.number in self._ahead or message.since < self._since:
            return changed
        self._count(message.number)
        if message.proposals:
            told = unpack_proposals(message.proposals)
            changed = np.concatenate([changed, self._merge(told, message.number, own)])
        if message.withdrawn:
            withdrawn = unpack(message.withdrawn)
            gone = np.zeros(len(withdrawn), PROPOSAL)
            gone["topic"], gone["hops"] = withdrawn, WITHDRAWN
            changed = np.concatenate([changed, self._merge(gone, message.number, own)])
        return changed

    def _count(self, number: int) -> None:
        if number > self._upto + _MOST_AHEAD:
            self._lost = True
            return
        self._ahead.add(number)
        while self._upto + 1 in self._ahead:
            self._upto += 1
            self._ahead.discard(self._upto)

    def _merge(self, told: Records, number: int, own: Interests) -> Topics:
        told = told[own.hold(told["topic"])]
        at, there = find(self.records["topic"], told["topic"])
        newer = there.copy()
        newer[there] = self.records["number"][at[there]] < number
        news = np.empty(len(told), HEARD)
        for name in PROPOSAL.names or ():
            news[name] = told[name]
        news["number"] = number
        places = at[newer]
        differs = self.records[list(PROPOSAL.names or ())][places] != told[newer]
        changed = told["topic"][newer][differs], told["topic"][~there]
        self.records[places] = news[newer]
        if not there.all():
            self.records = np.insert(self.records, at[~there], news[~there])
        return np.concatenate(changed)

    def of(self, topics: Topics) -> tuple[np.ndarray, Records]:
        """For which of the (ascending) topics there is a proposal, and these."""
        at, there = find(self.records["topic"], topics)
        there[there] = self.records["hops"][at[there]] != WITHDRAWN
        return there, self.records[at[there]]

    def keep(self, own: Topics) -> None:
        """These are this node's topics from now on."""
        self.records = self.records[find(own, self.records["topic"])[1]]

    def must_repeat(self) -> bool:
        """Asked once a turn: whether to ask for everything, since something is missing, and not every turn."""
        self._turns_behind = self._turns_behind + 1 if self._ahead or self._lost else 0
        return self._turns_behind % _ASK_EVERY == 1


class Part(NamedTuple):
    """What goes into one heartbeat."""

    since: int
    number: int
    proposals: bytes
    withdrawn: bytes


class _Telling:
    """How far one neighbour has been told."""

    __slots__ = ("again", "all", "number", "since", "stamp", "version")

    def __init__(self, number: int) -> None:
        self.since, self.number = number + 1, number
        self.stamp = self.version = 0
        self.all = True
        self.again: Topics = np.empty(0, np.uint64)


class Tellings:
    """What this node has told its neighbours in this session."""

    def __init__(self, session: int) -> None:
        self.session = session
        self._tellings: dict[Address, _Telling] = {}
        self._last = 0  # the highest number: who becomes a neighbour again goes on above what it has seen

    def repeat(self, node: Address, topics: Topics | None = None) -> None:
        """It has to be told these again, or everything."""
        telling = self._tellings.get(node)
        if telling is None:
            return
        if topics is None:
            telling.all = True
        else:
            telling.again = np.union1d(telling.again, topics)

    def keep(self, neighbours: Container[Address]) -> None:
        """Others are told nothing any more."""
        self._tellings = {node: telling for node, telling in self._tellings.items() if node in neighbours}

    def progress(self, node: Address) -> tuple[int, int, Topics]:
        """Up to which change of proposals and which version of the profile it has been told, and what to tell again."""
        telling = self._tellings.setdefault(node, _Telling(self._last))
        return 0 if telling.all else telling.stamp, telling.version, telling.again

    def tell(self, node: Address, proposals: Records, withdrawn: Topics, stamp: int, version: int) -> list[Part]:
        """It is told these now, and so everything up to this change and version."""
        telling = self._tellings[node]
        if telling.all:
            telling.since = telling.number + 1
        told = []
        for i, some in enumerate(parts(proposals, PROPOSALS_A_PART)):
            telling.number += 1
            gone = b"" if i else pack(withdrawn[:PROPOSALS_A_PART])  # the profile says so, too, if a little later
            told.append(Part(telling.since, telling.number, some.tobytes(), gone))
        telling.all, telling.again = False, np.empty(0, np.uint64)
        telling.stamp, telling.version = stamp, version
        self._last = max(self._last, telling.number)
        return told
