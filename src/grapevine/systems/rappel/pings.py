"""Pings (§3.3, §4.1): a node pings its friends and parents; by that its fans and children show that they are there.

Failures are found at both ends. Who pings waits `timeout_s` for the answer. Who is pinged knows the period, and drops a
fan or child from which nothing came for `silence_s`.
"""

from __future__ import annotations

from collections.abc import Iterable

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.audits import Audits
from grapevine.systems.rappel.children import Children
from grapevine.systems.rappel.friends import Friendship
from grapevine.systems.rappel.joining import Joining
from grapevine.systems.rappel.messages import Ack, Ping, WhoAreYou
from grapevine.systems.rappel.node import Node


class Pings:
    """Pings of one node, and its answers to those of others."""

    def __init__(
        self, node: Node, friendship: Friendship, audits: Audits, joining: Joining, children: Children
    ) -> None:
        self._node, self._friendship, self._audits = node, friendship, audits
        self._joining, self._children = joining, children
        self._unanswered: dict[Address, Ping] = {}

    def on_ping_timer(self, now: float) -> None:
        """Ping all friends and parents, once each, whatever their roles; answers are due within the time-out."""
        node = self._node
        friends = tuple(self._friendship.friends)
        parents: dict[Address, list[int]] = {}
        for topic, feed in node.feeds.items():
            if feed.parent is not None:
                parents.setdefault(feed.parent.node, []).append(topic)
        self._unanswered = {}
        for other in {**self._friendship.friends, **parents}:
            feeds = tuple(parents.get(other, ()))
            self._unanswered[other] = Ping(node.mine.version, other in self._friendship.friends, feeds, friends)
            node.out.send(other, self._unanswered[other])
        node.out.timer("ping", node.config.ping_s)
        node.out.timer("silence", node.config.timeout_s)

    def on_silence_timer(self, now: float) -> None:
        """Who has not answered has failed; so have fans and children that no longer ping."""
        silent, self._unanswered = self._unanswered, {}
        for other, ping in silent.items():
            self._has_failed(other, ping.feeds)
        before = now - self._node.config.silence_s
        self._friendship.drop_silent_fans(before)
        for feed in self._node.feeds.values():
            self._children.drop_silent(feed, before)

    def on_unreachable(self, other: Address) -> None:
        """The host says what silence would show later."""
        feeds = [topic for topic, feed in self._node.feeds.items() if feed.is_child_of(other)]
        if feeds or other in self._friendship.friends:
            self._has_failed(other, feeds)
        self._unanswered.pop(other, None)

    def _has_failed(self, other: Address, feeds: Iterable[int]) -> None:
        self._friendship.forget(other)
        if other in self._friendship.friends:
            self._friendship.lose(other)
            self._audits.audit()
        for topic in feeds:
            feed = self._node.feeds.get(topic)
            if feed is not None and feed.is_child_of(other):
                self._joining.parent_lost(feed, silent=True)

    def on_ping(self, now: float, sender: Address, message: Ping) -> None:
        """A fan or child is there; those that it names are candidates."""
        friendship = self._friendship
        is_fan = False
        if message.as_fan:
            is_fan = friendship.accept_fan(sender, now)
            friendship.hear_of((sender, *message.friends))
        else:
            friendship.fans.pop(sender, None)
            friendship.hear_of(message.friends)
        reports = self._children.reports(now, sender, message.feeds) if message.feeds else ()
        self._node.out.send(sender, Ack(self._node.mine.version, is_fan, tuple(friendship.friends), reports))

    def on_ack(self, now: float, sender: Address, message: Ack) -> None:
        """A friend or parent is there. An answer that comes too late still brings candidates and a version."""
        asked = self._unanswered.pop(sender, None)
        friendship = self._friendship
        known = friendship.friends.get(sender)
        if known is not None:
            if asked is not None and asked.as_fan and not message.is_fan:
                friendship.lose(sender)
            elif message.version > known.version:
                self._node.out.send(sender, WhoAreYou())
        friendship.hear_of(message.friends)
        if asked is not None and asked.feeds:
            self._joining.on_reports(sender, message.version[0], asked.feeds, message.feeds)
