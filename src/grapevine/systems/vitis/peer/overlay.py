"""Whom a node knows and links to: Newscast's cache, the routing table, ring backups, and who has it in its table.

Two readings. A newcomer is taken as a ring link, and asked to pass a lookup, once it has settled
(docs/papers.md#ring); in a network that is itself young nobody has. So while a node is new, it selects among all, and
where none of its links has settled, it passes lookups to any: anybody is better than nobody.

Where others may be liars (`believes`: answers), hearsay makes nobody a link. The best candidates of whom others speak
are asked for a sign of life (`doubted`), some of each who told about them, and enter the table when they have answered:
over a connection on which they have proven their key. Who did not answer is not believed in for `_IN_VAIN_S`, whatever
others say. Of what one message tells only as much counts as an honest one tells, and of the cache one teller fills half
at most.

Hearsay is believed for as many rounds as samples need to spread. A link has to speak for itself: one that is silent for
the (shorter) time of Algorithm 7 is dropped, and what others heard of it until then does not bring it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from random import Random

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.book import Newscast
from grapevine.systems.gossip.messages import MOST_DESCRIPTORS
from grapevine.systems.vitis.peer.book import Overlap, VitisBook
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Descriptor

_ASKED_OF_A_TELLER = 5  # in a round: three rounds fill a table from what one node says
_IN_VAIN_S = 60.0
_MOST_REVERSE = 1_000  # who may have this node in its table; the host bounds connections before


class Overlay:
    """One node's view of the network. Only the book has descriptors; all else is addresses of nodes in it."""

    def __init__(
        self,
        me: Descriptor,
        config: VitisPeerConfig,
        random: Random,
        overlap: Overlap,
        ring_id_of: Callable[[Address], int] | None = None,
        tie_seed: int = 0,
    ) -> None:
        self._config, self._random, self._overlap, self._ring_id_of = config, random, overlap, ring_id_of
        self.book = VitisBook(me, random.getrandbits(32), tie_seed)
        self._is_wary = config.believes == "answers"
        of_a_teller = config.sample_size // 2 if self._is_wary else None
        self._newscast = Newscast(self.book, config.sample_size, random, of_a_teller)
        self.table: list[Address] = []  # successor, predecessor, long links, friends; NOBODY: free
        self.backups: list[Address] = []  # nodes near on the ring, in case a ring link fails
        self.reverse: dict[Address, float] = {}  # who has this node in its table, and when it last said so
        self._taken: dict[Address, float] = {}  # since when the links are in the table
        self._offered: dict[Address, None] = {}  # candidates that came since the last round
        self.doubted: list[Address] = []  # who would be a link, and has to answer first: to be asked in this round

    def neighbours(self) -> list[Address]:
        """Nodes in the table, then those that have this node in theirs; each once."""
        return list(dict.fromkeys([*(node for node in self.table if node != NOBODY), *self.reverse]))

    def learn(self, now: float, sender: Address, descriptors: Iterable[Descriptor]) -> None:
        """Take what somebody says of nodes; strangers may say anything, and a lot of it."""
        config, book, oldest = self._config, self.book, self._config.hearsay_s
        ring_id_of = self._ring_id_of
        sound = (found for found in descriptors if found.is_sound() and found.age_s < oldest)
        right = [found for found in sound if ring_id_of is None or found.ring_id == ring_id_of(found.node)]
        book.learn(now, right, sender)
        if len(book.known) > 2 * config.most_known + len(self.reverse):
            book.trim(config.most_known, {*self.table, *self.reverse}, by_teller=self._is_wary)
            self._drop_unknown()

    def link(self, now: float, node: Address, is_link: bool) -> bool:
        """The node says whether it has this one in its table; True if that is new."""
        before = node in self.reverse
        if is_link and node in self.book.known and (before or len(self.reverse) < _MOST_REVERSE):
            self.reverse[node] = now
        elif not is_link:
            self.reverse.pop(node, None)
        return before != (node in self.reverse)

    def forget(self, now: float, node: Address) -> None:
        """The node left, or cannot be reached. News of it that are on their way, for up to a round, do not count."""
        self.reverse.pop(node, None)
        in_vain = self._is_wary and node not in self.book.answered
        self.book.forget(node, gone=now + (_IN_VAIN_S if in_vain else self._config.round_s))
        self._drop_unknown()

    def forget_silent(self, now: float) -> None:
        """Algorithm 7: links that were silent for too long are dropped; so is what is only hearsay of old."""
        book, oldest = self.book, now - self._config.silence_s
        self.reverse = {node: heard for node, heard in self.reverse.items() if heard >= oldest}
        for node in self.table:
            if node in book.known and max(book.heard[node], self._taken.get(node, now)) < oldest:
                book.forget(node, gone=oldest)
        book.forget_older(now - self._config.hearsay_s)
        self._drop_unknown()

    def _drop_unknown(self) -> None:
        """Whoever is not in the book any more is in no view either."""
        known = self.book.known
        self._newscast.drop_unknown()
        self.table = [node if node in known else NOBODY for node in self.table]
        self.backups = [node for node in self.backups if node in known]
        self._offered = {node: None for node in self._offered if node in known}

    # Newscast

    @property
    def cache(self) -> dict[Address, float]:
        """Random nodes, and when somebody last heard of each."""
        return self._newscast.cache

    def sample_partner(self) -> Address | None:
        """A random member of the cache; None if it is empty."""
        return self._newscast.partner()

    def sample(self, now: float) -> tuple[Descriptor, ...]:
        """What a `Sample` has: this node, and the cache."""
        return self._newscast.sample(now)

    def merge_sample(self, now: float, sender: Address, descriptors: tuple[Descriptor, ...]) -> None:
        """A `Sample` came: keep the freshest of both caches."""
        descriptors = descriptors[: self._most_told]
        self.learn(now, sender, descriptors)
        self._newscast.merge(descriptors)

    @property
    def _most_told(self) -> int:
        """Descriptors that are taken of one message: of a node that is believed as many as there can be."""
        config = self._config
        honest = 1 + config.table_size + config.sample_size + 2 * config.ring_backups
        return honest if self._is_wary else MOST_DESCRIPTORS

    # T-Man

    def exchange_partner(self, rounds: int) -> Address | None:
        """A neighbour, in every other round one of the ring; without any, a sample; None if there is none either."""
        links = [node for node in self.table if node != NOBODY]
        ring = [node for node in self.table[:2] if node != NOBODY]
        partners = (ring if rounds % 2 and ring else links) or sorted(self.cache)
        return self._random.choice(partners) if partners else None

    def view(self, now: float) -> tuple[Descriptor, ...]:
        """What an `Exchange` has: this node, table, samples and backups."""
        nodes = dict.fromkeys([*self.table, *self.cache, *self.backups])
        return self.book.me, *self.book.descriptors_of(now, nodes)

    def merge_view(self, now: float, sender: Address, descriptors: tuple[Descriptor, ...]) -> None:
        """An `Exchange` came: its nodes are candidates in the next round."""
        descriptors = descriptors[: self._most_told]
        self.learn(now, sender, descriptors)
        self._offered |= {found.node: None for found in descriptors if found.node in self.book.known}

    @property
    def _is_new(self) -> bool:
        return self.book.me.up_s < self._config.settle_s

    def select(self, now: float) -> None:
        """Algorithm 4, once a round, from all that came in since the last."""
        candidates = dict.fromkeys([*self.table, *self.cache, *sorted(self._offered)])
        self._offered = {}
        settle_s = 0.0 if self._is_new else self._config.settle_s
        choose = partial(self.book.select, now, self._config, settle_s, overlap=self._overlap)
        self.table, self.backups = choose(candidates, self.backups)
        if self._is_wary:
            answered = self.book.answered
            self.doubted = self._to_ask([node for node in self.table if node != NOBODY and node not in answered])
            if any(node != NOBODY and node not in answered for node in self.table):
                near = [node for node in self.backups if node in answered]
                self.table, _ = choose([node for node in candidates if node in answered], near)
        self._taken = {node: self._taken.get(node, now) for node in self.table if node != NOBODY}
        self.book.trim(self._config.most_known, {*self.table, *self.reverse}, by_teller=self._is_wary)
        self._drop_unknown()

    def _to_ask(self, doubted: list[Address]) -> list[Address]:
        """Of nodes that have not answered yet, some of each who told about them."""
        told: Counter[Address] = Counter()
        asked = []
        for node in dict.fromkeys(doubted):
            teller = self.book.described_by[node]
            told[teller] += 1
            if told[teller] <= _ASKED_OF_A_TELLER:
                asked.append(node)
        return asked

    # Lookups

    def usable_links(self, now: float) -> list[Address]:
        """Links of the table that were not silent in the last two rounds."""
        heard, fresh = self.book.heard, now - 2 * self._config.round_s
        return list(dict.fromkeys(node for node in self.table if heard.get(node, -np.inf) >= fresh))

    def next_hops(self, now: float, keys: NDArray[np.uint64]) -> list[tuple[Address, NDArray[np.int64]]]:
        """By next hop towards the keys, the indices of those that it is for."""
        links, settle_s = self.usable_links(now), self._config.settle_s
        if self._is_new and not any(self.book.has_settled(node, now, settle_s) for node in links):
            settle_s = 0.0
        return self.book.next_hops(now, settle_s, keys, links)
