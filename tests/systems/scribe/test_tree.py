"""Which events a node has seen in a tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.scribe.tree import Window


@given(st.lists(st.integers(1, 200)), st.integers(1, 300))
def test_a_window_tells_new_events_from_old(sequences: list[int], size: int) -> None:
    window, seen = Window(size), list[int]()
    for sequence in sequences:
        latest = max(seen, default=0)
        assert window.is_new(sequence) == (sequence not in seen and sequence > latest - size)
        seen.append(sequence)
