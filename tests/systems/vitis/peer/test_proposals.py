"""Proposals told as changes: after repair the same as told whole, whatever is lost, doubled or late."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine.systems.vitis.peer import proposals
from grapevine.systems.vitis.peer.interests import Interests, array_of
from grapevine.systems.vitis.peer.messages import PROPOSAL, Descriptor, Heartbeat
from grapevine.systems.vitis.peer.proposals import Heard, Tellings

ALL = array_of([3, 5, 8, 2**63, 2**64 - 2])
ME = Descriptor(1, 9, 1, 1, 0.0)


@pytest.fixture(autouse=True)
def parts_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "PROPOSALS_A_PART", 2)


class Teller:
    """A node whose proposals change at random."""

    def __init__(self, session: int) -> None:
        self.now = np.zeros(len(ALL), PROPOSAL)
        self.now["topic"] = ALL
        self.changed = np.ones(len(ALL), np.int64)
        self.stamp = 1
        self.tellings = Tellings(session)

    def change(self, at: int, hops: int) -> None:
        self.stamp += 1
        self.now["hops"][at], self.changed[at] = hops, self.stamp

    def beat(self, *, repeat: bool) -> list[Heartbeat]:
        if repeat:
            self.tellings.repeat(2)
        stamp, _, _ = self.tellings.progress(2)
        told = self.tellings.tell(2, self.now[self.changed > stamp], ALL[:0], self.stamp, 1)
        return [Heartbeat(ME, True, False, self.tellings.session, *part) for part in told]


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=4), min_size=1, max_size=12),
    st.integers(0, 2**32),
    st.integers(0, 12),
)
def test_after_repair_the_same_is_known_as_was_proposed(
    rounds: list[list[tuple[int, int]]], seed: int, restarts: int
) -> None:
    """Messages are lost, doubled and arrive up to two rounds late; then the network is quiet for some rounds."""
    random, teller, heard, own = Random(seed), Teller(1), Heard(), Interests(ALL.tolist(), 1, 10)
    on_the_way: list[Heartbeat] = []
    repeat = False
    for turn, changes in enumerate(rounds):
        if turn == restarts:
            teller = Teller(2)
        for at, hops in changes:
            teller.change(at, hops)
        on_the_way += [told for told in teller.beat(repeat=repeat) for _ in range(random.randrange(3))]
        random.shuffle(on_the_way)
        arriving = random.randrange(len(on_the_way) + 1)
        for told in on_the_way[:arriving]:
            heard.take(told, own)
        on_the_way = on_the_way[arriving:]
        repeat = heard.must_repeat() and random.random() < 0.7
    for told in on_the_way:
        if told.session == teller.tellings.session:
            heard.take(told, own)
    for _ in range(8):
        for told in teller.beat(repeat=repeat):
            heard.take(told, own)
        repeat = heard.must_repeat()
    there, known = heard.of(ALL)
    assert there.all()
    assert known[list(PROPOSAL.names or ())].tolist() == teller.now.tolist()
    assert sum(len(told.proposals) for told in teller.beat(repeat=False)) == 0, "and nothing more is told"


def test_a_withdrawn_proposal_does_not_come_back_with_a_late_message() -> None:
    heard, own, teller = Heard(), Interests(ALL.tolist(), 1, 10), Teller(1)
    early = teller.beat(repeat=False)
    late = Heartbeat(ME, True, False, 1, 1, 9, b"", ALL[:2].tobytes())
    assert heard.take(late, own).tolist() == ALL[:2].tolist()
    for told in early:
        heard.take(told, own)
    assert heard.of(ALL)[0].tolist() == [False, False, True, True, True]


def test_proposals_for_others_topics_are_not_kept() -> None:
    heard, own = Heard(), Interests([5, 2**63], 1, 10)
    for told in Teller(1).beat(repeat=False):
        heard.take(told, own)
    assert heard.records["topic"].tolist() == [5, 2**63]
    own.remove(5)
    heard.keep(own.array())
    assert heard.records["topic"].tolist() == [2**63]


def test_who_becomes_a_neighbour_again_is_told_everything_with_higher_numbers() -> None:
    teller = Teller(1)
    first = teller.beat(repeat=False)
    teller.tellings.keep(set())
    again = teller.beat(repeat=False)
    assert again[0].since == again[0].number == first[-1].number + 1
    assert [told.proposals for told in again] == [told.proposals for told in first]
