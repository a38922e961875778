"""A node's place in the tree of a topic, and which events it has seen there."""

from __future__ import annotations

from dataclasses import dataclass, field

from grapevine.systems.contracts.peer import Address


@dataclass(slots=True)
class Tree:
    """A node's place in a topic's tree."""

    parent: Address | None = None
    asked: Address | None = None  # who shall be the parent and has not answered
    ask: int = 0  # the number of that question
    children: dict[Address, None] = field(default_factory=dict)  # a set in the order of arrival


class Window:
    """The latest sequence numbers of a topic that came; what is older counts as seen."""

    def __init__(self, size: int) -> None:
        self._size, self._latest, self._seen = size, 0, 0  # numbers begin at 1; a bit for each, the latest lowest

    def is_new(self, sequence: int) -> bool:
        """Whether this one comes for the first time."""
        behind = self._latest - sequence
        if behind < 0:
            self._seen = (self._seen << min(-behind, self._size) | 1) & (1 << self._size) - 1
            self._latest = sequence
            return True
        if behind >= self._size or self._seen >> behind & 1:
            return False
        self._seen |= 1 << behind
        return True
