"""Copies and replays are known, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.gossip.window import WINDOW, Windows

SEQUENCES = st.integers(0, 3 * WINDOW) | st.integers(0, 2**62)


@given(st.lists(SEQUENCES, max_size=80))
def test_an_event_is_new_once_and_never_below_the_window(sequences: list[int]) -> None:
    windows, seen = Windows(), set[int]()
    for sequence in sequences:
        floor = max(seen, default=0) - WINDOW + 1
        assert windows.add(3, 7, sequence) == (sequence >= floor and sequence not in seen)
        seen.add(sequence)


def test_an_event_older_than_the_window_is_not_taken_again() -> None:
    windows = Windows()
    assert all(windows.add(1, 2, sequence) for sequence in range(1, 3 * WINDOW))
    assert not any(windows.add(1, 2, sequence) for sequence in range(1, 3 * WINDOW))


def test_publishers_and_topics_have_windows_of_their_own_and_the_least_used_goes() -> None:
    windows = Windows(most=2)
    assert windows.add(1, 1, 5) and windows.add(1, 2, 5) and not windows.add(1, 1, 5)
    assert windows.add(2, 1, 5)  # forgets (1, 2)
    assert len(windows) == 2
    assert not windows.add(1, 1, 5) and windows.add(1, 2, 5)


@given(st.lists(SEQUENCES, max_size=40), SEQUENCES)
def test_whether_an_event_is_known_is_asked_without_noting_it(sequences: list[int], asked: int) -> None:
    windows = Windows()
    for sequence in sequences:
        windows.add(3, 7, sequence)
    known = windows.has(3, 7, asked)
    assert windows.has(3, 7, asked) == known
    assert windows.add(3, 7, asked) != known
