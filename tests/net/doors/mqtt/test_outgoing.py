"""Packet identifiers, and what is acknowledged in the node, for any order of a client's answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grapevine.net.doors.mqtt.outgoing import DONE, RELEASED, SENT, Outgoing, Progress

A, B = b"a" * 32, b"b" * 32


@given(st.permutations([(publisher, n) for publisher in (A, B) for n in range(1, 8)]))
def test_the_node_is_told_of_a_stretch_without_a_gap(answers: list[tuple[bytes, int]]) -> None:
    progress, told, done = Progress(), {A: 0, B: 0}, {A: set[int](), B: set[int]()}
    for publisher in (A, B):
        for sequence in range(1, 8):
            progress.hand_over(publisher, sequence)
    for publisher, sequence in answers:
        progress.acknowledge(publisher, sequence)
        done[publisher].add(sequence)
        for whose, sequences in progress.due().items():
            assert sequences == [*range(told[whose] + 1, sequences[-1] + 1)]
            assert set(sequences) <= done[whose]
            told[whose] = sequences[-1]
        assert all(told[whose] + 1 not in done[whose] for whose in told)
    assert told == {A: 7, B: 7}


def test_a_message_of_qos_2_keeps_its_number_until_it_is_over_and_is_remembered_until_the_node_knows() -> None:
    outgoing = Outgoing()
    first, again = outgoing.number_for(("t", A, 1), 2)
    assert not again and first.stage == SENT
    number = first.number
    assert outgoing.complete(number) is None
    assert outgoing.release(number) is first and first.stage == RELEASED
    assert outgoing.acknowledge(number) is None
    kept = Outgoing(outgoing.pending())
    assert kept.number_for(("t", A, 1), 2) == (first, True)
    assert kept.number_for(("t", A, 2), 2)[0].number != number
    assert kept.complete(number) is first and (first.stage, first.number) == (DONE, 0)
    assert kept.number_for(("t", A, 1), 2) == (first, True)
    kept.forget(("t", A, 1))
    assert kept.number_for(("t", A, 1), 2)[1] is False


def test_numbers_that_are_taken_are_not_given_again() -> None:
    outgoing = Outgoing()
    kept = outgoing.number_for(("t", A, 0), 1)[0].number
    for sequence in range(1, 70_000):
        made, _ = outgoing.number_for(("t", A, sequence), 1)
        assert made.number != kept and 0 < made.number < 65_536
        outgoing.acknowledge(made.number)
