"""A Rappel node (§3 – §5): puts the parts together, and hands each message and each timer to the part that it is for.

`bootstrap` finds coordinates and joins the first trees, `pings` and `audits` keep the friends, `joining`, `children`
and `leaving` the trees, `updates` and `submissions` carry what is published. All of them work on one `Node`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from grapevine.systems.contracts.peer import Address, Effects, Finished, LinkDown, LinkUp, Peer
from grapevine.systems.rappel.audits import Audits
from grapevine.systems.rappel.bootstrap import Bootstrap
from grapevine.systems.rappel.children import Children
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Feed
from grapevine.systems.rappel.friends import Friendship
from grapevine.systems.rappel.joining import Joining
from grapevine.systems.rappel.leaving import Leaving
from grapevine.systems.rappel.messages import (
    Ack,
    Adopt,
    ChangeParent,
    FriendReply,
    FriendRequest,
    HereIAm,
    Join,
    JoinDeny,
    JoinForward,
    JoinOk,
    LeaveTree,
    Ping,
    Position,
    Profile,
    Pull,
    Submit,
    Submitted,
    Update,
    WhereAreYou,
    WhoAreYou,
)
from grapevine.systems.rappel.node import Memory, Node, Setup
from grapevine.systems.rappel.pings import Pings
from grapevine.systems.rappel.position import is_position
from grapevine.systems.rappel.submissions import Submissions
from grapevine.systems.rappel.updates import Updates

_POSITIONS: dict[type, tuple[str, ...]] = {  # coordinates in messages, to be checked before anybody counts with them
    HereIAm: ("position",),
    Profile: ("position",),
    Join: ("position",),
    Adopt: ("position",),
    JoinOk: ("publisher_position", "position"),
}


class RappelPeer(Peer):
    """One session of a node; `Setup` says who it is. What remains of it for the next one is in `memory()`."""

    def __init__(self, setup: Setup, config: RappelConfig) -> None:
        self.node = node = Node(setup, config)
        self.friendship = Friendship(config, node.me, node.mine)
        self.leaving = Leaving(node)
        self.updates = Updates(node, setup.signatures)
        self.submissions = Submissions(node, self.updates)
        self.joining = Joining(node, self.updates, self._covering)
        self.children = Children(node, self.leaving)
        self.bootstrap = Bootstrap(node, setup.landmarks, self.joining, self._covering)
        self.audits = Audits(node, self.friendship, self.bootstrap)
        self.pings = Pings(node, self.friendship, self.audits, self.joining, self.children)
        self.is_leaving = False  # in good order: `Finished` follows when no feed is left
        self._linked: set[Address] = set()
        self._handlers = self._message_handlers()
        self._timers = self._timer_handlers()

    def _message_handlers(self) -> dict[type, Callable[[float, Address, Any], None]]:
        return {
            HereIAm: self.bootstrap.on_here_i_am,
            WhereAreYou: self.bootstrap.on_where_are_you,
            Ping: self.pings.on_ping,
            Ack: self.pings.on_ack,
            WhoAreYou: self.audits.on_who_are_you,
            Profile: self.audits.on_profile,
            FriendRequest: self.audits.on_friend_request,
            FriendReply: self.audits.on_friend_reply,
            JoinDeny: lambda _, sender, message: self.joining.on_deny(sender, message),
            JoinForward: self._on_forward,
            JoinOk: self._on_ok,
            ChangeParent: lambda _, sender, message: self.joining.on_change_parent(sender, message),
            Join: self.children.on_join,
            Adopt: self.children.on_adopt,
            LeaveTree: self.children.on_leave_tree,
            Pull: lambda _, sender, message: self.updates.on_pull(sender, message),
            Update: lambda _, sender, message: self.updates.on_update(sender, message),
            Submit: lambda _, sender, message: self.submissions.on_submit(sender, message),
            Submitted: lambda _, __, message: self.submissions.on_submitted(message),
        }

    def _timer_handlers(self) -> dict[str, Callable[..., None]]:
        """By a timer's name, which is the timer or the first part of it; the handlers get the other parts."""
        return {
            "locate": self.bootstrap.on_locate_timer,
            "probed": self.bootstrap.on_probed_timer,
            "stagger": self.bootstrap.on_stagger_timer,
            "rejoin": self.bootstrap.on_rejoin_timer,
            "ping": self._on_ping_timer,
            "silence": self.pings.on_silence_timer,
            "audit": self.audits.on_audit_timer,
            "join": self._on_join_timer,
            "again": self._on_again_timer,
            "leave": self._on_leave_timer,
            "drained": self._on_drained_timer,
            "submit": lambda _, key: self.submissions.resubmit(key),
            "left": lambda _: None,  # only to look whether everything is done
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        self.bootstrap.start(now)
        return self.node.out.take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler, names = self._handlers.get(type(message)), _POSITIONS.get(type(message), ())
        if not all(is_position(getattr(message, name), self.config.position_size) for name in names):
            return []
        if handler is not None:
            handler(now, sender, message)
        return self.node.out.take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        name, *about = timer if isinstance(timer, tuple) else (timer,)
        if handler := self._timers.get(name):
            handler(now, *about)
        if self.is_leaving and all(feed.drained_at is not None for feed in self.feeds.values()):
            self.node.out.add(Finished())
        return self.node.out.take()

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        """The feed's publisher pushes the update down its tree; anybody else submits it to that one (§2)."""
        feed = self.feeds.get(topic)
        if feed is not None and feed.is_root:
            self.updates.publish(feed, payload, sequence)
        else:
            self.submissions.submit(topic, payload)
        return self.node.out.take()

    def subscribe(self, now: float, topic: int) -> Effects:
        if topic not in self.subscriptions:
            self.subscriptions.add(topic)
            self.node.subscriptions_changed()
            feed = self.node.open_feed(topic)
            feed.leaving, feed.drained_at = False, None
            self.bootstrap.begin_rejoins_of(topic)
            if self.position and feed.parent is None and not feed.is_root:
                self.joining.search_again(feed)
        return self.node.out.take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        if topic in self.subscriptions:
            self.subscriptions.discard(topic)
            self.bootstrap.stop_waiting(topic)
            self.node.subscriptions_changed()
            feed = self.feeds[topic]
            if not feed.is_root:
                self.leaving.begin(now, feed)
        return self.node.out.take()

    def found(self, topic: int) -> Effects:
        """This node publishes a feed from now on: it is the root of its tree, alone at first."""
        self.node.open_feed(topic, is_root=True)
        return self.node.out.take()

    def meet(self, now: float, node: Address) -> Effects:
        """Whoever that is becomes a candidate for a friend."""
        if node != self.me:
            self.friendship.hear_of((node,))
        return self.node.out.take()

    def on_unreachable(self, now: float, node: Address) -> Effects:
        """A friend or parent has failed, without the wait for a ping's time-out (§3.3, §4.1)."""
        self.pings.on_unreachable(node)
        return self.node.out.take()

    def leave(self, now: float) -> Effects:
        """Leave all trees in good order (§4.4)."""
        self.is_leaving = True
        self.bootstrap.stop_waiting(*self.feeds)
        for feed in self.feeds.values():
            self.leaving.begin(now, feed)
        self.node.out.timer("left", 0.0)
        return self.node.out.take()

    # What the host asks

    def carried(self, now: float) -> Collection[int]:
        return [topic for topic, feed in self.feeds.items() if feed.drained_at is None]

    def partners(self, now: float, topic: int) -> Collection[Address]:
        """Parent and children in the feed's tree."""
        feed = self.feeds.get(topic)
        if feed is None or feed.drained_at is not None:
            return ()
        return [*([feed.parent.node] if feed.parent else []), *feed.children]

    def has_path(self, now: float, topic: int) -> bool:
        """Who publishes a feed needs nobody: those who join it pull what they missed."""
        feed = self.feeds.get(topic)
        return feed is not None and feed.is_root and bool(self.position)

    def roles(self) -> dict[Address, list[str]]:
        """Friends, fans, and once per feed parents and children."""
        roles: dict[Address, list[str]] = {}
        for node in self.friendship.friends:
            roles.setdefault(node, []).append("friend")
        for node in self.friendship.fans:
            roles.setdefault(node, []).append("fan")
        for feed in self.feeds.values():
            if feed.parent is not None:
                roles.setdefault(feed.parent.node, []).append("parent")
            for node in feed.children:
                roles.setdefault(node, []).append("child")
        return roles

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        return self.node.memory(self.friendship.friends)

    @property
    def me(self) -> Address:
        """The address by which others know the node."""
        return self.node.me

    @property
    def config(self) -> RappelConfig:
        """The parameters, those of all nodes."""
        return self.node.config

    @property
    def session(self) -> int:
        """The number of this session, from 1 on."""
        return self.node.session

    @property
    def position(self) -> Position:
        """Network coordinates; empty until they are known."""
        return self.node.position

    @property
    def subscriptions(self) -> set[int]:
        """The feeds that the application wants."""
        return self.node.subscriptions

    @property
    def feeds(self) -> dict[int, Feed]:
        """The node's part in each of the trees that it is in, or has only just left."""
        return self.node.feeds

    def is_member(self, topic: int) -> bool:
        """Whether updates of this feed may come: a subscriber, its publisher, or one that leaves in good order."""
        return topic in self.feeds

    # What concerns two parts

    def _covering(self, topic: int) -> list[Address]:
        return self.friendship.covering(self.node.bits_of(topic))

    def _on_forward(self, now: float, sender: Address, message: JoinForward) -> None:
        """On its way through a tree a newcomer gets to know others (§5.2)."""
        named = self.joining.on_forward(sender, message)
        if named is not None:
            self.friendship.hear_of((sender, named))

    def _on_ok(self, now: float, sender: Address, message: JoinOk) -> None:
        if self.joining.on_ok(sender, message):
            self.friendship.hear_of((sender,))

    def _on_ping_timer(self, now: float) -> None:
        self.pings.on_ping_timer(now)
        self._announce_links()

    def _announce_links(self) -> None:
        linked = set(self.roles())
        for node in sorted(self._linked - linked):
            self.node.out.add(LinkDown(node))
        for node in sorted(linked - self._linked):
            self.node.out.add(LinkUp(node))
        self._linked = linked

    # Timers of feeds, which may be gone by then

    def _on_join_timer(self, now: float, topic: int, question: int) -> None:
        if feed := self.feeds.get(topic):
            self.joining.timed_out(feed, question)

    def _on_again_timer(self, now: float, topic: int, question: int) -> None:
        if feed := self.feeds.get(topic):
            self.joining.search_again(feed)

    def _on_leave_timer(self, now: float, topic: int) -> None:
        feed = self.feeds.get(topic)
        if feed is not None and feed.leaving:
            self.leaving.finish(now, feed)

    def _on_drained_timer(self, now: float, topic: int) -> None:
        """Nobody takes this node for a member of the tree any more; unless it has joined again since."""
        feed = self.feeds.get(topic)
        if feed is not None and feed.drained_at is not None and feed.drained_at <= now and not self.is_leaving:
            self.node.close_feed(topic)
