"""Proposals on their way between two neighbours: only what changed is sent, and what got lost is noticed.

The two ends of one direction of a link, `SentProposals` at the sender and `ReceivedProposals` at the receiver; that
they agree in the end, and why, is in `agreement`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import Interests, find
from grapevine.systems.gossip.messages import Topics, pack, parts, unpack
from grapevine.systems.vitis.peer.messages import PROPOSAL, PROPOSALS_A_PART, Heartbeat, Records, unpack_proposals

RECEIVED = np.dtype([*((name, PROPOSAL[name]) for name in PROPOSAL.names or ()), ("serial", "<i8")])
WITHDRAWN = np.iinfo(np.uint16).max  # hops of what is no longer proposed; kept, lest an old message brings it back
_MOST_AHEAD = 4_096  # serials after one that is missing
_ASK_EVERY = 4  # rounds
_NO_TOPICS: Topics = np.empty(0, np.uint64)


class ReceivedProposals:
    """What one neighbour proposes, for topics that this node has, as far as its heartbeats have come."""

    def __init__(self) -> None:
        self._session: int | None = None  # None until the first heartbeat
        self._complete_from = self._upto = 0  # all serials between these have come
        self._ahead: set[int] = set()  # and these, later than one that is missing
        self._lost = False  # there were too many of these to remember
        self._rounds_behind = 0
        self.records: Records = np.empty(0, RECEIVED)  # by ascending topic

    def _start(self, message: Heartbeat) -> None:
        """The neighbour's session is a new one: what came in the last is void."""
        first = message.complete_from
        self._session, self._complete_from, self._upto = message.session, first, first - 1
        self._ahead, self._lost = set(), False
        self.records = np.empty(0, RECEIVED)

    def take(self, message: Heartbeat, own: Interests) -> Topics:
        """A heartbeat came, in any order; returns the topics for which the neighbour now proposes something else."""
        if not message.is_sound():
            return _NO_TOPICS
        changed = _NO_TOPICS
        if message.session != self._session:
            changed = self.records["topic"].copy()
            self._start(message)
        if message.complete_from > self._complete_from:
            self._complete_from, self._upto, self._lost = message.complete_from, message.complete_from - 1, False
            self._ahead = {serial for serial in self._ahead if serial >= message.complete_from}
        is_old = message.serial <= self._upto or message.serial in self._ahead
        if is_old or message.complete_from < self._complete_from:
            return changed
        self._note(message.serial)
        if message.proposals:
            proposed = unpack_proposals(message.proposals)
            changed = np.concatenate([changed, self._merge(proposed, message.serial, own)])
        if message.withdrawn:
            withdrawn = unpack(message.withdrawn)
            gone = np.zeros(len(withdrawn), PROPOSAL)
            gone["topic"], gone["hops"] = withdrawn, WITHDRAWN
            changed = np.concatenate([changed, self._merge(gone, message.serial, own)])
        return changed

    def _note(self, serial: int) -> None:
        if serial > self._upto + _MOST_AHEAD:
            self._lost = True
            return
        self._ahead.add(serial)
        while self._upto + 1 in self._ahead:
            self._upto += 1
            self._ahead.discard(self._upto)

    def _merge(self, proposed: Records, serial: int, own: Interests) -> Topics:
        """Take these where none came with a higher serial; returns the topics for which that makes a difference."""
        proposed = proposed[own.contains(proposed["topic"])]
        at, there = find(self.records["topic"], proposed["topic"])
        newer = there.copy()
        newer[there] = self.records["serial"][at[there]] < serial
        news = np.empty(len(proposed), RECEIVED)
        for name in PROPOSAL.names or ():
            news[name] = proposed[name]
        news["serial"] = serial
        rows = at[newer]
        differs = self.records[list(PROPOSAL.names or ())][rows] != proposed[newer]
        changed = proposed["topic"][newer][differs], proposed["topic"][~there]
        self.records[rows] = news[newer]
        if not there.all():
            self.records = np.insert(self.records, at[~there], news[~there])
        return np.concatenate(changed)

    def of(self, topics: Topics) -> tuple[np.ndarray, Records]:
        """For which of the (ascending) topics the neighbour proposes something, and the records of these."""
        at, there = find(self.records["topic"], topics)
        there[there] = self.records["hops"][at[there]] != WITHDRAWN
        return there, self.records[at[there]]

    def keep(self, own: Topics) -> None:
        """These are this node's topics from now on: what is proposed for others is forgotten."""
        self.records = self.records[find(own, self.records["topic"])[1]]

    def must_repeat(self) -> bool:
        """Whether to ask the neighbour for everything again, because something is missing. To be called once a round.

        True in the first round in which something is missing and in every fourth after it, until all is there.
        """
        self._rounds_behind = self._rounds_behind + 1 if self._ahead or self._lost else 0
        return self._rounds_behind % _ASK_EVERY == 1


class Part(NamedTuple):
    """What goes into one heartbeat, in the order of its fields."""

    complete_from: int
    serial: int
    proposals: bytes
    withdrawn: bytes


class _Progress:
    """How much of the proposals one neighbour has been sent."""

    __slots__ = ("complete_from", "repeat_all", "repeat_topics", "serial", "stamp", "version")

    def __init__(self, serial: int) -> None:
        self.complete_from, self.serial = serial + 1, serial  # `serial` is that of the last heartbeat
        self.stamp = self.version = 0  # it knows proposals up to this change, and topics up to this version
        self.repeat_all = True
        self.repeat_topics: Topics = _NO_TOPICS


class SentProposals:
    """What this node has sent to its neighbours in this session."""

    def __init__(self, session: int) -> None:
        self.session = session
        self._progress: dict[Address, _Progress] = {}
        self._last = 0  # the highest serial: who becomes a neighbour again goes on above what it has seen

    def repeat(self, node: Address, topics: Topics | None = None) -> None:
        """The neighbour needs these topics' proposals again, or all of them; the next heartbeats have them."""
        progress = self._progress.get(node)
        if progress is None:
            return
        if topics is None:
            progress.repeat_all = True
        else:
            progress.repeat_topics = np.union1d(progress.repeat_topics, topics)

    def keep(self, neighbours: Container[Address]) -> None:
        """These are the neighbours now: others are sent nothing, and start anew if they come back."""
        self._progress = {node: progress for node, progress in self._progress.items() if node in neighbours}

    def progress(self, node: Address) -> tuple[int, int, Topics]:
        """Up to which change of proposals and which version of the topics a neighbour knows, and what to repeat."""
        progress = self._progress.setdefault(node, _Progress(self._last))
        return 0 if progress.repeat_all else progress.stamp, progress.version, progress.repeat_topics

    def send(self, node: Address, proposals: Records, withdrawn: Topics, stamp: int, version: int) -> list[Part]:
        """The parts in which a neighbour gets these, after which it knows everything up to this change and version."""
        progress = self._progress[node]
        if progress.repeat_all:
            progress.complete_from = progress.serial + 1
        made = []
        for i, some in enumerate(parts(proposals, PROPOSALS_A_PART)):
            progress.serial += 1
            gone = b"" if i else pack(withdrawn[:PROPOSALS_A_PART])  # the profile says so, too, if a little later
            made.append(Part(progress.complete_from, progress.serial, some.tobytes(), gone))
        progress.repeat_all, progress.repeat_topics = False, _NO_TOPICS
        progress.stamp, progress.version = stamp, version
        self._last = max(self._last, progress.serial)
        return made
