"""The friendship overlay (§3): friends, fans and candidates of one node, votes and audits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from grapevine.blocks import bloom
from grapevine.systems.peer import Address
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import Position, Profile, Version


@dataclass(slots=True)
class Known:
    """What a node knows of another from its profile."""

    version: Version
    bloom: int
    position: Position

    @classmethod
    def of(cls, profile: Profile) -> Known:
        """From the message."""
        return cls(profile.version, bloom.from_bytes(profile.bloom), profile.position)


@dataclass(slots=True)
class Candidate:
    """Somebody heard of, who might become a friend (§3.1.3)."""

    votes: int = 0
    audited: bool = False
    known: Known | None = None


def utility(mine: Known, friends: Iterable[Known], least_ms: float, interest_alone: bool = False) -> float:
    """How much a set of friends is worth (Fig. 3): overlap over distance, with a bonus for what only one of them covers.

    `once` and `twice` are the bits of mine that one friend, or more than one, has as well; a friend's unique bits are
    those of its matches that are in the first and not in the second.
    """
    own, once, twice = mine.bloom, 0, 0
    terms = []
    for friend in friends:
        match = own & friend.bloom
        twice |= once & match
        once |= match
        near = 1.0 if interest_alone else 1 / max(math.dist(mine.position, friend.position), least_ms)
        terms.append((near, match, match.bit_count() / ((own | friend.bloom).bit_count() or 1)))
    unique, size = once & ~twice, own.bit_count() or 1
    return sum(near * (base + (match & unique).bit_count() / size) for near, match, base in terms)


@dataclass(slots=True)
class Friendship:
    """Friends, fans and candidates of one node. Addresses only: who is there is found out by the peer."""

    config: RappelConfig
    me: Address
    mine: Known
    friends: dict[Address, Known] = field(default_factory=dict)
    fans: dict[Address, float] = field(default_factory=dict)  # when they were last heard of
    candidates: dict[Address, Candidate] = field(default_factory=dict)  # least recently heard of first

    def worth(self, friends: Iterable[Known]) -> float:
        """The utility of these friends to this node."""
        return utility(self.mine, friends, self.config.least_ms, self.config.interest == "alone")

    @property
    def is_full(self) -> bool:
        """Whether a new friend has to replace another."""
        return len(self.friends) >= self.config.friends

    def hear_of(self, nodes: Iterable[Address]) -> None:
        """A vote for each of these nodes (§3.3); the least recently heard of make room."""
        candidates, friends, me = self.candidates, self.friends, self.me
        for node in nodes:
            if node == me or node in friends:
                continue
            candidate = candidates.pop(node, None) or Candidate()
            candidate.votes += 1
            candidates[node] = candidate
        while len(candidates) > self.config.candidates:
            del candidates[next(iter(candidates))]

    def forget(self, node: Address) -> None:
        """The node does not answer."""
        self.candidates.pop(node, None)

    def next_candidate(self) -> Address | None:
        """The unaudited candidate with most votes, of several the one heard of last; it counts as audited now (§3.4)."""
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
        base = self.worth(self.friends.values())
        highest, victim = base, None
        for node in self.friends:
            others = [known for other, known in self.friends.items() if other != node]
            current = self.worth([*others, newcomer])
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
        """A friend is gone, or does not want this fan any more."""
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
            (math.dist(self.mine.position, known.position), node)
            for node, known in self.friends.items()
            if bloom.may_hold(known.bloom, bits)
        ]
        return [node for _, node in sorted(found)]
