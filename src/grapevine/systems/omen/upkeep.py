"""Control messages that OMen's nodes send, by kind, and the descriptors of nodes that they carry."""

from __future__ import annotations

from collections import Counter

from grapevine.systems.contracts.rounds import Sent


class Upkeep:
    """Totals since the start of the run. Whoever sends a message counts it here."""

    def __init__(self) -> None:
        self._sent: Counter[str] = Counter()
        self._carried: Counter[str] = Counter()

    def count(self, kind: str, messages: int, descriptors: int = 0) -> None:
        """So many messages of a kind were sent, with so many descriptors in all of them."""
        self._sent[kind] += messages
        self._carried[kind] += descriptors

    def totals(self) -> dict[str, Sent]:
        """By kind, in alphabetical order."""
        return {kind: Sent(self._sent[kind], self._carried[kind]) for kind in sorted(self._sent)}
