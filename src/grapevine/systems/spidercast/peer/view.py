"""Whom a node knows and what they want: the interest view of §2.2, by gossip instead of a membership service.

Descriptors spread by Newscast; who lacks a profile that a descriptor speaks of asks for it (`gossip/asking`). So a view
is partial, random and a little old. What others say of a node serves to choose whom to ask for a link, and for nothing
else: whether a neighbour covers a topic is decided by what it said itself, of which it is asked as soon as there is a
link. Until it has answered, hearsay counts, but for no longer than a neighbour may be silent.

Nothing keeps a node from claiming every topic of its own. It will be everybody's best choice, so a topic that greedy
links alone hold together is in its hands. Random links (`random_coverage` of 1 or more) are not drawn to it more than
to any other subscriber: with three liars among sixteen nodes 62 of 240 subscriptions miss an event without random
links, 17 with one a topic and 1 with two (tests/systems/spidercast/test_peer_strangers.py, five seeds).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from random import Random

import numpy as np

from grapevine.kernels.csr import Columns
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.asking import Asking
from grapevine.systems.gossip.book import Book, Newscast
from grapevine.systems.gossip.interests import Interests
from grapevine.systems.gossip.messages import MOST_DESCRIPTORS
from grapevine.systems.gossip.profiles import KnownProfiles
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.links import Links
from grapevine.systems.spidercast.peer.messages import MOST_FOUND, Descriptor
from grapevine.systems.spidercast.peer.table import Table

_NO_TOPICS: Columns = np.empty(0, np.int32)


class SpiderBook(Book[Descriptor]):
    """The descriptors that a node knows."""

    def describe(self, now: float, node: Address) -> Descriptor:
        known = self.known[node]
        return Descriptor(node, known.version, known.topic_count, now - self.heard[node])


class View:
    """One node's view. `links` are read, never changed."""

    def __init__(
        self, me: Address, config: SpiderCastPeerConfig, interests: Interests, links: Links, random: Random
    ) -> None:
        self._config, self._interests, self._links = config, interests, links
        self._hearsay_s = config.hearsay_s
        self.book = SpiderBook(self._descriptor(me))
        self.newscast = Newscast(self.book, config.sample_size, random)
        self.profiles = KnownProfiles(config.most_topics)
        self.asking = Asking(self.book, self.profiles, interests, config)
        self._wanted: OrderedDict[Address, None] = OrderedDict()  # found for a rare topic: not to be crowded out
        self._near: Table | None = None
        self._wide: Table | None = None

    def _descriptor(self, me: Address) -> Descriptor:
        return Descriptor(me, self._interests.version, len(self._interests.topics))

    @property
    def me(self) -> Descriptor:
        """This node, as others shall know it."""
        return self.book.me

    def renew(self) -> None:
        """This node's topics are others now."""
        self.book.me = self._descriptor(self.me.node)
        self.profiles.compare_with(self._interests.array())
        self.changed()

    def learn(self, now: float, sender: Address, descriptors: Iterable[Descriptor]) -> None:
        """Take what somebody says of nodes; strangers may say anything, and a lot of it."""
        book, hearsay_s = self.book, self._hearsay_s
        book.learn(now, [d for d in descriptors if d.is_sound() and d.age_s < hearsay_s], sender)
        if len(book.known) > 2 * self._config.view_size + len(self._links.neighbours):
            self._trim()

    def merge(self, now: float, sender: Address, descriptors: tuple[Descriptor, ...]) -> None:
        """A `Sample` came: keep the freshest of both caches."""
        descriptors = descriptors[:MOST_DESCRIPTORS]
        self.learn(now, sender, descriptors)
        self.newscast.merge(descriptors)

    def want(self, now: float, sender: Address, descriptors: Iterable[Descriptor]) -> None:
        """Nodes were found that have a rare topic: keep them, and ask themselves for their profiles."""
        for found in descriptors:
            self.learn(now, sender, (found,))
            if found.node in self.book.known:
                self.book.described_by[found.node] = found.node
                self._wanted[found.node] = None
                self._wanted.move_to_end(found.node)
        while len(self._wanted) > MOST_FOUND:
            self._wanted.popitem(last=False)

    def forget(self, node: Address, gone: float) -> None:
        """The node left, or cannot be reached; what others heard of it until `gone` does not bring it back."""
        self.book.forget(node, gone)
        self.profiles.forget(node)
        self._drop_unknown()
        self.changed()

    def begin_round(self, now: float) -> None:
        """Once a round: forget whom nobody speaks of any more, keep to the bounds, and look at profiles anew."""
        self.book.forget_older(now - self._hearsay_s)
        self._trim()
        self.asking.forget_unknown(now)
        self.profiles.meet(self.book.known)
        self._wide = None
        if any(not self._is_first_hand(node) for node in self._links.neighbours):
            self._near = None  # hearsay may have been believed for long enough

    def _trim(self) -> None:
        self.book.trim(self._config.view_size, {*self._links.neighbours, *self._wanted})
        self._drop_unknown()

    def _drop_unknown(self) -> None:
        self.newscast.drop_unknown()
        self._wanted = OrderedDict((node, None) for node in self._wanted if node in self.book.known)
        self._wide = None

    def changed(self) -> None:
        """Links or profiles are others now: tables have to be made anew."""
        self._near = self._wide = None

    def near(self, now: float) -> Table:
        """The neighbours as rows; the same object until something changes."""
        if self._near is None:
            neighbours, shared_at = self._links.neighbours, self.profiles.shared_at
            shared = {n: shared_at(n) if self.is_believed(now, n) else _NO_TOPICS for n in neighbours}
            self._near = Table(self.me.node, len(self._interests.topics), shared)
        return self._near

    def wide(self, now: float) -> Table:
        """The neighbours, and all known nodes that want one of this node's topics, as rows; for this round, at most."""
        if self._wide is None:
            near, shared_at = self.near(now), self.profiles.shared_at
            known = {n: shared_at(n) for n in self.book.known if n not in near.shared and self.profiles[n] is not None}
            shared = {**near.shared, **{node: topics for node, topics in known.items() if len(topics)}}
            self._wide = Table(self.me.node, len(self._interests.topics), shared)
        return self._wide

    def is_believed(self, now: float, neighbour: Address) -> bool:
        """Whether what is known of a neighbour's topics counts: it said so itself, or had no time yet to do so."""
        if self._is_first_hand(neighbour):
            return True
        return self.profiles[neighbour] is not None and self._links.age_s(neighbour, now) < self._config.silence_s

    def _is_first_hand(self, node: Address) -> bool:
        known = self.profiles[node]
        return known is not None and known.first_hand

    def is_useless(self, neighbour: Address) -> bool:
        """Whether a neighbour said itself that it wants none of this node's topics."""
        return self._is_first_hand(neighbour) and len(self.profiles.shared_at(neighbour)) == 0
