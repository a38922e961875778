"""Proposals sent as changes: after repair the same as sent whole, whatever is lost, doubled or late."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.gossip.interests import Interests, array_of
from grapevine.systems.vitis.peer import proposals
from grapevine.systems.vitis.peer.messages import PROPOSAL, Descriptor, Heartbeat
from grapevine.systems.vitis.peer.proposals import ReceivedProposals, SentProposals
from tests.effort import examples

ALL = array_of([3, 5, 8, 2**63, 2**64 - 2])
ME = Descriptor(1, 9, 1, 1, 0.0)


@pytest.fixture(autouse=True)
def parts_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "PROPOSALS_A_PART", 2)


class Sender:
    """A node whose proposals change at random."""

    def __init__(self, session: int) -> None:
        self.now = np.zeros(len(ALL), PROPOSAL)
        self.now["topic"] = ALL
        self.changed = np.ones(len(ALL), np.int64)
        self.stamp = 1
        self.sent = SentProposals(session)

    def change(self, at: int, hops: int) -> None:
        self.stamp += 1
        self.now["hops"][at], self.changed[at] = hops, self.stamp

    def beat(self, *, repeat: bool) -> list[Heartbeat]:
        if repeat:
            self.sent.repeat(2)
        stamp, _, _ = self.sent.progress(2)
        parts = self.sent.send(2, self.now[self.changed > stamp], ALL[:0], self.stamp, 1)
        return [Heartbeat(ME, True, False, self.sent.session, *part) for part in parts]


@examples(2)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=4), min_size=1, max_size=12),
    st.integers(0, 2**32),
    st.integers(0, 12),
)
def test_after_repair_the_same_is_known_as_was_proposed(
    rounds: list[list[tuple[int, int]]], seed: int, restarts: int
) -> None:
    """Messages are lost, doubled and arrive up to two rounds late; then the network is quiet for some rounds."""
    random, sender, received, own = Random(seed), Sender(1), ReceivedProposals(), Interests(ALL.tolist(), 1, 10)
    on_the_way: list[Heartbeat] = []
    repeat = False
    for number, changes in enumerate(rounds):
        if number == restarts:
            sender = Sender(2)
        for at, hops in changes:
            sender.change(at, hops)
        on_the_way += [message for message in sender.beat(repeat=repeat) for _ in range(random.randrange(3))]
        random.shuffle(on_the_way)
        arriving = random.randrange(len(on_the_way) + 1)
        for message in on_the_way[:arriving]:
            received.take(message, own)
        on_the_way = on_the_way[arriving:]
        repeat = received.must_repeat() and random.random() < 0.7
    for message in on_the_way:
        if message.session == sender.sent.session:
            received.take(message, own)
    for _ in range(8):
        for message in sender.beat(repeat=repeat):
            received.take(message, own)
        repeat = received.must_repeat()
    there, known = received.of(ALL)
    assert there.all()
    assert known[list(PROPOSAL.names or ())].tolist() == sender.now.tolist()
    assert sum(len(message.proposals) for message in sender.beat(repeat=False)) == 0, "and nothing more is sent"


def test_a_withdrawn_proposal_does_not_come_back_with_a_late_message() -> None:
    received, own, sender = ReceivedProposals(), Interests(ALL.tolist(), 1, 10), Sender(1)
    early = sender.beat(repeat=False)
    late = Heartbeat(ME, True, False, 1, 1, 9, b"", ALL[:2].tobytes())
    assert received.take(late, own).tolist() == ALL[:2].tolist()
    for message in early:
        received.take(message, own)
    assert received.of(ALL)[0].tolist() == [False, False, True, True, True]


def test_proposals_for_others_topics_are_not_kept() -> None:
    received, own = ReceivedProposals(), Interests([5, 2**63], 1, 10)
    for message in Sender(1).beat(repeat=False):
        received.take(message, own)
    assert received.records["topic"].tolist() == [5, 2**63]
    own.remove(5)
    received.keep(own.array())
    assert received.records["topic"].tolist() == [2**63]


def test_who_becomes_a_neighbour_again_is_sent_everything_with_higher_numbers() -> None:
    sender = Sender(1)
    first = sender.beat(repeat=False)
    sender.sent.keep(set())
    again = sender.beat(repeat=False)
    assert again[0].complete_from == again[0].serial == first[-1].serial + 1
    assert [message.proposals for message in again] == [message.proposals for message in first]
