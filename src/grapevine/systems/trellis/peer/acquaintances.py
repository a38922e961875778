"""Whom a node knows beyond its links: random nodes by Newscast, the next on the ring, and cards of others.

Descriptors say who is there and travel with samples, a few bytes each. What a node is worth as a friend is on its card,
which is asked for: of a neighbour of a neighbour, of that one, which has it first-hand; of a node that a sample named,
of the node that sent the sample, and if it does not know, of the node itself. Only a card that is newer is sent.

Nothing that is said about others is relied on: links are judged again by what both ends say themselves (`wishes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from math import inf
from random import Random
from typing import NamedTuple

from grapevine.model.ids import clockwise
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.book import Book, Newscast
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import Card, Descriptor, Want, unpacked

MOST_DESCRIPTORS = 100  # of which a message is believed
MOST_WANTS = 40  # cards that are asked for, or answered, at once
MOST_CARD_TOPICS = 2_048  # 32 kB: of nodes with more, those with the lowest hashes stand for all
_OLD = 8  # times the longest turn: who was not heard of for so long is forgotten
_ITSELF = 2  # in a turn, cards of strangers that nobody else has shown are asked of themselves


class Profile(NamedTuple):
    """A card as it is used."""

    version: int
    roots: dict[int, Address]  # by topic; NOBODY: not at rest

    @staticmethod
    def of(version: int, topics: bytes, roots: bytes) -> Profile:
        """What a card, or a request for a link, says of its owner."""
        found = zip(unpacked(topics), unpacked(roots), strict=True)
        return Profile(version, dict(list(found)[:MOST_CARD_TOPICS]))


class Acquaintances(Book[Descriptor]):
    """What one node has heard of others: who is there, how near they are on the ring, and their cards."""

    def __init__(
        self, me: Address, config: TrellisPeerConfig, random: Random, ring_id_of: Callable[[Address], int]
    ) -> None:
        super().__init__(Descriptor(me, 0))
        self._config, self._ring_id_of = config, ring_id_of
        self.newscast = Newscast(self, config.sample_size, random)
        self.profiles: dict[Address, Profile] = {}
        self.ring: list[list[Address]] = [[], []]  # the nearest known nodes after and before this one
        self.prospects: list[Address] = []  # the best friends that are not linked (`wishes`)
        self._asked: dict[Address, int] = {}  # how often a card was asked for in vain

    @property
    def _most_known(self) -> int:
        config = self._config
        return 4 * (config.most_links + config.sample_size + 2 * config.ring_backups)

    def describe(self, now: float, node: Address) -> Descriptor:
        known = self.known[node]
        return Descriptor(node, known.version, known.topic_count, max(0.0, now - self.heard[node]))

    # Who is there

    def learn(self, now: float, descriptors: Iterable[Descriptor], sender: Address | None = None) -> None:
        """Take what somebody says of nodes; strangers may say anything, and a lot of it."""
        oldest = now - _OLD * self._config.most_turn_s
        for told in islice(descriptors, MOST_DESCRIPTORS):
            if told.is_sound() and now - told.age_s > oldest and self._has_room(told.node):
                super().learn(now, (told,), sender)

    def _has_room(self, node: Address) -> bool:
        """Whether the node is known, or may become so; a turn later the freshest are left (`tidy`)."""
        return node in self.known or len(self.known) < 4 * self._most_known

    def _note(self, node: Address, found: Descriptor, heard: float) -> None:
        is_new = node not in self.known
        super()._note(node, found, heard)
        if is_new:
            for side in (0, 1):
                self._place(side, node)

    def see(self, node: Address, now: float) -> None:
        """A sign of life of a node, or that somebody has named it; it is known from now on."""
        if node in self.known:
            self.hear(node, now)
        else:
            self.learn(now, (Descriptor(node, 0),))

    def _place(self, side: int, node: Address) -> None:
        near, mine = self.ring[side], self._ring_id_of(self.me.node)
        if node not in near:
            near.append(node)
            near.sort(key=lambda other: (self.away(side, mine, self._ring_id_of(other)), other))
            del near[self._config.ring_backups :]

    @staticmethod
    def away(side: int, of: int, ring_id: int) -> int:
        """How far a ring id lies after (side 0) or before (side 1) another."""
        return clockwise(of, ring_id) if side == 0 else clockwise(ring_id, of)

    def forget(self, node: Address, gone: float = -inf) -> None:
        super().forget(node, gone)
        self.profiles.pop(node, None)
        self._asked.pop(node, None)
        for side in (0, 1):
            if node in self.ring[side]:
                self.ring[side].remove(node)
                for other in self.known:
                    self._place(side, other)
        if node in self.prospects:
            self.prospects.remove(node)
        if node in self.newscast.cache:
            self.newscast.drop_unknown()

    def tidy(self, now: float, linked: Collection[Address]) -> None:
        """Once a turn: forget old news, and all but the freshest of many."""
        for node in linked:
            self.see(node, now)
        self.forget_older(now - _OLD * self._config.most_turn_s)
        self.trim(self._most_known, {*linked, *self.ring[0], *self.ring[1], *self.prospects})

    def merge(self, now: float, sender: Address, descriptors: tuple[Descriptor, ...]) -> None:
        """A `Sample` came: keep the freshest of both caches."""
        self.learn(now, descriptors, sender)
        self.newscast.merge(descriptors[:MOST_DESCRIPTORS])

    # Cards

    def take(self, now: float, sender: Address, cards: Iterable[Card]) -> None:
        """Cards came; they make known of whom nobody has spoken. A node's own counts in any case."""
        for card in islice(cards, MOST_WANTS):
            known = self.profiles.get(card.node)
            is_old = known is not None and known.version > card.version and card.node != sender
            if is_old or not card.is_sound(MOST_CARD_TOPICS) or card.node in self._gone:
                continue
            count = len(card.topics) // 8
            self.learn(now, (Descriptor(card.node, card.version, count),), sender)
            if card.node in self.known:
                self.profiles[card.node] = Profile.of(card.version, card.topics, card.roots)
                self._asked.pop(card.node, None)

    def wants(self, partner: Address, neighbours_of: Collection[Address], linked: Collection[Address]) -> list[Want]:
        """Which cards to ask of a partner: of its neighbours, of those that it told of, its own if it is no link."""
        nodes = [node for node in neighbours_of if node not in linked and node != self.me.node]
        nodes += [node for node, teller in self.described_by.items() if teller == partner and node not in linked]
        nodes += [] if partner in linked else [partner]
        found = []
        for node in dict.fromkeys(nodes):
            if not self._is_known(node) and node not in self._gone:
                self._asked[node] = self._asked.get(node, 0) + (node in self.known)
                found.append(Want(node, self._version(node)))
        return found[:MOST_WANTS]

    def strangers(self, linked: Collection[Address]) -> Iterator[tuple[Address, Want]]:
        """Whom to ask for its own card, as nobody else had it."""
        vain = [node for node in self.newscast.cache if self._asked.get(node, 0) > 0 and not self._is_known(node)]
        for node in [node for node in vain if node not in linked][:_ITSELF]:
            yield node, Want(node, self._version(node))

    def _version(self, node: Address) -> int:
        known = self.profiles.get(node)
        return known.version if known else 0

    def _is_known(self, node: Address) -> bool:
        """Whether there is a card that is as new as has been heard of."""
        known = self.profiles.get(node)
        heard = self.known.get(node)
        return known is not None and (heard is None or known.version >= heard.version)
