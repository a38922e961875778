"""Ways: how a cluster without a neighbour in a lower one is joined to it, over nodes that do not want the topic.

Theory. Who needs a way for a topic to a rank below r asks one neighbour, its **uplink**, to carry it (`Carry`). Who is
asked and is itself of a lower rank, or next to somebody who is, is the end. Others need the same way for their part,
with the lowest rank that anybody asks of them, and so on. Which uplink that is follows from what a node knows now
(`Ways.choose`): a neighbour of lower rank; the bridge that its cluster has chosen; what a probe has found; otherwise
the next step of a greedy lookup of the topic's id, which ends at the **rendezvous**, the node nearest to it.

Invariants, once labels and links rest:
1. Where a way ends, the rank is lower than where it began, or it is the rendezvous. So by induction over ranks every
   cluster is joined to the lowest or to the rendezvous, and the lowest itself, which has no bridge, to the rendezvous.
2. Lookups have no circles, since the distance to the id falls with every step, or every second one (`lookahead`).
   Ways that mix lookups with bridges or probes might have: an answer (`Carried`) comes from the end of a way alone and
   counts steps, so a circle gets none, or one that counts beyond `MOST_STEPS`; who has waited for an answer in vain
   avoids that uplink for a while, and nothing is avoided that is a lookup's only step.
3. Nothing is carried for nobody: a request holds as long as who asked says so, and a node asks for nobody's sake but
   its cluster's and those that ask it. Of a way where nobody else is (`Carried.is_needed` is false) no event uses a
   step: it is a path kept ready, such as that of a lowest cluster to a rendezvous where no other arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.labels import OwnLabel
from grapevine.systems.trellis.peer.messages import Carried, Carry, Label, Offer
from grapevine.systems.trellis.peer.plain import rank_of

MOST_STEPS = 60
_AVOID = 10  # times the patience with answers: for so long an uplink that did not answer is avoided

NextHop = Callable[[int, Collection[Address]], "Address | None"]  # towards a topic's id, without some nodes


class Uplink(NamedTuple):
    """Where a node's way for a topic goes on."""

    node: Address
    rank: int  # below which it has to end
    via: Address | None  # the node after next, that a probe has found
    since: float
    is_end: bool  # the node itself has a lower rank


class Around(NamedTuple):
    """What a node knows about a topic when it looks for a way."""

    topic: int
    own: OwnLabel | None  # None: it does not want the topic
    duty: int | None  # the rank of its own cluster, if it is up to this node to keep a way; None: it is not
    bridge: Address | None  # that its cluster has chosen, if this node has got the offer
    probed: tuple[Address, Address] | None  # a way that a probe of this node has found
    neighbours: Collection[Address]
    labels: Mapping[Address, Label]
    offers: Mapping[Address, Offer]
    asked: Mapping[Address, Carry]  # what neighbours ask
    answers: Mapping[Address, Carried]  # what neighbours answer


