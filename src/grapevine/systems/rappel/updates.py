"""Updates on their way down a feed's tree, and pulls of those that were missed (§4.1)."""

from __future__ import annotations

from grapevine.systems.contracts.peer import Address, Deliver
from grapevine.systems.rappel.feed import Feed
from grapevine.systems.rappel.messages import LeaveTree, Pull, Update
from grapevine.systems.rappel.node import Node, Signatures


class Updates:
    """Publishes, passes on and pulls, in all feeds of a node."""

    def __init__(self, node: Node, signatures: Signatures | None = None) -> None:
        self._node, self._signatures = node, signatures
        self.refused = 0  # updates with a wrong signature

    def publish(self, feed: Feed, payload: bytes, sequence: int | None = None) -> int:
        """A new update of a feed that this node publishes; returns its sequence number, by default the next one."""
        sequence = feed.last + 1 if sequence is None else sequence
        signature = self._signatures.sign(feed.topic, sequence, payload) if self._signatures else b""
        update = Update(feed.topic, sequence, payload, signature)
        feed.keep(update, self._node.config.cache_size)
        for child in feed.children:
            self._node.out.send(child, update)
        return sequence

    def on_update(self, sender: Address, update: Update) -> None:
        """Keep it, push it on, deliver it to a subscriber; ask for what was missed before it."""
        node, feed = self._node, self._node.feeds.get(update.topic)
        if feed is None or feed.drained_at is not None:
            node.out.send(sender, LeaveTree(update.topic))
            return
        signatures = self._signatures
        if signatures and not signatures.verify(update.topic, update.sequence, update.payload, update.signature):
            self.refused += 1
            return
        before = feed.last
        if not feed.keep(update, node.config.cache_size):
            return
        pushed = Update(update.topic, update.sequence, update.payload, update.signature) if update.pulled else update
        for child in feed.children:
            if child != sender:
                node.out.send(child, pushed)
        if update.topic in node.subscriptions:
            node.out.add(Deliver(update.topic, update.sequence, update.payload, sender, update.pulled))
        if node.config.recover_gaps and before and update.sequence > before + 1:
            other = feed.ancestors[1] if len(feed.ancestors) > 1 else sender  # the parent may have missed the same
            node.out.send(other, feed.pull(node.config.cache_size))

    def learn(self, feed: Feed, last: int) -> None:
        """The parent knows of updates up to this one: pull what is missing, elsewhere if that was in vain."""
        config = self._node.config
        new = last > feed.last
        feed.last = max(feed.last, last)
        if not feed.missing(config.cache_size):
            feed.pulls_in_vain = 0
        elif new or config.recover_gaps:
            ancestors = feed.ancestors or (feed.publisher,)
            self._node.out.send(ancestors[feed.pulls_in_vain % len(ancestors)], feed.pull(config.cache_size))
            feed.pulls_in_vain += 1

    def on_pull(self, sender: Address, message: Pull) -> None:
        """Somebody missed updates; it gets those that are here."""
        feed = self._node.feeds.get(message.feed)
        if feed is not None and feed.drained_at is None:
            for update in feed.answer(message):
                self._node.out.send(sender, update)
