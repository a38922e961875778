"""A node's search for something better: gossip, cards, requests for links, probes. It is done in turns.

A turn is cheap where nothing changes, and rare: the period doubles up to `most_turn_s`. Requests of others are judged
whenever they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.trellis.peer.acquaintances import MOST_CARD_TOPICS, MOST_WANTS, Acquaintances
from grapevine.systems.trellis.peer.channel import PLACES
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.links import Links
from grapevine.systems.trellis.peer.messages import (
    FRIEND,
    NOBODY,
    RING,
    Accept,
    Ask,
    Card,
    Cards,
    Connect,
    Descriptor,
    Found,
    Label,
    Probe,
    Refuse,
    Sample,
    Sought,
    words,
)
from grapevine.systems.trellis.peer.plain import is_calm, offer_hash, rank_of
from grapevine.systems.trellis.peer.probes import MOST_SOUGHT, Probes
from grapevine.systems.trellis.peer.topics import Topics
from grapevine.systems.trellis.peer.wishes import Wishes

_LABEL = PLACES[Label]
_PARTNERS = 3  # kinds of partners that take turns: a ring link, any link, a sample


class Turns:
    """The search of one node, in one session."""

    def __init__(
        self,
        me: Address,
        config: TrellisPeerConfig,
        random: Random,
        parts: tuple[Links, Acquaintances, Topics, Probes, Wishes],
        version: int,
        send: Callable[[Address, Message], None],
    ) -> None:
        self._me, self._config, self._random, self._send = me, config, random, send
        self._links, self._others, self._topics, self._probes, self.wishes = parts
        self.version = version  # of the card
        self._card = Card(me, version, b"", b"")
        self._count = 0
        self._joined = 0.0
        self.turn_s = config.turn_s
        self.changed = 0.0  # when something did, for the last time

    def start(self, now: float) -> None:
        """The session begins."""
        self._joined = self.changed = now

    # Turns

    def turn(self, now: float, contacts: tuple[Address, ...]) -> None:
        """One turn; afterwards `turn_s` says when the next is to come if nothing changes."""
        config, linked = self._config, self._links.neighbours
        self._count += 1
        self._others.tidy(now, linked)
        self._renew_card(now)
        if not self._others.known:
            for node in contacts:
                self.greet(now, node)
        self._gossip(now, linked)
        self._wish(now)
        sought = self._probes.questions(now, self._topics.rootless(now))
        for node in linked if sought else ():
            self._send(node, Probe(self._me, sought, is_second=False))
        is_calm_now = now >= self.changed + config.calm_s and not self._topics.is_unsure
        self.turn_s = min(2 * self.turn_s, config.most_turn_s) if is_calm_now else config.turn_s

    def appraise(self) -> None:
        """Work out anew what the links are worth."""
        ways = {node: self._topics.ways_over(node) for node in self._links.neighbours}
        self.wishes.appraise(self._topics.own, self._topics.labels_by_neighbour(), ways)

    def _calm(self, now: float) -> set[int]:
        """The own topics whose labels are at rest."""
        config, joined = self._config, self._joined
        calm = config.patience_s, config.calm_s
        return {topic for topic, own in self._topics.own.items() if is_calm(now, own.settled, joined, *calm)}

    def _renew_card(self, now: float) -> None:
        """What others are shown of this node, as it is now."""
        own, calm = self._topics.own, self._calm(now)
        topics = sorted(own)
        if len(topics) > MOST_CARD_TOPICS:
            topics = sorted(sorted(topics, key=lambda topic: offer_hash(topic, 0))[:MOST_CARD_TOPICS])
        roots = words(own[topic].root if topic in calm else NOBODY for topic in topics)
        if (words(topics), roots) != (self._card.topics, self._card.roots):
            self.version += 1
            self._card = Card(self._me, self.version, words(topics), roots)
            self._others.me = Descriptor(self._me, self.version, len(topics))

    def _wish(self, now: float) -> None:
        """Ask for links that would be better than those that are there."""
        self.appraise()
        wishes, stamp = self.wishes, self._links.stamp(now)
        for node in wishes.ring_wishes(now):
            self._links.ask(now, node, Connect(self._random.getrandbits(63), RING, stamp))
        margin = wishes.margin(now, self.turn_s)
        for node, gain, value in wishes.friend_wishes(now, self._topics.own, self._calm(now), margin):
            worth = gain, value, margin
            card = self._card.topics, self._card.roots
            self._links.ask(now, node, Connect(self._random.getrandbits(63), FRIEND, stamp, *worth, *card))

    # Gossip

    def greet(self, now: float, node: Address) -> None:
        """Tell somebody that this node is there."""
        self._send(node, self._sample(now, is_answer=False))

    def _sample(self, now: float, *, is_answer: bool) -> Sample:
        return Sample(self._others.newscast.sample(now), is_answer)

    def _gossip(self, now: float, linked: tuple[Address, ...]) -> None:
        """Swap samples with a random node, and ask a link for cards of its neighbours, and others for their own."""
        kind, partner = self._count % _PARTNERS, self._others.newscast.partner()
        rare = self._count % self._config.sample_turns != 0
        if rare and linked:
            partner = self._random.choice(linked)
        if partner is not None:
            self._send(partner, self._sample(now, is_answer=False))
        ring = [node for node in self.wishes.ring_links() if node is not None and self._links.get(node)]
        choices = ring if kind == 0 and ring else linked
        asked = self._random.choice(choices) if choices and kind != _PARTNERS - 1 else partner
        if asked is None:
            return
        link = self._links.get(asked)
        wants = self._others.wants(asked, link.incoming.links if link else (), linked)
        if wants:
            self._send(asked, Ask(tuple(wants)))
        if not rare:
            for node, want in self._others.strangers(linked):
                self._send(node, Ask((want,)))

    def on_sample(self, now: float, sender: Address, message: Sample) -> None:
        """Newscast."""
        if not message.is_answer:
            self._send(sender, self._sample(now, is_answer=True))
        self._others.merge(now, sender, message.descriptors)

    def on_ask(self, now: float, sender: Address, message: Ask) -> None:
        """Show the cards that are newer than those that the sender has: neighbours' as they say themselves."""
        found = []
        for want in message.wants[:MOST_WANTS]:
            card = self._card_of(want.node)
            if card is not None and card.version > want.version:
                found.append(card)
        if found:
            self._send(sender, Cards(tuple(found)))

    def _card_of(self, node: Address) -> Card | None:
        if node == self._me:
            return self._card
        link, known = self._links.get(node), self._others.profiles.get(node)
        if link is not None and link.version > 0:
            labels = link.incoming.facts[_LABEL]
            topics = sorted(labels)[:MOST_CARD_TOPICS]
            return Card(node, link.version, words(topics), words(labels[topic].root for topic in topics))  # type: ignore[union-attr]
        if known is None:
            return None
        return Card(node, known.version, words(known.roots), words(known.roots.values()))

    # Links

    def on_connect(self, now: float, sender: Address, request: Connect) -> None:
        """A request for a link."""
        if not request.is_sound() or not self._links.may_answer(now, sender, request):
            return
        self.appraise()
        margin = self.wishes.margin(now, self.turn_s)
        verdict = self.wishes.judge(now, sender, request, self._topics.own, self._calm(now), margin)
        if verdict.agrees:
            self._links.accept(now, sender, request, verdict.victim)
        else:
            self._send(sender, Refuse(request.nonce, verdict.instead))

    def on_accept(self, now: float, sender: Address, message: Accept) -> None:
        """A node agrees to a link that this one has asked for."""

        def victim() -> Address | None:
            self.appraise()
            return self.wishes.weakest(now)[0]

        self._links.take_accept(now, sender, message, victim)

    def on_refuse(self, now: float, sender: Address, message: Refuse) -> None:
        """A node does not agree; on the ring it may say who is nearer."""
        if self._links.refused(sender, message.nonce):
            self.wishes.note_refusal(now, sender)
            self._others.profiles.pop(sender, None)  # it is not what was believed
            for node in message.instead[:1]:
                self._others.see(node, now)

    # Probes

    def on_probe(self, now: float, sender: Address, message: Probe) -> None:
        """Pass a neighbour's question on, and answer one that was passed on."""
        if self._links.get(sender) is None:
            return
        sought = tuple(item for item in message.sought[:MOST_SOUGHT] if item.is_sound())
        if not message.is_second:
            if message.asker == sender and self._probes.may_pass_on(now, sender):
                for node in self._links.neighbours:
                    if node != sender:
                        self._send(node, Probe(sender, sought, is_second=True))
            return
        labels = self._topics.labels_by_neighbour()
        found = [way for item in sought if (way := self._bridge(item, labels, message.asker)) is not None]
        if found:
            self._send(sender, Found(message.asker, tuple(found)))

    def _bridge(self, item: Sought, labels: Mapping[Address, Mapping[int, Label]], asker: Address) -> Sought | None:
        """What this node could join the asker's cluster to; None: nothing, or it is in the topic itself."""
        if item.topic in self._topics.own or asker == self._me:
            return None
        said = [of[item.topic] for of in labels.values() if item.topic in of]
        lowest = min((rank_of(item.topic, label.root) for label in said), default=item.rank)
        if lowest >= item.rank:
            return None
        return Sought(item.topic, lowest, 0 if self._topics.edges(item.topic) else 1)

    def on_found(self, now: float, sender: Address, message: Found) -> None:
        """An answer: for this node, or for a neighbour whose question it has passed on."""
        if self._links.get(sender) is None:
            return
        if message.asker == self._me:
            self._topics.mark(self._probes.take(sender, message))
        elif message.via is None and self._probes.may_pass_back(now, message.asker) and self._links.get(message.asker):
            found = [item for item in message.found[:MOST_SOUGHT] if item.is_sound()]
            ways = (Sought(f.topic, f.rank, f.relays + (not self._topics.edges(f.topic))) for f in found)
            self._send(message.asker, Found(message.asker, tuple(ways), sender))
