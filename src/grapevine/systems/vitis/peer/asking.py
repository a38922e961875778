"""Who is asked for which profile, and who gets which answer: a profile may be megabytes, so neither may become a storm.

A neighbour is asked itself, and answers with what has changed: if that is nothing, it confirms what others told of it.
A stranger's profile is asked of whoever told of it, since that costs no new connection; of the stranger itself when
that was in vain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.book import Book, by_freshness
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.interests import Interests, whole_profile
from grapevine.systems.vitis.peer.messages import Ask, Profile, Want
from grapevine.systems.vitis.peer.profiles import Inbox, Shelf, Update

PATIENCE = 3  # rounds that an answer may take
MOST_ASKED = 32  # strangers' profiles in a turn
TOPICS_A_TURN = 262_144  # 2 MiB, asked of strangers, or answered to one asker; a single profile may be larger
_VAIN = 2  # questions to who told


class Asking:
    """Questions and answers of one node."""

    def __init__(self, book: Book, shelf: Shelf, interests: Interests, config: VitisPeerConfig) -> None:
        self._book, self._shelf, self._interests, self._config = book, shelf, interests, config
        self.inbox = Inbox(shelf, config.most_topics)
        self._answered: Counter[Address] = Counter()  # topics told to each asker since the last turn

    def forget_unknown(self, now: float) -> None:
        """Once a turn: profiles of those of whom nobody speaks any more, answers that are late."""
        known = self._book.known
        self._answered.clear()
        self._shelf.trim(known, self._config.most_known)
        self.inbox.drop_stale(now - PATIENCE * self._config.round_s, known)

    def questions(self, now: float, neighbours: set[Address]) -> Iterator[tuple[Address, Ask]]:
        """Once a turn: whom to ask what."""
        wanted: dict[Address, list[Want]] = defaultdict(list)
        for node in self._wanted(neighbours):
            if self.inbox.may_ask(node):
                wanted[self._whom(node, neighbours)].append(Want(node, self._shelf.version(node)))
        for of, wants in wanted.items():
            for want in wants:
                self.inbox.ask(now, want.node, of)
            yield of, Ask(tuple(wants))

    def _wanted(self, neighbours: set[Address]) -> Iterator[Address]:
        """Neighbours whose profile is another now, then the freshest strangers whose profile is newer, some a turn."""
        known, version = self._book.known, self._shelf.version
        for node in sorted(neighbours & known.keys()):
            if not self._shelf.has(node, known[node].version) and self._is_worth_it(node):
                yield node
        count = topics = 0
        for node in by_freshness(self._book.heard, len(known)):
            if node in neighbours or known[node].version <= version(node) or not self._is_worth_it(node):
                continue
            if not self.inbox.may_ask(node):
                continue
            count, topics = count + 1, topics + known[node].topics
            if count > MOST_ASKED or (count > 1 and topics > TOPICS_A_TURN):
                return
            yield node

    def _is_worth_it(self, node: Address) -> bool:
        """Not for a profile that would not be taken, nor for an empty one."""
        count = self._book.known[node].topics
        return count <= self._config.most_topics and (count > 0 or self._shelf.version(node) > 0)

    def _whom(self, node: Address, neighbours: set[Address]) -> Address:
        in_vain = self.inbox.times_asked(node) >= _VAIN
        return node if node in neighbours or in_vain else self._book.teller[node]

    def answers(self, asker: Address, question: Ask) -> Iterator[Profile]:
        """What is known of what was asked."""
        for want in question.wanted[: 2 * MOST_ASKED]:
            if self._answered[asker] and self._answered[asker] > TOPICS_A_TURN:
                return
            known = self._shelf[want.node]
            if want.node == self._book.me.node:
                answer = self._interests.told_to(want.node, want.version)
            elif known is not None and known.version > want.version:
                answer = whole_profile(want.node, known.version, known.topics)
            else:
                continue
            self._answered[asker] += 1 + sum(len(part.added) + len(part.removed) for part in answer) // 8
            yield from answer

    def take(self, sender: Address, message: Profile) -> Update | None:
        """A part of a profile came; what it completes."""
        update = self.inbox.take(sender, message)
        if update is not None:
            self._shelf.put(update.node, update.version, update.topics, first_hand=sender == update.node)
            if sender == update.node:
                self._book.note_version(sender, update.version)
        return update
