"""The friendship overlay (§3): friends, fans and candidates of one node, votes and audits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import Position, Profile, Version
from grapevine.systems.rappel.position import apart_ms


@dataclass(slots=True)
class Known:
    """A node's profile as another knows it, or its own."""

    version: Version
    bloom: int  # the filter of its subscriptions
    position: Position  # empty for a node that does not know its own yet

    @classmethod
    def of(cls, profile: Profile) -> Known:
        """The profile in a message that came."""
        return cls(profile.version, bloom.from_bytes(profile.bloom), profile.position)


@dataclass(slots=True)
class Candidate:
    """Somebody heard of, who might become a friend (§3.1.3)."""

    votes: int = 0  # how often it was named since the friends last changed
    audited: bool = False  # since then
    known: Known | None = None  # None until it has sent its profile


class Term(NamedTuple):
    """What one friend contributes to the utility, whoever the others are."""

    near: float  # 1 over the distance
    match: int  # bits of mine that it has as well
    base: float  # Jaccard index of the two filters


def term(mine: Known, friend: Known, least_ms: float, interest_alone: bool = False, heights: bool = False) -> Term:
    """A friend's part of Fig. 3; with `interest_alone` the distance does not count (Fig. 9b)."""
    match = mine.bloom & friend.bloom
    near = 1.0 if interest_alone else 1 / max(apart_ms(mine.position, friend.position, heights), least_ms)
    return Term(near, match, match.bit_count() / ((mine.bloom | friend.bloom).bit_count() or 1))


def utility(bloom_size: int, terms: Sequence[Term]) -> float:
    """How much a set of friends is worth (Fig. 3): overlap over distance, a bonus for what only one of them covers.

    `once` and `twice` are the bits of mine that one friend, or more than one, has as well; a friend's unique bits are
    those of its matches that are in the first and not in the second.
    """
    once = twice = 0
    for _, match, _ in terms:
        twice |= once & match
        once |= match
    unique, worth = once & ~twice, 0.0
    for near, match, base in terms:
        worth += near * (base + (match & unique).bit_count() / bloom_size)
    return worth


@dataclass(slots=True)
class Friendship:
    """Friends, fans and candidates of one node. Nothing is sent from here: `audits` and `pings` do that."""

    config: RappelConfig
    me: Address
    mine: Known
    friends: dict[Address, Known] = field(default_factory=dict)
    fans: dict[Address, float] = field(default_factory=dict)  # when they were last heard of
    candidates: dict[Address, Candidate] = field(default_factory=dict)  # least recently heard of first
    most_candidates: int = field(init=False)  # looked at with every ping, so not worked out each time

    def __post_init__(self) -> None:
        self.most_candidates = self.config.candidates

    def terms(self, friends: Iterable[Known]) -> list[Term]:
        """What each of these would contribute to the utility."""
        least_ms, alone, heights = self.config.least_ms, self.config.interest == "alone", self.config.heights
        return [term(self.mine, friend, least_ms, alone, heights) for friend in friends]

    @property
    def is_full(self) -> bool:
        """Whether a new friend has to replace another."""
        return len(self.friends) >= self.config.friends

    def hear_of(self, nodes: Iterable[Address]) -> None:
        """A vote for each of these nodes (§3.3); the least recently heard of make room."""
        candidates, friends, me = self.candidates, self.friends, self.me
        for node in nodes:
            if node not in friends and node != me:
                candidate = candidates.pop(node, None) or Candidate()
                candidate.votes += 1
                candidates[node] = candidate
        while len(candidates) > self.most_candidates:
            del candidates[next(iter(candidates))]

    def forget(self, node: Address) -> None:
        """The node does not answer: it is no candidate until somebody names it again."""
        self.candidates.pop(node, None)

    def next_candidate(self) -> Address | None:
        """The unaudited candidate with most votes, of several the one heard of last; counts as audited now (§3.4)."""
        best, most = None, -1
        for node, candidate in self.candidates.items():
            if not candidate.audited and candidate.votes >= most:
                best, most = node, candidate.votes
        if best is not None:
            self.candidates[best].audited = True
        return best

    def victim(self, newcomer: Known) -> tuple[bool, Address | None]:
        """Whether the newcomer is welcome, and which friend it would replace (Algorithm 1).

        The paper's listing tries the candidates as victims; its text says incumbent friends, as here.
        """
        if not self.is_full:
            return True, None
        size = self.mine.bloom.bit_count() or 1
        terms, newcomers = self.terms(self.friends.values()), self.terms([newcomer])
        base = utility(size, terms)
        highest, victim = base, None
        for i, node in enumerate(self.friends):
            current = utility(size, terms[:i] + terms[i + 1 :] + newcomers)
            if current > highest:
                highest, victim = current, node
        return victim is not None and highest > (1 + self.config.hysteresis) * base, victim

    def befriend(self, node: Address, known: Known, victim: Address | None) -> None:
        """A new friend, in the place of the victim."""
        if victim is not None:
            del self.friends[victim]
        self.candidates.pop(node, None)
        self.friends[node] = known
        self._reset()

    def lose(self, node: Address) -> None:
        """A friend is gone, or does not want this fan any more; nothing happens if it was none."""
        if self.friends.pop(node, None) is not None:
            self._reset()

    def _reset(self) -> None:
        """The friends have changed: everybody may be audited again (§3.4)."""
        for candidate in self.candidates.values():
            candidate.audited, candidate.votes = False, 0

    def accept_fan(self, node: Address, now: float) -> bool:
        """First come, first served, until there are enough (§3.4)."""
        if node not in self.fans and len(self.fans) >= self.config.fans:
            return False
        self.fans[node] = now
        return True

    def drop_silent_fans(self, before: float) -> None:
        """Fans that were last heard of before this time have failed (§3.3)."""
        for node in [node for node, heard in self.fans.items() if heard < before]:
            del self.fans[node]

    def covering(self, bits: int) -> list[Address]:
        """Friends who seem to subscribe to the feed with these bits, the closest first (§5.1)."""
        found = [
            (apart_ms(self.mine.position, known.position, self.config.heights), node)
            for node, known in self.friends.items()
            if bloom.may_hold(known.bloom, bits)
        ]
        return [node for _, node in sorted(found)]
