"""What is held: the ledger against sets of numbers, in any order of whatever can happen to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.net.event_file import Possessed
from grapevine.net.ledger import Ledger, gaps

ALICE, BOB = b"a" * 32, b"b" * 32
TOPIC, LIMIT, PATIENCE = 7, 1_000, 2


@dataclass
class Naive:
    """One stream, as sets: what came, what is over, what was given up, and how often each was asked for in vain."""

    last: int = 0
    floor: int = 0
    before: int = 0  # of the numbers up to here nobody has said whether they are wanted
    came: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    in_vain: dict[int, int] = field(default_factory=dict)
    counted: int = 0

    @property
    def missing(self) -> set[int]:
        return set(range(max(self.floor, self.before) + 1, self.last + 1)) - self.came - self.given_up

    def note(self, sequence: int) -> bool:
        if sequence <= self.floor or sequence in self.came:
            return False
        if not self.last or sequence <= self.before:
            self.before = sequence - 1
        self.came.add(sequence)
        self.given_up.discard(sequence)
        self.in_vain.pop(sequence, None)
        self.last = max(self.last, sequence)
        return True

    def lose(self, sequence: int) -> None:
        self.came.discard(sequence)

    def settle(self, over: int) -> None:
        if self.before > self.floor:
            self.floor, self.before = max(self.floor, min(over, self.before)), 0

    def give_up(self, sequence: int) -> None:
        if sequence not in self.given_up and self.note(sequence):
            self.came.discard(sequence)
            self.given_up.add(sequence)
            self.counted += 1

    def not_found(self, sequence: int) -> None:
        if sequence in self.missing:
            self.in_vain[sequence] = self.in_vain.get(sequence, 0) + 1
            if self.in_vain[sequence] >= PATIENCE:
                del self.in_vain[sequence]
                self.given_up.add(sequence)
                self.counted += 1


NUMBERS = st.integers(1, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("note"), NUMBERS),
        st.tuples(st.just("lose"), NUMBERS),
        st.tuples(st.just("settle"), NUMBERS),
        st.tuples(st.just("not_found"), NUMBERS),
        st.tuples(st.just("give_up"), NUMBERS),
    ),
    max_size=60,
)


def opened() -> Ledger:
    ledger = Ledger(LIMIT)
    ledger.open(TOPIC, (), 0.0)
    return ledger


def knowing() -> Ledger:
    """It knew Alice's stream before anything of it came, so that it misses what comes before the first event."""
    ledger = Ledger(LIMIT)
    ledger.open(TOPIC, [Possessed(ALICE, 0, 0, 1, b"", False, [])], 0.0)
    return ledger


def do(ledger: Ledger, what: str, number: int) -> bool | None:
    """One step of a test."""
    if what == "note":
        return ledger.note(TOPIC, ALICE, number, 0.0)
    if what == "not_found":
        ledger.not_found(TOPIC, ALICE, [number], PATIENCE)
    else:
        getattr(ledger, what)(TOPIC, ALICE, number, 0.0)
    return None


def played(steps: list[tuple[str, int]]) -> tuple[Ledger, Naive]:
    ledger, naive = opened(), Naive()
    for what, number in steps:
        assert do(ledger, what, number) == getattr(naive, what)(number)
    return ledger, naive


@given(STEPS)
def test_the_ledger_agrees_with_sets_whatever_happens_in_whatever_order(steps: list[tuple[str, int]]) -> None:
    ledger, naive = played(steps)
    assert ledger.missing(TOPIC, 1.0).get(ALICE, []) == sorted(naive.missing)
    assert ledger.is_complete(TOPIC) == (not naive.missing)
    assert ledger.last(TOPIC, ALICE) == naive.last
    assert ledger.given_up == naive.counted
    for number in range(1, 45):
        assert ledger.has(TOPIC, ALICE, number) == (number <= naive.floor or number in naive.came), number


@given(STEPS, STEPS)
def test_digests_are_equal_if_and_only_if_the_holdings_are(
    one: list[tuple[str, int]], other: list[tuple[str, int]]
) -> None:
    (first, _), (second, _) = played(one), played(other)
    assert (first.digest(TOPIC) == second.digest(TOPIC)) == (first.possessed(TOPIC) == second.possessed(TOPIC))


@given(STEPS)
def test_a_digest_is_never_that_of_an_earlier_state(steps: list[tuple[str, int]]) -> None:
    ledger = opened()
    for at in range(len(steps)):
        fresh, _ = played(steps[: at + 1])
        do(ledger, *steps[at])
        assert ledger.digest(TOPIC) == fresh.digest(TOPIC)


@given(st.sets(NUMBERS), st.sets(NUMBERS), st.permutations(range(1, 41)))
def test_the_order_of_arrival_does_not_show_in_the_digest(few: set[int], more: set[int], order: list[int]) -> None:
    ascending, mixed = opened(), opened()
    wanted = few | more
    for number in sorted(wanted):
        ascending.note(TOPIC, ALICE, number, 0.0)
    for number in [n for n in order if n in wanted]:
        mixed.note(TOPIC, ALICE, number, 0.0)
    assert ascending.digest(TOPIC) == mixed.digest(TOPIC)