class Ways:
    """The uplinks of one node. `next_hop` is the greedy step of a lookup."""

    def __init__(self, config: TrellisPeerConfig, next_hop: NextHop) -> None:
        self._config, self._next_hop = config, next_hop
        self.uplinks: dict[int, Uplink] = {}
        self._former: dict[int, tuple[Uplink, float]] = {}  # what is kept until another way is sure, or so long
        self._avoided: dict[int, dict[Address, float]] = {}

    def needed_rank(self, around: Around) -> int | None:
        """Below which rank this node needs a way; None: it needs none."""
        own = around.own
        ranks = [ask.rank for ask in around.asked.values() if own is None or ask.rank <= own.rank]
        if around.duty is not None:
            ranks.append(around.duty)
        rank = min(ranks, default=None)
        if rank is None or (own is not None and _lower(around, rank) is not None):
            return None  # members of one topic exchange its events anyway
        return rank

    def revise(self, now: float, around: Around) -> bool:
        """Choose the uplink of a topic anew; whether the way is another now."""
        topic, before = around.topic, self.uplinks.get(around.topic)
        self._give_up(now, around, before)
        rank = self.needed_rank(around)
        after = self._choose(now, around, rank, before) if rank is not None else None
        if before is not None and (after is None or after.node != before.node) and before.node in around.neighbours:
            self._former[topic] = before, now + self._config.linger_s
        ended = self._end_former(now, around, after)
        if after == before:
            return ended
        if after is None:
            del self.uplinks[topic]
        else:
            self.uplinks[topic] = after
        return True

    def _give_up(self, now: float, around: Around, uplink: Uplink | None) -> None:
        """Avoid an uplink for a while whose answer has not come."""
        avoided = self._avoided.get(around.topic, {})
        avoided = {node: until for node, until in avoided.items() if until > now}
        if uplink is not None and not is_sure(around, uplink) and now >= uplink.since + 2 * self._config.answer_s:
            avoided[uplink.node] = now + _AVOID * self._config.answer_s
        if avoided:
            self._avoided[around.topic] = avoided
        else:
            self._avoided.pop(around.topic, None)

    def _end_former(self, now: float, around: Around, uplink: Uplink | None) -> bool:
        """Whether a way that was kept for a while has ended now."""
        former = self._former.get(around.topic)
        if former is None:
            return False
        is_replaced = uplink is not None and (uplink.node == former[0].node or is_sure(around, uplink))
        if is_replaced or former[1] <= now or former[0].node not in around.neighbours:
            del self._former[around.topic]
            return True
        return False

    def _choose(self, now: float, around: Around, rank: int, before: Uplink | None) -> Uplink | None:
        """The uplink to a rank below this one; None: this node is the end, as nobody is nearer to the topic's id."""
        via, avoided = None, self._avoided.get(around.topic, {})
        node = _lower(around, rank)
        is_end = node is not None
        if node is None and around.bridge is not None and around.bridge not in avoided:
            node = around.bridge if around.offers[around.bridge].rank < rank else None
        if node is None:
            node, via = self._probed(around, avoided)
        if node is None:
            node = self._step(around.topic, avoided)
        if node is None:
            return None
        is_same = before is not None and before[:3] == (node, rank, via) and before.is_end == is_end
        return before if is_same and node not in avoided else Uplink(node, rank, via, now, is_end)

    def _step(self, topic: int, avoided: Collection[Address]) -> Address | None:
        """The next step of a lookup: over those that are not avoided, or over all if there is none."""
        node = self._next_hop(topic, avoided)
        return self._next_hop(topic, ()) if node is None and avoided else node

    def _probed(self, around: Around, avoided: Collection[Address]) -> tuple[Address | None, Address | None]:
        """A step of a way that was found by a probe: this node's own, or of somebody who asks it."""
        if around.probed is not None and around.probed[0] not in avoided and around.probed[0] in around.neighbours:
            return around.probed
        for asker, ask in around.asked.items():
            if ask.via is not None and ask.via != asker and ask.via not in avoided and ask.via in around.neighbours:
                return ask.via, None
        return None, None

    # What neighbours are told, and whom events go to

    def asks(self, topic: int, node: Address) -> Carry | None:
        """What this node asks of a neighbour."""
        uplink, former = self.uplinks.get(topic), self._former.get(topic)
        if uplink is not None and uplink.node == node:
            return Carry(topic, uplink.rank, uplink.via)
        if former is not None and former[0].node == node:
            return Carry(topic, former[0].rank, former[0].via)
        return None

    def nodes(self, topic: int) -> list[Address]:
        """Whom this node asks to carry the topic."""
        former, uplink = self._former.get(topic), self.uplinks.get(topic)
        return ([uplink.node] if uplink else []) + ([former[0].node] if former else [])

    def answers(self, around: Around, node: Address) -> Carried | None:
        """What this node answers a neighbour who asks it; None: it does not know yet, or is not asked."""
        ask, own, topic = around.asked.get(node), around.own, around.topic
        if ask is None:
            return None
        if own is not None and own.rank < ask.rank:
            return Carried(topic, own.rank, 0, is_needed=True)
        end, uplink = _lower(around, ask.rank), self.uplinks.get(topic)
        if end is not None and (own is not None or (uplink is not None and uplink.node == end)):
            return Carried(topic, rank_of(topic, around.labels[end].root), 1, is_needed=True)
        joins = own is not None or len(around.asked) > 1
        if uplink is None:
            return Carried(topic, 0, 0, joins)
        answer = around.answers.get(uplink.node)
        if answer is None or uplink.node == node or answer.target >= ask.rank or answer.steps + 1 >= MOST_STEPS:
            return None
        return Carried(topic, answer.target, answer.steps + 1, joins or answer.is_needed)

    def edges(self, around: Around) -> dict[Address, bool]:
        """With whom the topic's events are exchanged, and whether the link is of a tree, so that payload uses it."""
        own, found = around.own, {}
        if own is not None:
            for node, label in around.labels.items():
                found[node] = label.root != own.root or label.is_child or own.parent == node
        for node in around.asked:
            found.setdefault(node, True)
        former = self._former.get(around.topic)
        for uplink in (self.uplinks.get(around.topic), former[0] if former else None):
            if uplink is not None and uplink.node in around.neighbours:
                answer = around.answers.get(uplink.node)
                if uplink.is_end or (answer is not None and answer.is_needed):
                    found.setdefault(uplink.node, True)
        return found

    def next_look(self, around: Around) -> float:
        """When the topic has to be revised even if nothing is heard; infinity: never."""
        uplink, former = self.uplinks.get(around.topic), self._former.get(around.topic)
        look = uplink.since + 2 * self._config.answer_s if uplink and not is_sure(around, uplink) else inf
        return min(look, former[1] if former else inf)


def is_sure(around: Around, uplink: Uplink) -> bool:
    """Whether the end of a way has answered."""
    answer = around.answers.get(uplink.node)
    return uplink.is_end or (answer is not None and answer.target < uplink.rank and answer.steps < MOST_STEPS)


def _lower(around: Around, rank: int) -> Address | None:
    """The neighbour in the topic with the lowest rank, if that is below this one."""
    found = min(((rank_of(around.topic, label.root), node) for node, label in around.labels.items()), default=None)
    return found[1] if found is not None and found[0] < rank else None
