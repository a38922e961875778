"""One session of a node: who it is, where it is, what it subscribes to, and which feeds it has.

The parts of a peer (bootstrap, pings, audits, joining, children, leaving, updates, submissions) all work on this one
object and put what they want done into its outbox. Two rules hold between any two calls of the host:

1. the node has a `Feed` of every topic that it subscribes to or publishes; one that it has left stays a little longer,
   until nobody can take it for a member any more (`leaving`);
2. the coordinates, once known, stay what they are until the session ends. The trees rest on that (`feed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Feed
from grapevine.systems.rappel.friends import Known
from grapevine.systems.rappel.messages import Position, Update
from grapevine.systems.rappel.outbox import Outbox, Scale


class Signatures(Protocol):
    """Signs and checks updates, where a network wants that (§4.1)."""

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        """The publisher's signature over the three. Only called for feeds whose key this node has."""

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        """Whether the feed's publisher signed exactly this. False, not an error, for whatever a stranger may send."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node keeps on its disk between two sessions."""

    session: int = 0  # the number of the session that ended; the first one is 1
    friends: tuple[Address, ...] = ()  # stale by the time they are read (§5.3)
    updates: dict[int, tuple[int, dict[int, Update]]] = field(default_factory=dict)  # by feed: the last, the cache
    subscriptions: frozenset[int] | None = None  # as they were at its end; None before the first session
    position: Position = ()  # of a publisher: the ranks of all its subscribers depend on it, so it stays there (ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who a node is and what it knows when a session begins."""

    me: Address
    subscriptions: Iterable[int]
    published: Iterable[int]  # feeds of which this node is the (master) publisher
    publisher_of: Callable[[int], Address]  # of every feed, also of those that the node does not subscribe to
    key_of: Callable[[int], str] = str  # under which a feed is entered in Bloom filters; the same at all nodes
    landmarks: Sequence[Address]  # whose distances give the node its coordinates
    random: Random
    memory: Memory = field(default_factory=Memory)  # of the last session
    signatures: Signatures | None = None  # None: updates are not signed
    scale: Scale | None = None  # None: messages are not weighed


class Node:
    """What all parts of a node share in one session."""

    def __init__(self, setup: Setup, config: RappelConfig) -> None:
        self.me, self.config, self.random, self.out = setup.me, config, setup.random, Outbox(setup.scale)
        self.before = setup.memory
        self.session = self.before.session + 1
        self.subscriptions = set(setup.subscriptions)
        self.publisher_of, self._key_of = setup.publisher_of, setup.key_of
        self.mine = Known((self.session, 1), self._filter(), self.before.position)
        self.feeds: dict[int, Feed] = {}
        self._updates = dict(self.before.updates)  # by feed, as the node last left it
        for topic in setup.published:
            self.open_feed(topic, is_root=True)
        for topic in sorted(self.subscriptions):
            self.open_feed(topic)

    @property
    def position(self) -> Position:
        """Network coordinates; empty until they are known."""
        return self.mine.position

    def bits_of(self, topic: int) -> int:
        """The bits that stand for a feed in Bloom filters."""
        return bloom.mask(self._key_of(topic))

    def _filter(self) -> int:
        return bloom.bloom_of(self._key_of(topic) for topic in self.subscriptions)

    def subscriptions_changed(self) -> None:
        """The application has another set of subscriptions: the profile gets a new version, and a new filter."""
        session, version = self.mine.version
        self.mine.version, self.mine.bloom = (session, version + 1), self._filter()

    def open_feed(self, topic: int, *, is_root: bool = False) -> Feed:
        """The node's part in a feed's tree: as it is, or a new one with the updates that it remembers.

        Whoever publishes a feed is its root, also when it subscribes to it before it says that it publishes it.
        """
        if topic not in self.feeds:
            publisher = self.publisher_of(topic)
            feed = Feed(topic, publisher, is_root or publisher == self.me, heights=self.config.heights)
            if feed.is_root:
                feed.publisher_position = self.position or None  # until it has one, it can take no children
            if topic in self._updates:
                feed.last, cache = self._updates[topic]
                feed.cache = dict(cache)
            self.feeds[topic] = feed
        return self.feeds[topic]

    def close_feed(self, topic: int) -> None:
        """The node is no longer in the feed's tree; it remembers the updates in case it comes back."""
        feed = self.feeds.pop(topic)
        self._updates[topic] = feed.last, feed.cache

    def memory(self, friends: Iterable[Address]) -> Memory:
        """What is left of this session for the next one; without friends, those of the session before are kept."""
        kept = {topic: (feed.last, feed.cache) for topic, feed in self.feeds.items()}
        position = self.position if any(feed.is_root for feed in self.feeds.values()) else ()
        friends = tuple(friends) or self.before.friends
        return Memory(self.session, friends, self._updates | kept, frozenset(self.subscriptions), position)
