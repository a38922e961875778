"""Who is asked for which profile, and who gets which answer: a profile may be megabytes, so neither may become a storm.

A neighbour is asked itself, and answers with what has changed: if that is nothing, it confirms what others said of it.
A stranger's profile is asked of whoever described it, since that costs no new connection; of the stranger itself when
that was in vain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Protocol

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.book import Book, by_freshness
from grapevine.systems.gossip.interests import Interests, whole_profile
from grapevine.systems.gossip.messages import Ask, Profile, Want
from grapevine.systems.gossip.profiles import KnownProfiles, NewProfile, PendingProfiles

PATIENCE = 3  # rounds that an answer may take
MOST_ASKED = 32  # strangers' profiles in a round
TOPICS_A_ROUND = 262_144  # 2 MiB, of strangers asked for, or answered to one asker; a single profile may be larger
_VAIN = 2  # questions to whoever described a node, before it is asked itself


class Bounds(Protocol):
    """What a node puts up with: a part of a peer's config."""

    @property
    def most_topics(self) -> int:
        """Topics of one node."""
        ...

    @property
    def most_known(self) -> int:
        """Nodes that are remembered, neighbours aside."""
        ...

    @property
    def round_s(self) -> float:
        """Seconds of a round."""
        ...


class Asking:
    """Questions and answers of one node."""

    def __init__(self, book: Book[Any], profiles: KnownProfiles, interests: Interests, config: Bounds) -> None:
        self._book, self._profiles, self._interests, self._config = book, profiles, interests, config
        self._pending = PendingProfiles(profiles, config.most_topics)
        self._answered: Counter[Address] = Counter()  # topics sent to each asker in this round

    def forget_unknown(self, now: float) -> None:
        """Once a round: forget profiles of those of whom nobody speaks any more, and give up answers that are late."""
        known = self._book.known
        self._answered.clear()
        self._profiles.trim(known, self._config.most_known)
        self._pending.drop_stale(now - PATIENCE * self._config.round_s, known)

    def questions(self, now: float, neighbours: set[Address]) -> Iterator[tuple[Address, Ask]]:
        """Once a round, after that: whom to ask for which profiles."""
        wanted: dict[Address, list[Want]] = defaultdict(list)
        for node in self._wanted(neighbours):
            if self._pending.may_ask(node):
                wanted[self._whom(node, neighbours)].append(Want(node, self._profiles.version(node)))
        for of, wants in wanted.items():
            for want in wants:
                self._pending.ask(now, want.node, of)
            yield of, Ask(tuple(wants))

    def question(self, now: float, neighbour: Address) -> Ask | None:
        """The question for the profile of a neighbour, of itself; None if it is known, or an answer may still come."""
        known = self._book.known.get(neighbour)
        if known is None or self._profiles.has(neighbour, known.version) or not self._pending.may_ask(neighbour):
            return None
        if not self._is_worth_it(neighbour):
            return None
        self._pending.ask(now, neighbour, neighbour)
        return Ask((Want(neighbour, self._profiles.version(neighbour)),))

    def sign_of_life(self, now: float, node: Address) -> Ask:
        """A question to a node that is to show that it is there: for its own profile, which is needed of a link."""
        if self._pending.may_ask(node):
            self._pending.ask(now, node, node)
        return Ask((Want(node, self._profiles.version(node)),))

    def _wanted(self, neighbours: set[Address]) -> Iterator[Address]:
        """Neighbours whose profile is another now, then the freshest strangers whose profile is newer, some a round."""
        known, version = self._book.known, self._profiles.version
        for node in sorted(neighbours & known.keys()):
            if not self._profiles.has(node, known[node].version) and self._is_worth_it(node):
                yield node
        count = topics = 0
        for node in by_freshness(self._book.heard, len(known)):
            if node in neighbours or known[node].version <= version(node) or not self._is_worth_it(node):
                continue
            if not self._pending.may_ask(node):
                continue
            count, topics = count + 1, topics + known[node].topic_count
            if count > MOST_ASKED or (count > 1 and topics > TOPICS_A_ROUND):
                return
            yield node

    def _is_worth_it(self, node: Address) -> bool:
        """Whether to ask at all: not for a profile that would not be taken, nor for an empty one."""
        count = self._book.known[node].topic_count
        return count <= self._config.most_topics and (count > 0 or self._profiles.version(node) > 0)

    def _whom(self, node: Address, neighbours: set[Address]) -> Address:
        in_vain = self._pending.times_asked(node) >= _VAIN
        return node if node in neighbours or in_vain else self._book.described_by[node]

    def answers(self, asker: Address, question: Ask) -> Iterator[Profile]:
        """What is known of what was asked, until the asker has had enough in this round."""
        for want in question.wants[: 2 * MOST_ASKED]:
            if self._answered[asker] and self._answered[asker] > TOPICS_A_ROUND:
                return
            known = self._profiles[want.node]
            if want.node == self._book.me.node:
                answer = self._interests.profile_for(want.node, want.version)
            elif known is not None and known.version > want.version:
                answer = whole_profile(want.node, known.version, known.topics, known.weights)
            else:
                continue
            self._answered[asker] += 1 + sum(len(part.added + part.removed + part.rated) for part in answer) // 8
            yield from answer

    def take(self, sender: Address, message: Profile) -> NewProfile | None:
        """A part of a profile came; returns the profile if that completes it, after noting it."""
        update = self._pending.take(sender, message)
        if update is not None:
            node, version, topics, _, weights = update
            self._profiles.put(node, version, topics, first_hand=sender == node, weights=weights)
            if sender == node:
                self._book.note_version(sender, version)
        return update
