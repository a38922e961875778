"""A node's part in the trees of its feeds (§4): joins, rejoins, leaves, and updates on their way down.

A search asks one node after the other until somebody takes the searcher as a child (Algorithm 2). Searches of a node
that has a parent go on in the background (proper rejoin, §4.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

from grapevine.systems.contracts.peer import Address, Deliver
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Accept, Child, Feed, Parent, Search
from grapevine.systems.rappel.messages import (
    About,
    Adopt,
    ChangeParent,
    Join,
    JoinDeny,
    JoinForward,
    JoinOk,
    LeaveTree,
    Position,
    Pull,
    Submit,
    Submitted,
    Update,
)
from grapevine.systems.rappel.outbox import Outbox

_MOST_STEPS = 64  # of one search; trees are a few levels deep, so more of them are a circle of stale pointers


class Signatures(Protocol):
    """Who signs and checks updates, where they are signed (§4.1)."""

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        """The publisher's signature."""

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        """Whether it is one of the feed's publisher."""


class Trees:
    """The feeds of one node, in one session."""

    def __init__(
        self,
        config: RappelConfig,
        me: Address,
        session: int,
        out: Outbox,
        random: Random,
        covering: Callable[[int], list[Address]],
        signatures: Signatures | None = None,
    ) -> None:
        self.config, self.me, self.session = config, me, session
        self.feeds: dict[int, Feed] = {}
        self.position: Position = ()
        self.refused = 0  # updates with a wrong signature
        self._out, self._random, self._covering, self._signatures = out, random, covering, signatures
        self._submitted: dict[tuple[int, int], bytes] = {}  # waiting for the master publisher
        self._submissions = 0
        self._published: dict[tuple[Address, int], None] = {}  # submissions that are published already

    # Finding a parent

    def join(
        self, feed: Feed, contacts: Iterable[Address], *, periodic: bool = False, failed: Address | None = None
    ) -> None:
        """Ask these nodes, one after the other, to be the parent."""
        others = [node for node in contacts if node != self.me]
        if not others:
            self._give_up(feed)
            return
        feed.search = Search(others[0], others[1:], 0, periodic=periodic, failed=failed)
        self._ask(feed, feed.search, others[0], 0)

    def _ask(self, feed: Feed, search: Search, node: Address, steps: int) -> None:
        feed.searches += 1
        search.contact, search.steps, search.number = node, steps, feed.searches
        me = self.position, self.session
        self._out.send(node, Join(feed.topic, *me, steps, search.periodic, feed.length, search.failed))
        self._out.timer(("join", feed.topic, feed.searches), self.config.timeout_s)

    def _next_contact(self, feed: Feed, search: Search) -> None:
        if search.others:
            self._ask(feed, search, search.others.pop(0), 0)
        else:
            self._give_up(feed)

    def _give_up(self, feed: Feed) -> None:
        """Nobody answered. Without a parent, try friends and publisher again after a while."""
        feed.search = None
        if feed.parent is None and not feed.leaving:
            self._out.timer(("again", feed.topic, feed.searches), self.config.ping_s)

    def search_again(self, feed: Feed) -> None:
        """Friends that seem to subscribe, the closest first; then the publisher (§5.1)."""
        if feed.parent is None and feed.search is None and not feed.leaving:
            self.join(feed, [*self._covering(feed.topic), feed.publisher])

    def timed_out(self, feed: Feed, number: int) -> None:
        """Whoever was asked in this step of a search has not answered."""
        if feed.search is not None and feed.search.number == number:
            self._next_contact(feed, feed.search)

    def rejoin(self, feed: Feed) -> None:
        """Look for a better parent from an ancestor on (§4.3)."""
        if feed.skip_rejoin:
            feed.skip_rejoin = False
        elif feed.search is None and feed.parent is not None and not feed.leaving:
            ancestor = feed.ancestor_for_rejoin(self.config.children, self._random)
            if ancestor is not None:
                self.join(feed, [ancestor], periodic=True)

    def parent_lost(self, feed: Feed, *, silent: bool = False) -> None:
        """The parent has failed, or says that this node is no child of its: rejoin, at an ancestor if one is known."""
        failed = feed.parent.node if silent and feed.parent else None
        feed.parent = None
        if feed.leaving:
            return
        if feed.search is None or feed.search.periodic:
            ancestor = feed.ancestor_for_rejoin(self.config.children, self._random)
            start = feed.chain.index(ancestor) if ancestor is not None else len(feed.chain)
            contacts = [*feed.chain[start:], *self._covering(feed.topic), feed.publisher]
            self.join(feed, contacts, failed=failed)

    def on_deny(self, sender: Address, message: JoinDeny) -> None:
        """A false positive of a Bloom filter, or a subscriber no more."""
        feed = self.feeds.get(message.feed)
        if feed is not None and feed.search is not None and feed.search.contact == sender:
            self._next_contact(feed, feed.search)

    def on_forward(self, sender: Address, message: JoinForward) -> Address | None:
        """Ask the next one; returns who that is, as somebody to know."""
        feed = self.feeds.get(message.feed)
        if feed is None or feed.search is None or feed.search.contact != sender:
            return None
        search = feed.search
        if search.periodic and feed.parent is not None and message.to == feed.parent.node:
            feed.search = None  # the way leads back to the parent: there is no better one
        elif message.to == self.me or search.steps >= _MOST_STEPS:
            self._next_contact(feed, search)
        else:
            self._ask(feed, search, message.to, search.steps + 1)
        return message.to

    def on_ok(self, sender: Address, message: JoinOk) -> bool:
        """A parent: take it, then leave the old one (proper rejoin, §4.4). Returns whether it was taken."""
        feed = self.feeds.get(message.feed)
        if feed is None or not self._expects(feed, sender, message):
            if feed is None or feed.parent is None or feed.parent.node != sender:
                self._out.send(sender, LeaveTree(message.feed))
            return False
        old, feed.search = feed.parent, None
        feed.parent = Parent(sender, message.session)
        feed.chain, feed.publisher_position = (sender, *message.chain), message.publisher
        feed.step = math.dist(self.position, message.position)
        feed.length = message.length + feed.step
        if old is not None and old.node != sender:
            self._out.send(old.node, LeaveTree(feed.topic))
        self._learn(feed, message.last)
        return True

    def _expects(self, feed: Feed, sender: Address, message: JoinOk) -> bool:
        """Whether this node asked the sender, in this session; or its parent did, who leaves."""
        if feed.leaving or message.child_session != self.session:
            return False
        if message.instead_of is not None:
            return feed.parent is not None and feed.parent.node == message.instead_of
        return feed.search is not None and feed.search.contact == sender

    def on_change_parent(self, sender: Address, message: ChangeParent) -> None:
        """Evicted, or the parent leaves: look for another one, from the named node on."""
        feed = self.feeds.get(message.feed)
        if feed is None or feed.parent is None or feed.parent.node != sender:
            return
        if not message.leaving:
            feed.parent, feed.skip_rejoin = None, True
        if not feed.leaving:
            self.join(feed, [message.to, *feed.chain[1:], feed.publisher])

    # Being a parent

    def on_join(self, now: float, sender: Address, message: Join) -> None:
        """Algorithm 2."""
        feed = self.feeds.get(message.feed)
        gone = feed is not None and (feed.drained_at is not None or (feed.leaving and feed.is_root))
        if feed is None or gone or not self.position:
            self._out.send(sender, JoinDeny(message.feed))
            return
        if message.periodic and message.steps == 0:
            feed.rejoins += 1
        if feed.leaving:
            self._out.send(sender, JoinForward(feed.topic, feed.parent.node if feed.parent else feed.publisher))
            return
        self.drop_silent_children(feed, now - self.config.silence_s)
        suspect = feed.children.get(message.failed) if message.failed is not None else None
        if message.failed is not None and suspect is not None and suspect.heard < now - self.config.timeout_s:
            self._forget_child(feed, message.failed)  # or the orphan would be sent back to it (Fig. 4c)
        answer = feed.receive_join(self.me, self.position, sender, message.position, self.config.children)
        if not isinstance(answer, Accept):
            self._out.send(sender, JoinForward(feed.topic, answer.to))
            return
        length = feed.length + math.dist(self.position, message.position)
        if message.periodic and length >= message.length and sender not in feed.children:
            self._out.send(sender, JoinDeny(feed.topic))  # no better parent than it has
            return
        place = feed.children.get(sender if answer.evicted is None else answer.evicted)
        feed.children[sender] = Child(message.position, message.session, now, place.guest_of if place else None)
        self._out.send(sender, self._welcome(feed, message.session))
        if answer.evicted is not None and answer.instead is not None:
            self._evict(feed, answer.evicted, answer.instead)
            self._evict_surplus(feed)

    def _evict(self, feed: Feed, node: Address, instead: Address) -> None:
        """Send a child to another parent (Fig. 4d)."""
        self._forget_child(feed, node)
        self._out.send(node, ChangeParent(feed.topic, instead))

    def _evict_surplus(self, feed: Feed) -> None:
        """Guests that stay have made it more children than there may be: the farthest goes, as in Fig. 4d."""
        while sum(child.guest_of is None for child in feed.children.values()) > self.config.children:
            self._evict(feed, *feed.farthest())

    def _forget_child(self, feed: Feed, node: Address) -> None:
        """It is no child any more; the guest that it brought has its place now (§4.4)."""
        self._settle_guests(feed, node)
        del feed.children[node]

    def _settle_guests(self, feed: Feed, host: Address) -> None:
        """Guests of this child are what it is: children, or guests of another one."""
        for child in feed.children.values():
            if child.guest_of == host:
                child.guest_of = feed.children[host].guest_of

    def _welcome(self, feed: Feed, session: int, instead_of: Address | None = None) -> JoinOk:
        assert feed.publisher_position is not None
        return JoinOk(
            *(feed.topic, self.session, feed.chain, feed.publisher_position, feed.last),
            *(session, instead_of, self.position, feed.length),
        )

    def on_adopt(self, now: float, sender: Address, message: Adopt) -> None:
        """A child that leaves hands one of its own children over (§4.4)."""
        feed = self.feeds.get(message.feed)
        if feed is None or feed.leaving or sender not in feed.children or feed.publisher_position is None:
            return
        self._settle_guests(feed, sender)  # if it wanted to leave before, and stayed
        feed.children[message.child] = Child(message.position, message.session, now, guest_of=sender)
        self._out.send(message.child, self._welcome(feed, message.session, instead_of=sender))
        self._evict_surplus(feed)

    def on_leave_tree(self, now: float, sender: Address, message: LeaveTree) -> None:
        """A child has another parent, or leaves."""
        feed = self.feeds.get(message.feed)
        if feed is None or sender not in feed.children:
            return
        self._forget_child(feed, sender)
        if feed.leaving and not feed.children:
            self.finish_leave(now, feed)

    def drop_silent_children(self, feed: Feed, before: float) -> None:
        """Children that were last heard of before this time have failed (§4.1)."""
        for node in [node for node, child in feed.children.items() if child.heard < before]:
            self._forget_child(feed, node)

    # Keeping in touch

    def about(self, now: float, child: Address, topics: Iterable[int]) -> tuple[About, ...]:
        """What a child's ping is answered with, of the feeds in which it is a child."""
        told = []
        for topic in topics:
            feed = self.feeds.get(topic)
            if feed is not None and child in feed.children:
                feed.children[child].heard = now
                told.append((topic, feed.chain, feed.last, feed.length))
        return tuple(told)

    def on_about(self, sender: Address, session: int, asked: Iterable[int], told: tuple[About, ...]) -> None:
        """A parent's answer; silence about a feed that was asked for means to be no child there."""
        answers = {about[0]: about for about in told}
        for topic in asked:
            feed = self.feeds.get(topic)
            if feed is None or feed.parent is None or feed.parent.node != sender:
                continue
            if topic not in answers or feed.parent.session != session:
                self.parent_lost(feed)
                continue
            _, chain, last, length = answers[topic]
            feed.chain, feed.length = (sender, *chain), length + feed.step
            self._learn(feed, last)

    # Leaving in good order (§4.4)

    def begin_leave(self, now: float, feed: Feed) -> None:
        """Hand the children on and serve them until they have other parents."""
        if feed.leaving:
            return
        feed.leaving, feed.search = True, None
        if not feed.children or feed.publisher_position is None:
            self.finish_leave(now, feed)
            return
        heir = min(feed.children, key=lambda node: feed.rank(node, feed.children[node].position))
        for node in feed.children:
            if node != heir:
                self._out.send(node, ChangeParent(feed.topic, heir, leaving=True))
        if feed.parent is not None:
            known = feed.children[heir]
            self._out.send(feed.parent.node, Adopt(feed.topic, heir, known.position, known.session))
        else:
            self._out.send(heir, ChangeParent(feed.topic, feed.publisher, leaving=True))
        self._out.timer(("leave", feed.topic), self.config.leave_s)

    def finish_leave(self, now: float, feed: Feed) -> None:
        """Out of the tree. What still comes is swallowed, until whoever missed the farewell has noticed the silence."""
        if feed.drained_at is not None:
            return
        if feed.parent is not None:
            self._out.send(feed.parent.node, LeaveTree(feed.topic))
        drained_s = 2 * self.config.silence_s
        feed.parent, feed.drained_at = None, now + drained_s
        feed.children.clear()
        self._out.timer(("drained", feed.topic), drained_s)

    # Updates (§4.1)

    def publish(self, feed: Feed, payload: bytes, number: int | None = None) -> int:
        """A new update of a feed that this node publishes; returns its number."""
        number = feed.last + 1 if number is None else number
        signature = self._signatures.sign(feed.topic, number, payload) if self._signatures else b""
        update = Update(feed.topic, number, payload, signature)
        feed.keep(update, self.config.cache_size)
        for child in feed.children:
            self._out.send(child, update)
        return number

    def on_update(self, sender: Address, update: Update, *, wanted: bool) -> None:
        """Keep it, push it on, hand it over; ask for what was missed before it."""
        feed = self.feeds.get(update.topic)
        if feed is None or feed.drained_at is not None:
            self._out.send(sender, LeaveTree(update.topic))
            return
        signatures = self._signatures
        if signatures and not signatures.verify(update.topic, update.sequence, update.payload, update.signature):
            self.refused += 1
            return
        before = feed.last
        if not feed.keep(update, self.config.cache_size):
            return
        pushed = Update(update.topic, update.sequence, update.payload, update.signature) if update.pulled else update
        for child in feed.children:
            if child != sender:
                self._out.send(child, pushed)
        if wanted:
            self._out.add(Deliver(update.topic, update.sequence, update.payload, sender, update.pulled))
        if self.config.recover_gaps and before and update.sequence > before + 1:
            other = feed.chain[1] if len(feed.chain) > 1 else sender  # the parent may have missed the same
            self._out.send(other, feed.pull(self.config.cache_size))

    def _learn(self, feed: Feed, last: int) -> None:
        """The parent knows of updates up to this one: pull what is missing, elsewhere if that was in vain."""
        new = last > feed.last
        feed.last = max(feed.last, last)
        if not feed.missing(self.config.cache_size):
            feed.asked = 0
        elif new or self.config.recover_gaps:
            ancestors = feed.chain or (feed.publisher,)
            self._out.send(ancestors[feed.asked % len(ancestors)], feed.pull(self.config.cache_size))
            feed.asked += 1

    def on_pull(self, sender: Address, message: Pull) -> None:
        """Somebody missed updates."""
        feed = self.feeds.get(message.feed)
        if feed is not None and feed.drained_at is None:
            for update in feed.answer(message):
                self._out.send(sender, update)

    # Several publishers (§2)

    def submit(self, topic: int, master: Address, payload: bytes) -> None:
        """Hand an update to the feed's master publisher, until it says that it has it."""
        self._submissions += 1
        key = topic, self.session * 1_000_000 + self._submissions
        self._submitted[key] = payload
        self.resubmit(master, key)

    def resubmit(self, master: Address, key: tuple[int, int]) -> None:
        """Send a submission, once more if it was not answered."""
        if key in self._submitted:
            self._out.send(master, Submit(*key, self._submitted[key]))
            self._out.timer(("submit", key), self.config.timeout_s)

    def on_submit(self, sender: Address, message: Submit, *, wanted: bool) -> None:
        """As the master publisher: publish it, once; a subscriber, too, if it wants its own feed."""
        feed = self.feeds.get(message.feed)
        if feed is None or not feed.is_root or not self.position:
            return
        if (sender, message.number) not in self._published:
            self._published[sender, message.number] = None
            if len(self._published) > 1_000:
                del self._published[next(iter(self._published))]
            number = self.publish(feed, message.payload)
            if wanted:
                self._out.add(Deliver(message.feed, number, message.payload, sender))
        self._out.send(sender, Submitted(message.feed, message.number))

    def on_submitted(self, message: Submitted) -> None:
        """The master has it."""
        self._submitted.pop((message.feed, message.number), None)
