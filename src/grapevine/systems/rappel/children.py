"""The parent's side of a feed's tree: whom a node takes as a child, evicts, and tells what it knows (§4.1 – §4.4).

A guest is a child that was taken beyond the bound because another child leaves and asked for it. It stays beyond the
bound until that one is gone, and then has its place (`feed`, rule 2).
"""

from __future__ import annotations

from collections.abc import Iterable

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.feed import Accept, Child, Feed
from grapevine.systems.rappel.leaving import Leaving
from grapevine.systems.rappel.messages import (
    Adopt,
    ChangeParent,
    Join,
    JoinDeny,
    JoinForward,
    JoinOk,
    LeaveTree,
    ParentReport,
)
from grapevine.systems.rappel.node import Node
from grapevine.systems.rappel.position import apart_ms


class Children:
    """The children of a node, in all its feeds."""

    def __init__(self, node: Node, leaving: Leaving) -> None:
        self._node, self._leaving = node, leaving

    def on_join(self, now: float, sender: Address, message: Join) -> None:
        """Somebody looks for a parent: Algorithm 2, unless this node is not, or hardly, in the tree."""
        node, feed = self._node, self._node.feeds.get(message.feed)
        gone = feed is not None and (feed.drained_at is not None or (feed.leaving and feed.is_root))
        if feed is None or gone or not node.position:
            node.out.send(sender, JoinDeny(message.feed))
            return
        if message.periodic and message.steps == 0:
            feed.rejoins += 1
        if feed.leaving:
            node.out.send(sender, JoinForward(feed.topic, feed.parent.node if feed.parent else feed.publisher))
            return
        self.drop_silent(feed, now - node.config.silence_s)
        self._drop_suspect(now, feed, message.failed)
        answer = feed.receive_join(node.me, node.position, sender, message.position, node.config.children)
        if not isinstance(answer, Accept):
            node.out.send(sender, JoinForward(feed.topic, answer.to))
            return
        path_ms = feed.path_ms + apart_ms(node.position, message.position, node.config.heights)
        if message.periodic and path_ms >= message.path_ms and sender not in feed.children:
            node.out.send(sender, JoinDeny(feed.topic))  # no better parent than it has
            return
        self._take(now, feed, sender, message, answer)

    def _drop_suspect(self, now: float, feed: Feed, failed: Address | None) -> None:
        """The searcher says that this child, its parent, has failed. Believed if the child has missed a time-out here,
        too; or Algorithm 2 would send the searcher back to it (Fig. 4c)."""
        suspect = feed.children.get(failed) if failed is not None else None
        if failed is not None and suspect is not None and suspect.last_heard < now - self._node.config.timeout_s:
            self._forget(feed, failed)

    def _take(self, now: float, feed: Feed, sender: Address, message: Join, answer: Accept) -> None:
        """A new child, or one that asks once more; whoever takes a guest's place is a guest."""
        replaced = feed.children.get(sender if answer.evicted is None else answer.evicted)
        guest_of = replaced.guest_of if replaced else None
        feed.children[sender] = Child(message.position, message.session, now, guest_of)
        self._node.out.send(sender, self._welcome(feed, message.session))
        if answer.evicted is not None and answer.instead is not None:
            self._evict(feed, answer.evicted, answer.instead)
            self._evict_surplus(feed)

    def _evict(self, feed: Feed, child: Address, instead: Address) -> None:
        """Send a child to another parent (Fig. 4d)."""
        self._forget(feed, child)
        self._node.out.send(child, ChangeParent(feed.topic, instead))

    def _evict_surplus(self, feed: Feed) -> None:
        """Guests that stay have made it more children than there may be: the farthest goes, as in Fig. 4d."""
        while sum(child.guest_of is None for child in feed.children.values()) > self._node.config.children:
            self._evict(feed, *feed.farthest())

    def _forget(self, feed: Feed, child: Address) -> None:
        """It is no child any more; the guest that it brought has its place now (§4.4)."""
        self._settle_guests(feed, child)
        del feed.children[child]

    def _settle_guests(self, feed: Feed, host: Address) -> None:
        """Guests of this child become what it is: children, or guests of another one."""
        for child in feed.children.values():
            if child.guest_of == host:
                child.guest_of = feed.children[host].guest_of

    def _welcome(self, feed: Feed, child_session: int, instead_of: Address | None = None) -> JoinOk:
        assert feed.publisher_position is not None
        node = self._node
        return JoinOk(
            *(feed.topic, node.session, feed.ancestors, feed.publisher_position, feed.last),
            *(child_session, instead_of, node.position, feed.path_ms),
        )

    def on_adopt(self, now: float, sender: Address, message: Adopt) -> None:
        """A child that leaves hands one of its own children over (§4.4)."""
        feed = self._node.feeds.get(message.feed)
        if feed is None or feed.leaving or sender not in feed.children or feed.publisher_position is None:
            return
        self._settle_guests(feed, sender)  # if it wanted to leave before, and stayed
        feed.children[message.child] = Child(message.position, message.session, now, guest_of=sender)
        self._node.out.send(message.child, self._welcome(feed, message.session, instead_of=sender))
        self._evict_surplus(feed)

    def on_leave_tree(self, now: float, sender: Address, message: LeaveTree) -> None:
        """A child has another parent, or leaves; if it was the last and this node wants to leave, now it can."""
        feed = self._node.feeds.get(message.feed)
        if feed is None or sender not in feed.children:
            return
        self._forget(feed, sender)
        if feed.leaving and not feed.children:
            self._leaving.finish(now, feed)

    def drop_silent(self, feed: Feed, before: float) -> None:
        """Children that were last heard of before this time have failed (§4.1)."""
        for child in [child for child, known in feed.children.items() if known.last_heard < before]:
            self._forget(feed, child)

    def reports(self, now: float, child: Address, topics: Iterable[int]) -> tuple[ParentReport, ...]:
        """What a child's ping about these feeds is answered with; those in which it is no child are left out."""
        found = []
        for topic in topics:
            feed = self._node.feeds.get(topic)
            if feed is not None and child in feed.children:
                feed.children[child].last_heard = now
                found.append(ParentReport(topic, feed.ancestors, feed.last, feed.path_ms))
        return tuple(found)
