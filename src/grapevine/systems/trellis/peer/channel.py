"""One direction of a link: what a node tells a neighbour, as changes, none of which may get lost.

Theory. The sender has a table of facts, at most one of a kind about a topic, and the receiver is to have the same. What
the table should hold is asked of whoever knows (`Desired`) when an update is made, so a fact that changes many times
while an update is on its way is sent once. One update with facts is on its way at a time: it has a serial, is repeated
until it is confirmed, and the next one comes after that (stop and wait).

Invariants, whatever is lost, doubled or late:
1. The receiver applies updates in the order of their serials, each once: it takes serial `received + 1` alone, and the
   sender begins serial n + 1 only when n was confirmed.
2. A fact that differs from what the receiver has was marked: whoever changes an input marks the facts that follow.
3. So when nothing is marked and nothing unconfirmed, both tables are equal.
"""

from __future__ import annotations

from collections.abc import Callable

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.messages import KINDS, AnyFact, Fact, Gone, Update

MOST_FACTS = 512  # in an update: some 15 kB
Key = tuple[int, int]  # the place of a kind in `KINDS`, and a topic
Desired = Callable[[Key], "AnyFact | None"]
Nodes = tuple[Address, ...]


class Outgoing:
    """What one neighbour is told."""

    def __init__(self) -> None:
        self.told: dict[Key, AnyFact] = {}  # what the receiver has, or will have when it confirms
        self._marked: dict[Key, None] = {}
        self._links: Nodes | None = None  # that the receiver knows of
        self.serial = 0
        self.unconfirmed: tuple[tuple[AnyFact, ...], Nodes | None] | None = None

    def mark(self, key: Key) -> None:
        """This fact may be another now."""
        self._marked[key] = None

    def has_news(self, links: Nodes) -> bool:
        """Whether something may have changed that was not sent."""
        return bool(self._marked) or links != self._links

    def next(self, desired: Desired, links: Nodes) -> bool:
        """Put what has changed into an update; False if nothing has, or the last one is not confirmed yet."""
        if self.unconfirmed is not None:
            return False
        facts: list[AnyFact] = []
        while self._marked and len(facts) < MOST_FACTS:
            key = next(iter(self._marked))
            del self._marked[key]
            fact, before = desired(key), self.told.get(key)
            if fact == before:
                continue
            if fact is None:
                del self.told[key]
                facts.append(Gone(key[1], key[0]))
            else:
                self.told[key] = fact
                facts.append(fact)
        if not facts and links == self._links:
            return False
        self.unconfirmed = tuple(facts), None if links == self._links else links
        self._links = links
        self.serial += 1
        return True

    def confirm(self, serial: int) -> None:
        """The receiver has everything up to this serial."""
        if serial == self.serial:
            self.unconfirmed = None


class Incoming:
    """What one neighbour tells: its facts, by kind and topic, and its own neighbours."""

    def __init__(self, most: dict[type[Fact], int]) -> None:
        self.facts: tuple[dict[int, AnyFact], ...] = tuple({} for _ in KINDS)
        self.links: Nodes = ()
        self.serial = 0
        self.excesses = 0  # facts that were more than a node listens to
        self._most = tuple(most.get(kind, max(most.values())) for kind in KINDS)

    def take(self, update: Update) -> list[Key] | None:
        """An update came; returns which facts may have changed. None: it is not the next, or has none."""
        if update.serial != self.serial + 1:
            return None
        self.serial += 1
        changed = [key for fact in update.facts[:MOST_FACTS] if fact.is_sound() and (key := self._note(fact))]
        if update.links is not None:
            self.links = update.links
        return changed

    def _note(self, fact: AnyFact) -> Key | None:
        if isinstance(fact, Gone):
            return (fact.kind, fact.topic) if fact.kind < len(KINDS) and self._drop(fact) else None
        kind = PLACES[type(fact)]
        table = self.facts[kind]
        if fact.topic not in table and len(table) >= self._most[kind]:
            self.excesses += 1
            return None
        table[fact.topic] = fact
        return kind, fact.topic

    def _drop(self, gone: Gone) -> bool:
        return self.facts[gone.kind].pop(gone.topic, None) is not None


PLACES: dict[type[Fact], int] = {kind: place for place, kind in enumerate(KINDS)}
