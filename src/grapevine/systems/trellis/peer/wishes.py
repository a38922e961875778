"""What links are worth, which new ones a node wishes for, and whether it agrees to those that others wish for.

A link is worth what its loss would cost (`rules.shared_value`), and a new one what it would join (`gain_in_topic`). The
two links nearest on the ring, on either side, are beyond price. A ring link is agreed to by whom it brings nearer to
the ring, a friend only where both ends together win by more than a margin; each end says what it would win and lose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import NamedTuple

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.acquaintances import Acquaintances, Profile
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.labels import OwnLabel
from grapevine.systems.trellis.peer.links import CLOSING, OPEN, Links
from grapevine.systems.trellis.peer.messages import NOBODY, RING, Connect, Label
from grapevine.systems.trellis.peer.plain import accepts_friend, gain_in_topic, link_tie, margin_now, shared_value

_MOST_REFUSALS = 1_000  # that are remembered


class Verdict(NamedTuple):
    """What a node thinks of a request."""

    agrees: bool
    victim: Address | None = None  # the link that makes room, where none is free
    instead: tuple[Address, ...] = ()  # whom to ask rather


class Wishes:
    """The judgement of one node."""

    def __init__(
        self,
        config: TrellisPeerConfig,
        links: Links,
        others: Acquaintances,
        ring_id_of: Callable[[Address], int],
    ) -> None:
        self._config, self._links, self._others, self._ring_id_of = config, links, others, ring_id_of
        self._mine = ring_id_of(others.me.node)
        self._cover: dict[int, int] = {}  # neighbours in each of this node's topics
        self._refused: dict[Address, tuple[int, float]] = {}  # how often in a row, and until when not to ask again
        self.shocked = -inf  # when a neighbour was lost by silence

    # What links are worth

    def ring_links(self) -> list[Address | None]:
        """The nearest links after and before this node."""
        linked = [node for node, link in self._links.slots.items() if link.state != CLOSING]
        return [min(linked, key=lambda node: (self._away(side, node), node), default=None) for side in (0, 1)]

    def appraise(
        self, own: Mapping[int, OwnLabel], labels: Mapping[Address, Mapping[int, Label]], ways: Mapping[Address, int]
    ) -> None:
        """Work out anew what links are worth. `labels` are the neighbours', by topic, `ways` those in use over each."""
        common = {node: [topic for topic in said if topic in own] for node, said in labels.items()}
        self._cover = dict.fromkeys(own, 0)
        for topics in common.values():
            for topic in topics:
                self._cover[topic] += 1
        config, ring = self._config, self.ring_links()
        for node, link in self._links.slots.items():
            if node in ring or link.state != OPEN:
                link.value = inf
                continue
            value = config.bridge_value * ways.get(node, 0)
            for topic in common.get(node, ()):
                label, mine = labels[node][topic], own[topic]
                is_parent = mine.parent == node and not mine.has_other_way
                value += shared_value(
                    is_parent or (label.is_child and not label.has_other_way),
                    self._cover[topic],
                    config.enough_neighbours,
                    config.spare_value,
                    config.surplus_value,
                )
            link.value = value

    def weakest(self, now: float, *, young: bool = True) -> tuple[Address | None, float]:
        """The link that costs least to give up, and what it is worth: nobody, and 0, where a slot is free.

        Not `young`: of links that are about to show what they are worth, as labels spread over them, none is given up.
        """
        if self._links.has_room:
            return None, 0.0
        old, me = now - self._config.patience_s, self._others.me.node
        slots = [(node, link) for node, link in self._links.slots.items() if young or link.since <= old]
        value, _, node = min([(link.value, link_tie(me, node), node) for node, link in slots], default=(inf, 0, None))
        return (node, value) if value < inf else (None, inf)

    def gain(self, profile: Profile, own: Mapping[int, OwnLabel], calm: Collection[int]) -> float:
        """What a link to somebody would be worth; `calm` are the topics whose own labels are at rest."""
        config, total = self._config, 0.0
        for topic, root in profile.roots.items():
            mine = own.get(topic)
            if mine is not None:
                joins = root not in (NOBODY, mine.root) and topic in calm
                total += gain_in_topic(
                    joins, self._cover.get(topic, 0), config.enough_neighbours, config.spare_value, config.surplus_value
                )
        return total

    def margin(self, now: float, turn_s: float) -> float:
        """By how much a friend must be better now."""
        config = self._config
        if now < self.shocked + config.calm_s:
            return config.margin_after_loss
        found: float = margin_now(config.margin, config.stiffness, max(turn_s / config.turn_s, 1.0))
        return found

    # What a node wishes for

    def ring_wishes(self, now: float) -> list[Address]:
        """Whom to ask for a link on the ring: the next known nodes, where they are nearer than the links."""
        found = []
        for side, link in enumerate(self.ring_links()):
            nearest = next((node for node in self._others.ring[side] if self._may_ask(now, node)), None)
            if nearest is None or nearest == link:
                continue
            if link is None or self._away(side, nearest) < self._away(side, link):
                found.append(nearest)
        return list(dict.fromkeys(found))

    def _away(self, side: int, node: Address) -> int:
        return self._others.away(side, self._mine, self._ring_id_of(node))

    def _may_ask(self, now: float, node: Address) -> bool:
        return now >= self._refused.get(node, (0, -inf))[1]

    def friend_wishes(
        self, now: float, own: Mapping[int, OwnLabel], calm: Collection[int], margin: float
    ) -> list[tuple[Address, float, float]]:
        """The best friends to ask, each with what it and the link that it would replace are worth."""
        others, config = self._others, self._config
        found = []
        for node, profile in others.profiles.items():
            if not self._links.concerns(node):
                gain = self.gain(profile, own, calm)
                if gain > 0:
                    found.append((-gain, link_tie(others.me.node, node), node))
        found.sort()
        others.prospects = [node for _, _, node in found[: config.prospects]]
        _, value = self.weakest(now, young=False)
        wanted = [(node, -gain, value) for gain, _, node in found if self._may_ask(now, node)]
        return [wish for wish in wanted[: config.requests] if value == 0 or wish[1] > value + margin]

    def note_refusal(self, now: float, node: Address) -> None:
        """A node did not agree: it is asked again later, and later still each time."""
        count = self._refused.pop(node, (0, 0.0))[0] + 1
        wait = min(self._config.turn_s * 2.0 ** min(count, 20), 2 * self._config.most_turn_s)
        self._refused[node] = count, now + wait
        if len(self._refused) > _MOST_REFUSALS:
            del self._refused[next(iter(self._refused))]

    def note_link(self, node: Address) -> None:
        """A node agreed."""
        self._refused.pop(node, None)

    # Whether it agrees to what others wish for

    def judge(
        self,
        now: float,
        sender: Address,
        request: Connect,
        own: Mapping[int, OwnLabel],
        calm: Collection[int],
        margin: float,
    ) -> Verdict:
        """Whether to agree to a request for a link."""
        if request.kind == RING:
            return self._judge_ring(sender, *self.weakest(now))
        victim, value = self.weakest(now, young=False)
        profile = Profile.of(0, request.topics, request.roots)
        gains = request.gain, self.gain(profile, own, calm)
        agrees = value < inf and accepts_friend(gains, (request.value, value), max(margin, request.margin))
        return Verdict(agrees, victim)

    def _judge_ring(self, sender: Address, victim: Address | None, value: float) -> Verdict:
        ring = self.ring_links()
        for side, link in enumerate(ring):
            if link is None or self._away(side, sender) < self._away(side, link):
                return Verdict(value < inf, victim)
        theirs = self._ring_id_of(sender)
        known = [link for link in ring if link is not None]
        near = [node for node in (*known, *self._others.ring[0], *self._others.ring[1]) if node != sender]
        best = min(
            near,
            key=lambda node: min(self._others.away(side, theirs, self._ring_id_of(node)) for side in (0, 1)),
            default=None,
        )
        return Verdict(False, None, () if best is None else (best,))