@given(st.sets(NUMBERS), st.sets(NUMBERS), st.integers(0, 20))
def test_what_came_while_the_store_was_asked_and_what_it_holds_add_up(
    came: set[int], stored: set[int], floor: int
) -> None:
    ledger = opened()
    for number in came:
        ledger.note(TOPIC, ALICE, number, 0.0)
    stored = {number for number in stored if number > floor}
    last = max(stored, default=floor)
    missing = [n for n in range(floor + 1, last + 1) if n not in stored]
    ledger.open(TOPIC, [Possessed(ALICE, last, floor, min(stored, default=last + 1), b"", False, missing)], 0.0)
    here = {number for number in range(1, 41) if ledger.has(TOPIC, ALICE, number)}
    assert here == came | stored | set(range(1, floor + 1))
    assert ledger.last(TOPIC, ALICE) == max(came | {last})


def test_streams_topics_and_publishers_do_not_mix() -> None:
    ledger = knowing()
    ledger.open(8, (), 0.0)
    assert ledger.note(TOPIC, ALICE, 2, 0.0) and ledger.note(TOPIC, BOB, 1, 0.0) and ledger.note(8, ALICE, 1, 0.0)
    assert ledger.missing(TOPIC, 1.0) == {ALICE: [1]} and ledger.missing(8, 1.0) == {}
    assert sorted(ledger.possessed(TOPIC)) == [(TOPIC, ALICE, 2, ((1, 1),), b""), (TOPIC, BOB, 1, (), b"")]
    ledger.close(TOPIC)
    assert TOPIC not in ledger and ledger.topics() == [8] and not ledger.has(TOPIC, ALICE, 2)


def test_nothing_is_missing_before_it_has_been_for_a_while() -> None:
    ledger = knowing()
    ledger.note(TOPIC, ALICE, 3, now=10.0)
    ledger.note(TOPIC, ALICE, 5, now=20.0)
    assert ledger.missing(TOPIC, before=15.0) == {ALICE: [1, 2]}
    assert ledger.missing(TOPIC, before=10.0) == {}


@pytest.mark.parametrize("far", [LIMIT + 2, 10**6, 2**62])
def test_an_event_from_far_ahead_makes_a_bounded_gap_and_counts_what_is_given_up(far: int) -> None:
    ledger = knowing()
    ledger.note(TOPIC, ALICE, 1, 0.0)
    ledger.note(TOPIC, ALICE, far, 0.0)
    missing = ledger.missing(TOPIC, 1.0)[ALICE]
    assert missing == list(range(far - LIMIT, far))
    assert ledger.given_up == far - 2 - LIMIT


def test_many_small_gaps_are_bounded_too_and_quickly() -> None:
    ledger = knowing()
    for number in range(2, 20 * LIMIT, 2):
        ledger.note(TOPIC, ALICE, number, 0.0)
    missing = ledger.missing(TOPIC, 1.0)[ALICE]
    assert 0.8 * LIMIT < len(missing) <= LIMIT and missing[-1] == 20 * LIMIT - 3
    assert ledger.given_up + len(missing) == 10 * LIMIT - 1


def test_a_thousand_publishers_from_far_ahead_fill_no_memory() -> None:
    ledger = opened()
    for number in range(1_000):
        ledger.note(TOPIC, number.to_bytes(32, "big"), 2**40, 0.0)
        ledger.settle(TOPIC, number.to_bytes(32, "big"), 0, 0.0)  # nobody says that any of it is old
    assert sum(map(len, ledger.missing(TOPIC, 1.0).values())) <= 20 * LIMIT
    ledger.close(TOPIC)
    ledger.open(TOPIC, (), 0.0)
    ledger.note(TOPIC, ALICE, LIMIT + 1, 0.0)
    ledger.settle(TOPIC, ALICE, 0, 0.0)
    assert len(ledger.missing(TOPIC, 1.0)[ALICE]) == LIMIT  # room again: what was closed is no longer counted


def test_a_given_up_event_is_taken_when_it_comes_after_all() -> None:
    ledger = knowing()
    ledger.note(TOPIC, ALICE, 2, 0.0)
    for _ in range(PATIENCE):
        assert ledger.missing(TOPIC, 1.0) == {ALICE: [1]}
        ledger.not_found(TOPIC, ALICE, [1], PATIENCE)
    assert ledger.missing(TOPIC, 1.0) == {} and ledger.given_up == 1
    assert not ledger.has(TOPIC, ALICE, 1)
    assert ledger.abandoned(TOPIC) == {ALICE: [1]} and ledger.possessed(TOPIC) == [(TOPIC, ALICE, 2, ((1, 1),), b"")]
    digest = ledger.digest(TOPIC)  # whoever has the event can help, and so has another one
    assert ledger.note(TOPIC, ALICE, 1, 0.0) and not ledger.note(TOPIC, ALICE, 1, 0.0)
    assert ledger.digest(TOPIC) != digest and ledger.abandoned(TOPIC) == {}


@given(st.sets(st.integers(1, 200)))
def test_gaps_are_the_fewest_runs_that_hold_exactly_these_numbers(numbers: set[int]) -> None:
    runs = gaps(sorted(numbers))
    assert [n for first, last in runs for n in range(first, last + 1)] == sorted(numbers)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(runs))
