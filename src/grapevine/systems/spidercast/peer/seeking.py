"""Who else has this topic? A question for subscribers of topics that a partial view has too few of.

A view is a random part of the network. Of a topic with many subscribers it has some; of one with few it has none, and
the topic would stay uncovered, though there are others. So a node that misses a topic and knows nobody to ask for a
link sends a question to a random node, which tells what it knows and passes on what is still open, some hops. Everybody
on the way remembers who asked: two that seek each other meet as soon as their questions have crossed, after about √N
hops each, where a search for a silent node takes N / `view_size`.

A topic may have no other subscriber, so questions about it become rarer: the pause between two doubles each time, up to
`_LONGEST` rounds, and starts anew when the topic was covered in between.

What strangers can make a node do is bounded: questions that it handles in a round (`_MOST_HANDLED`), topics whose
seekers it remembers (`_MOST_TOPICS`), nodes that it is told (`MOST_FOUND`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from random import Random

import msgspec

from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.interests import Interests
from grapevine.systems.gossip.messages import WORDS
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.messages import MOST_FOUND, MOST_HOPS, MOST_SOUGHT, Descriptor, Found, WhoElse
from grapevine.systems.spidercast.peer.view import View

_LONGEST = 64  # rounds between two questions about the same topic
_MOST_HANDLED = 64  # questions of others in a round
_MOST_TOPICS = 10_000  # whose seekers are remembered
_SEEKERS = 4  # of a topic that are remembered, the latest


def exceeds(question: WhoElse) -> bool:
    """Whether a question asks for more than anybody is told."""
    return len(question.topics) > MOST_SOUGHT or question.hops > MOST_HOPS


class Seeking:
    """Questions of one node, and its answers to those of others."""

    def __init__(self, config: SpiderCastPeerConfig, view: View, interests: Interests, random: Random) -> None:
        self._config, self._view, self._interests, self._random = config, view, interests, random
        self._pauses: dict[int, tuple[float, int]] = {}  # by topic: when to ask again, and how long to wait after that
        self._seekers: OrderedDict[int, dict[Address, tuple[Descriptor, float]]] = OrderedDict()  # and when they asked
        self._handled = 0

    def questions(
        self, now: float, scarce: Collection[int], contacts: Collection[Address]
    ) -> Iterator[tuple[Address, WhoElse]]:
        """Once a round: ask somebody about those of these topics that are due. `contacts` serve if nobody is known."""
        self._handled = 0
        self._pauses = {topic: pause for topic, pause in self._pauses.items() if topic in scarce}
        due = [topic for topic in scarce if self._pauses.get(topic, (now, 1))[0] <= now]
        others = sorted(self._view.book.known) or sorted(contacts)
        if not due or not others:
            return
        asked = self._random.sample(due, min(len(due), MOST_SOUGHT))
        for topic in asked:
            rounds = self._pauses.get(topic, (now, 1))[1]
            self._pauses[topic] = now + rounds * self._config.round_s, min(2 * rounds, _LONGEST)
        yield self._random.choice(others), WhoElse(self._view.me, tuple(sorted(asked)), self._config.seek_hops)

    def on_seek(self, now: float, sender: Address, question: WhoElse) -> Iterator[tuple[Address, Found | WhoElse]]:
        """Tell the seeker who has its topics, and pass on what is still open; the sender may be on the way only."""
        seeker, topics = question.seeker, question.topics
        is_mine = seeker.node == self._view.me.node
        if exceeds(question) or is_mine or not seeker.is_sound() or self._handled >= _MOST_HANDLED:
            return
        self._handled += 1
        sought = [topic for topic in topics if 0 <= topic < WORDS]
        found = {topic: self._having(now, topic, seeker.node) for topic in sought}
        self._remember(now, seeker, sought)
        answered = tuple(topic for topic, having in found.items() if having)
        if answered:
            told = {descriptor.node: descriptor for having in found.values() for descriptor in having}
            yield seeker.node, Found(answered, tuple(told.values())[:MOST_FOUND])
        still = tuple(topic for topic, having in found.items() if len(having) < self._enough)
        others = sorted(self._view.book.known.keys() - {sender, seeker.node})
        if still and others and question.hops > 1:
            yield self._random.choice(others), WhoElse(seeker, still, question.hops - 1)

    def on_found(self, now: float, sender: Address, answer: Found) -> None:
        """Nodes that have topics which this node seeks: the view keeps them, and asks what they want."""
        if any(topic in self._pauses for topic in answer.topics):
            self._view.want(now, sender, answer.descriptors[:MOST_FOUND])

    @property
    def _enough(self) -> int:
        """So many nodes with a topic are as many as anybody needs."""
        return self._config.greedy_coverage + self._config.random_coverage

    def _having(self, now: float, topic: int, seeker: Address) -> list[Descriptor]:
        """Nodes with a topic, the seeker aside: this one, those whose profile says so, and those who seek it, too."""
        view, wants = self._view, self._view.profiles.wants
        known = [node for node in view.book.known if node != seeker and wants(node, topic)]
        found = {node.node: node for node in view.book.descriptors_of(now, known[:MOST_FOUND])}
        if topic in self._interests.topics:
            found[view.me.node] = view.me
        for node, (descriptor, when) in self._seekers.get(topic, {}).items():
            if node != seeker and now - when < self._config.hearsay_s:
                age_s = descriptor.age_s + now - when
                found.setdefault(node, msgspec.structs.replace(descriptor, age_s=age_s))
        return list(found.values())

    def _remember(self, now: float, seeker: Descriptor, topics: Iterable[int]) -> None:
        """This node seeks these topics, so it has them."""
        for topic in topics:
            seekers = self._seekers.setdefault(topic, {})
            self._seekers.move_to_end(topic)
            seekers.pop(seeker.node, None)
            seekers[seeker.node] = seeker, now
            if len(seekers) > _SEEKERS:
                del seekers[next(iter(seekers))]
        while len(self._seekers) > _MOST_TOPICS:
            self._seekers.popitem(last=False)
