"""Feeds with several publishers (§2): the others submit their updates to the master publisher, the root of the tree."""

from __future__ import annotations

from grapevine.systems.contracts.peer import Address, Deliver
from grapevine.systems.rappel.messages import Submit, Submitted
from grapevine.systems.rappel.node import Node
from grapevine.systems.rappel.updates import Updates

_A_SESSION = 1_000_000  # submissions: their numbers begin with that of the session, so that none comes twice
_MOST_REMEMBERED = 1_000  # submissions that a master tells apart from new ones


class Submissions:
    """What a node submits to masters, and as a master takes from others."""

    def __init__(self, node: Node, updates: Updates) -> None:
        self._node, self._updates = node, updates
        self._waiting: dict[tuple[int, int], bytes] = {}  # (feed, submission) → payload, until the master has answered
        self._count = 0
        self._published: dict[tuple[Address, int], None] = {}  # as a master: whose submissions are published already

    def submit(self, feed: int, payload: bytes) -> None:
        """Hand an update to the feed's master publisher, again and again until it says that it has it."""
        self._count += 1
        key = feed, self._node.session * _A_SESSION + self._count
        self._waiting[key] = payload
        self.resubmit(key)

    def resubmit(self, key: tuple[int, int]) -> None:
        """Send a submission that was not answered yet."""
        if key in self._waiting:
            self._node.out.send(self._node.publisher_of(key[0]), Submit(*key, self._waiting[key]))
            self._node.out.timer(("submit", key), self._node.config.timeout_s)

    def on_submit(self, sender: Address, message: Submit) -> None:
        """As the master: publish it, once; deliver it as well if this node subscribes to its own feed."""
        node, feed = self._node, self._node.feeds.get(message.feed)
        if feed is None or not feed.is_root or not node.position:
            return
        if (sender, message.submission) not in self._published:
            self._published[sender, message.submission] = None
            if len(self._published) > _MOST_REMEMBERED:
                del self._published[next(iter(self._published))]
            sequence = self._updates.publish(feed, message.payload)
            if message.feed in node.subscriptions:
                node.out.add(Deliver(message.feed, sequence, message.payload, sender))
        node.out.send(sender, Submitted(message.feed, message.submission))

    def on_submitted(self, message: Submitted) -> None:
        """The master publisher has published it: no more repeats."""
        self._waiting.pop((message.feed, message.submission), None)
