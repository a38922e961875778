"""All that a node works out by topic, from what its neighbours tell: labels, bridges and ways, and what it tells them.

The one invariant: whoever changes an input of a topic (what a neighbour tells, who is a neighbour, what the node wants,
or that time has passed which was waited for) marks it, and marked topics are revised before the next updates leave
(`work`), together, since news of many neighbours come at the same time. Then everything about a topic is a function of
the inputs as they are, apart from what labels and ways remember on purpose, and the facts that neighbours are to have
are marked in their channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.bridges import Bridge, best_offer, choice, offers_to
from grapevine.systems.trellis.peer.channel import PLACES, Key
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.labels import OwnLabel
from grapevine.systems.trellis.peer.links import OPEN, Links
from grapevine.systems.trellis.peer.messages import KINDS, AnyFact, Best, Carry, Choice, Label, Wanted
from grapevine.systems.trellis.peer.plain import rank_of
from grapevine.systems.trellis.peer.probes import Probes
from grapevine.systems.trellis.peer.ways import Around, NextHop, Ways

Heard = tuple[dict[Address, Any], ...]  # facts about a topic, by the place of their kind, and by neighbour
_LABEL, _CARRY = PLACES[Label], PLACES[Carry]
_NOTHING: Heard = tuple({} for _ in KINDS)  # never written to


class Topics:
    """The topics that one node wants, offers itself for, or carries. `changed` is told when a root is another."""

    def __init__(
        self,
        me: Address,
        config: TrellisPeerConfig,
        links: Links,
        next_hop: NextHop,
        probes: Probes,
        changed: Callable[[float], None],
    ) -> None:
        self._me, self._config, self._links, self._probes, self._changed = me, config, links, probes, changed
        self.own: dict[int, OwnLabel] = {}
        self.ways = Ways(config, next_hop)
        self._choices: dict[int, Bridge] = {}
        self._tells: dict[int, dict[Address, dict[int, AnyFact]]] = {}  # by topic, neighbour and kind
        self._edges: dict[int, dict[Address, bool]] = {}  # of topics whose events are exchanged with somebody
        self._later: dict[int, float] = {}  # topics that are to be revised at a time
        self._heard: dict[int, Heard] = {}
        self._marked: dict[int, None] = {}

    # What is asked

    def edges(self, topic: int) -> Mapping[Address, bool]:
        """With whom the topic's events are exchanged, and whether the link belongs to a tree of it."""
        return self._edges.get(topic, {})

    def desired(self, node: Address, key: Key) -> AnyFact | None:
        """What a neighbour is to be told of this kind about this topic."""
        kind, topic = key
        return self._tells.get(topic, {}).get(node, {}).get(kind)

    def carried(self) -> set[int]:
        """Topics that the node wants, or carries for others."""
        found = {*self.own, *self.ways.uplinks}
        for link in self._links.slots.values():
            if link.state == OPEN:
                found.update(link.incoming.facts[_CARRY])
        return found

    def member_beside(self, topic: int) -> Address | None:
        """The neighbour in the topic whose cluster has the lowest rank; None: none of them wants it."""
        labels = self.heard(topic)[_LABEL]
        return min(labels, key=lambda node: (rank_of(topic, labels[node].root), node), default=None)

    def ways_over(self, node: Address) -> int:
        """How many ways lead over a link, of those that somebody needs."""
        link = self._links.get(node)
        asked = link.incoming.facts[_CARRY] if link is not None else ()
        found = {topic for topic in asked if self._edges.get(topic, {}).get(node) and len(self._edges[topic]) > 1}
        own = [topic for topic, uplink in self.ways.uplinks.items() if uplink.node == node]
        return len(found.union(topic for topic in own if self.edges(topic).get(node)))

    def labels_by_neighbour(self) -> dict[Address, Mapping[int, Label]]:
        """What every neighbour wants, and its labels."""
        slots = self._links.slots.items()
        return {node: link.incoming.facts[_LABEL] for node, link in slots if link.state == OPEN}  # type: ignore[misc]

    def rootless(self, now: float) -> dict[int, int]:
        """Clusters whose root this node is and that have no bridge, with their ranks: they look for a way."""
        return {
            topic: own.rank
            for topic, own in self.own.items()
            if own.root == self._me and topic not in self._choices and now >= own.settled + self._config.grace_s
        }

    @property
    def is_unsure(self) -> bool:
        """Whether a way was not answered yet, or something else is waited for."""
        return bool(self._later)

    # What changes

    def want(self, now: float, topic: int) -> None:
        """The node wants the topic from now on."""
        if topic not in self.own:
            self.own[topic] = OwnLabel(topic, self._me, now)
            self._marked[topic] = None

    def drop(self, now: float, topic: int) -> None:
        """The node wants the topic no more."""
        if self.own.pop(topic, None) is not None:
            self._choices.pop(topic, None)
            self._marked[topic] = None

    def meet(self) -> None:
        """There is a new neighbour: it is told what is known."""
        self._marked.update(dict.fromkeys([*self.own, *self._tells]))

    def hear(self, node: Address, facts: Sequence[Mapping[int, AnyFact]], changed: Iterable[Key]) -> None:
        """A neighbour has told something else of these kinds about these topics; `facts` are all that it tells."""
        for kind, topic in changed:
            fact, heard = facts[kind].get(topic), self._heard.get(topic)
            if heard is None:
                heard = self._heard[topic] = tuple({} for _ in KINDS)
            if fact is None:
                heard[kind].pop(node, None)
            else:
                heard[kind][node] = fact
            self._marked[topic] = None

    def lose(self, node: Address) -> None:
        """The node is no neighbour any more."""
        for topic, tells in self._tells.items():
            if tells.pop(node, None) is not None:
                self._marked[topic] = None
        for topic, heard in self._heard.items():
            if sum(facts.pop(node, None) is not None for facts in heard):
                self._marked[topic] = None
        self._probes.lose([node])

    def due(self) -> float:
        """When `work` has something to do because time has passed; infinity: never."""
        return min(self._later.values(), default=inf)

    def reroute(self) -> None:
        """The links' links are others: lookups may go another way."""
        self._marked.update(dict.fromkeys(self.ways.uplinks))

    def mark(self, topics: Iterable[int]) -> None:
        """A probe has found something about these topics."""
        self._marked.update(dict.fromkeys(topics))

    def heard(self, topic: int) -> Heard:
        """What the neighbours tell about a topic."""
        return self._heard.get(topic, _NOTHING)

    def work(self, now: float) -> None:
        """Revise the topics that are marked, and those for which time has passed that was waited for."""
        self._marked.update(dict.fromkeys(topic for topic, when in self._later.items() if when <= now))
        marked, self._marked = self._marked, {}
        for topic in marked:
            self._later.pop(topic, None)
            heard = self.heard(topic)
            own = self.own.get(topic)
            best = self._revise_own(now, own, heard) if own is not None else None
            around = self._around(now, topic, own, heard)
            self.ways.revise(now, around)
            self._edges[topic] = self.ways.edges(around)
            if not self._edges[topic]:
                del self._edges[topic]
            self._look_again(now, around, own)
            self._tell(topic, self._telling(around, heard, best))
            if not any(heard):
                self._heard.pop(topic, None)

    def _revise_own(self, now: float, own: OwnLabel, heard: Heard) -> Bridge | None:
        """Choose label and bridge of an own topic; returns the best offer, for the parent."""
        labels, wanted, offers, below, above = heard[:5]
        own.make_tick(self._me, wanted.values())
        before = own.root
        own.revise(now, self._me, labels)
        if own.root != before:
            self._changed(now)
        best = best_offer(self._me, own, labels, offers, below)
        chosen = choice(self._me, own, best, above)
        if chosen is None:
            self._choices.pop(own.topic, None)
        else:
            self._choices[own.topic] = chosen
        return best

    def _around(self, now: float, topic: int, own: OwnLabel | None, heard: Heard) -> Around:
        labels, _, offers, _, _, asked, answers = heard
        duty, bridge, chosen = None, None, self._choices.get(topic)
        if own is not None and chosen is None and own.root == self._me and now >= own.settled + self._config.grace_s:
            duty = own.rank
        elif own is not None and chosen is not None and chosen.member == self._me and chosen.bridge in offers:
            duty, bridge = own.rank, chosen.bridge
        probed = self._probes.way(topic) if duty is not None and bridge is None else None
        return Around(topic, own, duty, bridge, probed, self._links.neighbours, labels, offers, asked, answers)

    def _look_again(self, now: float, around: Around, own: OwnLabel | None) -> None:
        when = self.ways.next_look(around)
        if own is not None and own.root == self._me and now < own.settled + self._config.grace_s:
            when = min(when, own.settled + self._config.grace_s)
        if when < inf:
            self._later[around.topic] = max(when, now + 0.01)

    def _telling(self, around: Around, heard: Heard, best: Bridge | None) -> dict[Address, dict[int, AnyFact]]:
        """What every neighbour is to be told about a topic."""
        topic, own, labels = around.topic, around.own, around.labels
        facts: list[tuple[Address, AnyFact | None]] = []
        if own is None:
            facts += offers_to(topic, labels).items()
        else:
            facts += [(node, own.tells(node, labels.get(node))) for node in around.neighbours]
            wanted = own.wants(self._me, labels, heard[PLACES[Wanted]].values())
            facts += [wanted] if wanted is not None else []
            if own.parent is not None and best is not None:
                facts.append((own.parent, Best(topic, best.bridge, best.member)))
            if (chosen := self._choices.get(topic)) is not None:
                down = Choice(topic, chosen.bridge, chosen.member)
                facts += [(n, down) for n, label in labels.items() if label.is_child and label.root == own.root]
        facts += [(node, self.ways.asks(topic, node)) for node in self.ways.nodes(topic)]
        facts += [(node, self.ways.answers(around, node)) for node in around.asked]
        found: dict[Address, dict[int, AnyFact]] = {}
        for node, fact in facts:
            if fact is not None:
                found.setdefault(node, {})[PLACES[type(fact)]] = fact
        return found

    def _tell(self, topic: int, tells: dict[Address, dict[int, AnyFact]]) -> None:
        before = self._tells.get(topic, {})
        for node in self._links.neighbours:
            old, new = before.get(node, {}), tells.get(node, {})
            if old != new:
                outgoing = self._links.slots[node].outgoing
                for kind in {*old, *new}:
                    outgoing.mark((kind, topic))
        if tells:
            self._tells[topic] = tells
        else:
            self._tells.pop(topic, None)
