"""The child's side of a feed's tree: how a node finds a parent, keeps it and replaces it (§4.2, §4.3, §4.4).

A search asks one node after the other until somebody takes the searcher as a child. Whom it asks first depends on why
it searches: friends that seem to subscribe, the ancestors of a parent that failed, an ancestor now and then in order to
come nearer to the publisher, or whom a parent named. The publisher is always the last resort. A node that has a parent
keeps it while it searches (proper rejoin, §4.4): a new one is taken first, then the old one is left.

At most one search is under way per feed. Every question has a number, so that the time-out of an earlier one, or an
answer from somebody who was asked before, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.feed import Feed, Parent, Search
from grapevine.systems.rappel.messages import ChangeParent, Join, JoinDeny, JoinForward, JoinOk, LeaveTree, ParentReport
from grapevine.systems.rappel.node import Node
from grapevine.systems.rappel.position import apart_ms
from grapevine.systems.rappel.updates import Updates

_MOST_STEPS = 64  # of one search; trees are a few levels deep, so more of them are a circle of stale pointers


class Joining:
    """Searches for parents, in all feeds of a node."""

    def __init__(self, node: Node, updates: Updates, covering: Callable[[int], list[Address]]) -> None:
        self._node, self._updates = node, updates
        self._covering = covering  # friends that seem to subscribe to a feed, the closest first

    # Searching

    def join(
        self, feed: Feed, contacts: Iterable[Address], *, periodic: bool = False, failed: Address | None = None
    ) -> None:
        """Begin a search that asks these nodes; one that is under way is given up for it."""
        others = [node for node in contacts if node != self._node.me]
        if not others:
            self._give_up(feed)
            return
        feed.search = Search(others[0], others[1:], 0, periodic=periodic, failed=failed)
        self._ask(feed, feed.search, others[0], 0)

    def _ask(self, feed: Feed, search: Search, contact: Address, steps: int) -> None:
        node = self._node
        feed.questions += 1
        search.contact, search.steps, search.question = contact, steps, feed.questions
        me = node.position, node.session
        node.out.send(contact, Join(feed.topic, *me, steps, search.periodic, feed.path_ms, search.failed))
        node.out.timer(("join", feed.topic, feed.questions), node.config.timeout_s)

    def _ask_next(self, feed: Feed, search: Search) -> None:
        if search.other_contacts:
            self._ask(feed, search, search.other_contacts.pop(0), 0)
        else:
            self._give_up(feed)

    def _give_up(self, feed: Feed) -> None:
        """Nobody took this node. If it has no parent, it tries friends and publisher again after a while."""
        feed.search = None
        if feed.parent is None and not feed.leaving:
            self._node.out.timer(("again", feed.topic, feed.questions), self._node.config.ping_s)

    def search_again(self, feed: Feed) -> None:
        """Ask friends that seem to subscribe, the closest first, then the publisher (§5.1); unless there is no need."""
        if feed.parent is None and feed.search is None and not feed.leaving:
            self.join(feed, [*self._covering(feed.topic), feed.publisher])

    def timed_out(self, feed: Feed, question: int) -> None:
        """Whoever got this question has had its time to answer."""
        if feed.search is not None and feed.search.question == question:
            self._ask_next(feed, feed.search)

    def rejoin(self, feed: Feed) -> None:
        """Look for a better parent from an ancestor on (§4.3)."""
        if feed.skip_rejoin:
            feed.skip_rejoin = False
        elif feed.search is None and feed.parent is not None and not feed.leaving:
            ancestor = feed.ancestor_for_rejoin(self._node.config.children, self._node.random)
            if ancestor is not None:
                self.join(feed, [ancestor], periodic=True)

    # Answers to searches

    def on_deny(self, sender: Address, message: JoinDeny) -> None:
        """The contact is not in the tree, or no better than the parent."""
        feed = self._node.feeds.get(message.feed)
        if feed is not None and feed.search is not None and feed.search.contact == sender:
            self._ask_next(feed, feed.search)

    def on_forward(self, sender: Address, message: JoinForward) -> Address | None:
        """The contact names another; returns that one if this was an answer, as somebody worth to know (§5.2)."""
        feed = self._node.feeds.get(message.feed)
        if feed is None or feed.search is None or feed.search.contact != sender:
            return None
        search = feed.search
        if search.periodic and feed.parent is not None and message.to == feed.parent.node:
            feed.search = None  # the way leads back to the parent: there is no better one
        elif message.to == self._node.me or search.steps >= _MOST_STEPS:
            self._ask_next(feed, search)
        else:
            self._ask(feed, search, message.to, search.steps + 1)
        return message.to

    def on_ok(self, sender: Address, message: JoinOk) -> bool:
        """Take the parent, then leave the old one (proper rejoin, §4.4); returns whether it was taken."""
        node, feed = self._node, self._node.feeds.get(message.feed)
        if feed is None or not self._expects(feed, sender, message):
            if feed is None or not feed.is_child_of(sender):
                node.out.send(sender, LeaveTree(message.feed))
            return False
        old, feed.search = feed.parent, None
        feed.parent = Parent(sender, message.session)
        feed.ancestors, feed.publisher_position = (sender, *message.ancestors), message.publisher_position
        feed.to_parent_ms = apart_ms(node.position, message.position, node.config.heights)
        feed.path_ms = message.path_ms + feed.to_parent_ms
        if old is not None and old.node != sender:
            node.out.send(old.node, LeaveTree(feed.topic))
        self._updates.learn(feed, message.last)
        return True

    def _expects(self, feed: Feed, sender: Address, message: JoinOk) -> bool:
        """Whether this node asked the sender, in this session; or its parent did, who leaves."""
        if feed.leaving or message.child_session != self._node.session:
            return False
        if message.instead_of is not None:
            return feed.is_child_of(message.instead_of)
        return feed.search is not None and feed.search.contact == sender

    # Having a parent

    def on_change_parent(self, sender: Address, message: ChangeParent) -> None:
        """Evicted, or the parent leaves: look for another one, from the named node on."""
        feed = self._node.feeds.get(message.feed)
        if feed is None or not feed.is_child_of(sender):
            return
        if not message.leaving:
            feed.parent, feed.skip_rejoin = None, True
        if not feed.leaving:
            self.join(feed, [message.to, *feed.ancestors[1:], feed.publisher])

    def on_reports(self, sender: Address, session: int, asked: Iterable[int], reports: Iterable[ParentReport]) -> None:
        """A parent answered a ping about these feeds; no report of one of them means to be no child there."""
        answers = {report.feed: report for report in reports}
        for topic in asked:
            feed = self._node.feeds.get(topic)
            if feed is None or feed.parent is None or feed.parent.node != sender:
                continue
            if topic not in answers or feed.parent.session != session:
                self.parent_lost(feed)
                continue
            report = answers[topic]
            feed.ancestors, feed.path_ms = (sender, *report.ancestors), report.path_ms + feed.to_parent_ms
            self._updates.learn(feed, report.last)

    def parent_lost(self, feed: Feed, *, silent: bool = False) -> None:
        """The parent has failed (`silent`), or says that this node is no child of its: search from an ancestor on."""
        failed = feed.parent.node if silent and feed.parent and self._node.config.name_failed else None
        feed.parent = None
        if feed.leaving:
            return
        if feed.search is None or feed.search.periodic:
            ancestor = feed.ancestor_for_rejoin(self._node.config.children, self._node.random)
            start = feed.ancestors.index(ancestor) if ancestor is not None else len(feed.ancestors)
            contacts = [*feed.ancestors[start:], *self._covering(feed.topic), feed.publisher]
            self.join(feed, contacts, failed=failed)
