"""Ways of two nodes, found by question and answer: a neighbour's neighbour may be next to a lower cluster.

What its own neighbours could bridge a cluster knows from their offers. The root of a cluster without one asks all
neighbours, they ask theirs, and who could bridge answers. The way with the fewest nodes that do not carry the topic yet
is taken; ties go by hash, so that ways of one topic meet. The lowest cluster asks in vain: questions become rarer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import Found, Sought
from grapevine.systems.trellis.peer.plain import link_tie, offer_hash

MOST_SOUGHT = 256  # topics of a question
_MOST_PASSED = 100  # questions of others that are remembered, in case an answer comes


class Probes:
    """Questions of one node, and those that it passes on."""

    def __init__(self, me: Address, config: TrellisPeerConfig) -> None:
        self._me, self._config = me, config
        self._asked: dict[int, tuple[float, float, int]] = {}  # by topic: when, for how long not again, the rank
        self._found: dict[int, tuple[tuple[int, int], Address, Address]] = {}  # the best of the answers
        self._passed: dict[Address, float] = {}  # whose questions were passed on, and when

    def questions(self, now: float, roots: Mapping[int, int]) -> tuple[Sought, ...]:
        """The clusters, by topic and rank, that look for a way now; those that asked lately are left out."""
        self._asked = {topic: asked for topic, asked in self._asked.items() if topic in roots}
        self._found = {topic: found for topic, found in self._found.items() if topic in roots}
        sought = []
        for topic, rank in roots.items():
            when, wait, before = self._asked.get(topic, (-1e9, self._config.answer_s, rank))
            if (now >= when + wait and topic not in self._found) or rank != before:
                longer = min(2 * wait, 2 * self._config.most_turn_s)
                self._asked[topic] = now, longer if rank == before else self._config.answer_s, rank
                self._found.pop(topic, None)
                sought.append(Sought(topic, rank))
        return tuple(sought[:MOST_SOUGHT])

    def may_pass_on(self, now: float, sender: Address) -> bool:
        """Whether a neighbour's question is passed on: not more often than it may ask, since each costs k messages."""
        if now < self._passed.get(sender, -1e9) + self._config.turn_s / 2 or len(self._passed) >= _MOST_PASSED:
            return False
        self._passed[sender] = now
        return True

    def may_pass_back(self, now: float, asker: Address) -> bool:
        """Whether an answer is for somebody whose question was passed on."""
        self._passed = {node: when for node, when in self._passed.items() if now <= when + self._config.answer_s}
        return asker in self._passed

    def take(self, sender: Address, message: Found) -> list[int]:
        """An answer to this node's own question came; returns the topics with a better way than before."""
        better = []
        for way in message.found[:MOST_SOUGHT]:
            asked = self._asked.get(way.topic)
            if message.via is None or not way.is_sound() or asked is None or way.rank >= asked[2]:
                continue
            key = way.relays, offer_hash(way.topic, sender) ^ link_tie(sender, message.via)
            if way.topic not in self._found or key < self._found[way.topic][0]:
                self._found[way.topic] = key, sender, message.via
                better.append(way.topic)
        return better

    def way(self, topic: int) -> tuple[Address, Address] | None:
        """The two nodes of the best way that was found."""
        found = self._found.get(topic)
        return (found[1], found[2]) if found else None

    def drop(self, topic: int) -> None:
        """The way that was found leads nowhere."""
        self._found.pop(topic, None)

    def lose(self, nodes: Iterable[Address]) -> None:
        """These are no neighbours any more."""
        lost = set(nodes)
        self._found = {topic: found for topic, found in self._found.items() if found[1] not in lost}
