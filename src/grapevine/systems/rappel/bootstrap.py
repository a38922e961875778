"""How a session begins (§5): coordinates first, then the trees of all feeds, then a rejoin of each from time to time.

A node that was there before asks the friends of its last session who they are (§5.3). Feeds that some friend covers are
joined through it at once (§5.1). Of the others one is joined at its publisher every `stagger_s`, which makes the node
known and finds it friends, so that more and more feeds are covered (staggered join, §5.2); after `staggered_joins` of
these the rest follows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.joining import Joining
from grapevine.systems.rappel.messages import HereIAm, Position, WhereAreYou, WhoAreYou
from grapevine.systems.rappel.node import Node
from grapevine.systems.rappel.position import Locating

_LANDMARK_ERROR = 0.5  # ours: of a position that was itself measured, half as sure as one can be


class Bootstrap:
    """How one session begins, and from then on the periodic rejoins of its feeds."""

    def __init__(
        self, node: Node, landmarks: Sequence[Address], joining: Joining, covering: Callable[[int], list[Address]]
    ) -> None:
        self._node, self._joining, self._covering = node, joining, covering
        self._locating = Locating(node.config, landmarks, node.random, node.out)
        self._not_joined: list[int] = []  # feeds that wait for a friend that covers them, or for their turn (§5.2)
        self._staggered = 0  # joins at publishers so far
        self._probed: set[Address] = set()  # stale friends that have not answered (§5.3)
        self._rejoining = False  # periodic rejoins have begun
        self._rejoin_timers: set[int] = set()  # feeds that have one

    @property
    def is_joining(self) -> bool:
        """Whether some feeds still wait to be joined."""
        return bool(self._not_joined)

    def start(self, now: float) -> None:
        """Ask the landmarks for the way, unless the node knows where it is."""
        if self._node.before.position:
            self._located(now, self._node.before.position)
        else:
            self._locating.ask(now)

    # Coordinates (§6.1.4)

    def on_locate_timer(self, now: float) -> None:
        """Another round of questions to landmarks, or enough of them."""
        position = self._locating.ask(now)
        if position is not None:
            self._located(now, position)

    def on_here_i_am(self, now: float, sender: Address, message: HereIAm) -> None:
        """A landmark answered a question; whoever is none is not listened to."""
        self._locating.hear(now, sender, message)

    def on_where_are_you(self, now: float, sender: Address, message: WhereAreYou) -> None:
        """Live networks have no servers: whoever knows its position is a landmark to those who begin with it."""
        if self._node.position:
            self._node.out.send(sender, HereIAm(message.probe, self._node.position, _LANDMARK_ERROR))

    def _located(self, now: float, position: Position) -> None:
        node, config = self._node, self._node.config
        node.mine.position = position
        for topic, feed in sorted(node.feeds.items()):
            if feed.is_root:
                feed.publisher_position = position
            elif not feed.leaving:
                self._not_joined.append(topic)
        node.random.shuffle(self._not_joined)
        node.out.timer("ping", node.random.random() * config.ping_s)
        node.out.timer("audit", node.random.random() * self.audit_s)
        if node.before.friends:
            self._probed = set(node.before.friends)
            for friend in node.before.friends:
                node.out.send(friend, WhoAreYou())
            node.out.timer("probed", config.timeout_s)
        else:
            self.on_stagger_timer(now)

    @property
    def audit_s(self) -> float:
        """Seconds between two audits: friends are needed most while feeds wait for them."""
        return self._node.config.virgin_audit_s if self.is_joining else self._node.config.audit_s

    # Friends of the last session (§5.3)

    def answers_probe(self, node: Address) -> bool:
        """Whether the node is a friend of the last session from whom an answer is awaited; asked when one came."""
        if node not in self._probed:
            return False
        self._probed.discard(node)
        return True

    def on_probed_timer(self, now: float) -> None:
        """Stale friends have had their time: what they do not cover is joined step by step."""
        self._probed.clear()
        self.on_stagger_timer(now)

    # First joins (§5.1, §5.2)

    def join_covered(self) -> None:
        """Join the feeds that friends cover; called when there may be new ones."""
        waiting = []
        for topic in self._not_joined:
            friends = self._covering(topic)
            if friends:
                feed = self._node.feeds[topic]
                self._joining.join(feed, [*friends, feed.publisher])
            else:
                waiting.append(topic)
        self._not_joined = waiting
        self._begin_rejoins()

    def on_stagger_timer(self, now: float) -> None:
        """Covered feeds at once, one of the others at its publisher; after the twelfth of these all (§5.2)."""
        self.join_covered()
        config = self._node.config
        count = 1 if self._staggered < config.staggered_joins else len(self._not_joined)
        for topic in self._not_joined[:count]:
            feed = self._node.feeds[topic]
            self._joining.join(feed, [feed.publisher])
        self._not_joined = self._not_joined[count:]
        self._staggered += 1
        if self._not_joined:
            self._node.out.timer("stagger", config.stagger_s)
        self._begin_rejoins()

    def stop_waiting(self, *topics: int) -> None:
        """These feeds are not wanted any more."""
        self._not_joined = [waiting for waiting in self._not_joined if waiting not in topics]

    # Periodic rejoins (§4.3)

    def _begin_rejoins(self) -> None:
        """Once all feeds are joined, or on their way, they are rejoined from time to time (§5.2)."""
        if not self._not_joined and not self._rejoining:
            self._rejoining = True
            for topic in self._node.feeds:
                self.begin_rejoins_of(topic)

    def begin_rejoins_of(self, topic: int) -> None:
        """A feed's first rejoin is due at a random moment of the period; before the others' time it is put off."""
        if self._rejoining and topic not in self._rejoin_timers:
            self._rejoin_timers.add(topic)
            self._node.out.timer(("rejoin", topic), self._node.random.random() * self._node.config.rejoin_s)

    def on_rejoin_timer(self, now: float, topic: int) -> None:
        """A feed's rejoin is due; one that the node has left needs no more of them."""
        feed = self._node.feeds.get(topic)
        if feed is None:
            self._rejoin_timers.discard(topic)
        else:
            self._joining.rejoin(feed)
            self._node.out.timer(("rejoin", topic), self._node.config.rejoin_s)
