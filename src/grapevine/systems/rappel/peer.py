"""A Rappel node: finds its coordinates, then friends, and through them the trees of its feeds (§3 – §5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from grapevine.systems.contracts.peer import Address, Effects, Finished, LinkDown, LinkUp, Peer
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Feed
from grapevine.systems.rappel.friends import Friendship, Known
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
    Version,
    WhereAreYou,
    WhoAreYou,
)
from grapevine.systems.rappel.outbox import Outbox
from grapevine.systems.rappel.position import Locating, is_place
from grapevine.systems.rappel.trees import Signatures, Trees

_LANDMARK_ERROR = 0.5  # ours: of a place that was itself measured, half as sure as one can be

_PLACES: dict[type, str] = {
    HereIAm: "position",
    Profile: "position",
    Join: "position",
    Adopt: "position",
    JoinOk: "publisher",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node keeps between two sessions."""

    session: int = 0
    friends: tuple[Address, ...] = ()  # stale by then (§5.3)
    updates: dict[int, tuple[int, dict[int, Update]]] = field(default_factory=dict)  # by feed: the last, the cache
    subscriptions: frozenset[int] | None = None  # as they were at its end; None before the first session
    position: Position = ()  # of a publisher: its children's places depend on it, so it keeps it (ours)


class RappelPeer(Peer):
    """One session of a node."""

    def __init__(
        self,
        me: Address,
        config: RappelConfig,
        *,
        subscriptions: Iterable[int],
        published: Iterable[int],
        publisher_of: Callable[[int], Address],
        key_of: Callable[[int], str] = str,
        landmarks: Sequence[Address],
        random: Random,
        memory: Memory | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        memory = memory or Memory()
        self.me, self.config, self.session = me, config, memory.session + 1
        self.subscriptions = set(subscriptions)
        self.leaving = False
        self._out, self._random, self._memory = Outbox(), random, memory
        self._updates = dict(memory.updates)
        self._publisher_of, self._key_of = publisher_of, key_of
        self._bloom_version = 1
        mine = Known(self.version, bloom.bloom_of(key_of(topic) for topic in self.subscriptions), memory.position)
        self.friendship = Friendship(config, me, mine)
        self.trees = Trees(config, me, self.session, self._out, random, self._covering, signatures)
        for topic in published:
            self._open(topic, root=True)
        for topic in sorted(self.subscriptions):
            self._open(topic)
        self._locating = Locating(config, landmarks, random, self._out)
        self._stagger: list[int] = []  # feeds that still have to be joined (§5.2)
        self._staggered = 0
        self._probed: set[Address] = set()  # stale friends that have not answered (§5.3)
        self._rejoining = False
        self._rejoin_timers: set[int] = set()  # feeds that have one
        self._auditing: Address | None = None  # who was asked for its profile, or to be a friend
        self._repeats = 0  # of this period's audit
        self._pinged: dict[Address, Ping] = {}  # who has not answered yet, and what it was asked
        self._linked: set[Address] = set()
        self._handlers: dict[type, Callable[[float, Address, Any], None]] = {
            Ping: self._on_ping,
            Ack: self._on_ack,
            WhoAreYou: self._on_who_are_you,
            Profile: self._on_profile,
            FriendRequest: self._on_friend_request,
            FriendReply: self._on_friend_reply,
            HereIAm: self._on_here_i_am,
            WhereAreYou: self._on_where_are_you,
            Join: self.trees.on_join,
            JoinDeny: lambda _, sender, message: self.trees.on_deny(sender, message),
            JoinForward: self._on_forward,
            JoinOk: self._on_ok,
            ChangeParent: lambda _, sender, message: self.trees.on_change_parent(sender, message),
            Adopt: self.trees.on_adopt,
            LeaveTree: self.trees.on_leave_tree,
            Pull: lambda _, sender, message: self.trees.on_pull(sender, message),
            Update: self._on_update,
            Submit: self._on_submit,
            Submitted: lambda _, __, message: self.trees.on_submitted(message),
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        if self._memory.position:
            self._located(now, self._memory.position)
        else:
            self._locating.ask(now)
        return self._out.take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler, place = self._handlers.get(type(message)), _PLACES.get(type(message))
        if place is not None and not is_place(getattr(message, place), self.config.dimensions):
            return []
        if handler is not None:
            handler(now, sender, message)
        return self._out.take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        name, *about = timer if isinstance(timer, tuple) else (timer,)
        if name in ("join", "again", "rejoin", "leave", "drained"):
            self._on_feed_timer(now, name, *about)
        elif handler := getattr(self, f"_on_{name}_timer", None):
            handler(now, *about)
        if self.leaving and all(feed.drained_at is not None for feed in self.trees.feeds.values()):
            self._out.add(Finished())
        return self._out.take()

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        feed = self.trees.feeds.get(topic)
        if feed is not None and feed.is_root:
            self.trees.publish(feed, payload, sequence)
        else:
            self.trees.submit(topic, self._publisher_of(topic), payload)
        return self._out.take()

    def subscribe(self, now: float, topic: int) -> Effects:
        if topic not in self.subscriptions:
            self.subscriptions.add(topic)
            self._interests_changed()
            feed = self._open(topic)
            feed.leaving, feed.drained_at = False, None
            if self._rejoining:
                self._begin_rejoin(topic)
            if self.position and feed.parent is None and not feed.is_root:
                self.trees.search_again(feed)
        return self._out.take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        if topic in self.subscriptions:
            self.subscriptions.discard(topic)
            self._stagger = [waiting for waiting in self._stagger if waiting != topic]
            self._interests_changed()
            feed = self.trees.feeds[topic]
            if not feed.is_root:
                self.trees.begin_leave(now, feed)
        return self._out.take()

    def found(self, topic: int) -> Effects:
        """This node publishes a feed from now on."""
        self._open(topic, root=True)
        return self._out.take()

    def meet(self, now: float, node: Address) -> Effects:
        """Somebody of the network: a candidate for a friend, whoever that may be."""
        if node != self.me:
            self.friendship.hear_of((node,))
        return self._out.take()

    def on_unreachable(self, now: float, node: Address) -> Effects:
        """What silence would show later (§3.3, §4.1)."""
        if node in self.friendship.friends or any(feed.is_child_of(node) for feed in self.trees.feeds.values()):
            self._has_failed(node, [t for t, feed in self.trees.feeds.items() if feed.is_child_of(node)])
        self._pinged.pop(node, None)
        return self._out.take()

    def carried(self, now: float) -> Collection[int]:
        return [topic for topic, feed in self.trees.feeds.items() if feed.drained_at is None]

    def partners(self, now: float, topic: int) -> Collection[Address]:
        feed = self.trees.feeds.get(topic)
        if feed is None or feed.drained_at is not None:
            return ()
        return [*([feed.parent.node] if feed.parent else []), *feed.children]

    def has_path(self, now: float, topic: int) -> bool:
        """Who publishes a feed needs nobody: those who join it pull what they missed."""
        feed = self.trees.feeds.get(topic)
        return feed is not None and feed.is_root and bool(self.position)

    def leave(self, now: float) -> Effects:
        self.leaving, self._stagger = True, []
        for feed in self.trees.feeds.values():
            self.trees.begin_leave(now, feed)
        self._out.timer("left", 0.0)
        return self._out.take()

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        kept = {topic: (feed.last, feed.cache) for topic, feed in self.trees.feeds.items()}
        is_publisher = any(feed.is_root for feed in self.trees.feeds.values())
        friends = tuple(self.friendship.friends) or self._memory.friends
        position = self.position if is_publisher else ()
        return Memory(self.session, friends, self._updates | kept, frozenset(self.subscriptions), position)

    @property
    def version(self) -> Version:
        """Of the coordinates, which are those of the session, and of the Bloom filter."""
        return self.session, self._bloom_version

    @property
    def position(self) -> Position:
        """Network coordinates; empty until they are known."""
        return self.friendship.mine.position

    def is_member(self, topic: int) -> bool:
        """Whether updates of this feed may come: a subscriber, its publisher, or one that leaves in good order."""
        return topic in self.trees.feeds

    def _interests_changed(self) -> None:
        self._bloom_version += 1
        mine = self.friendship.mine
        mine.bloom = bloom.bloom_of(self._key_of(topic) for topic in self.subscriptions)
        mine.version = self.version

    def _open(self, topic: int, *, root: bool = False) -> Feed:
        if topic not in self.trees.feeds:
            publisher = self._publisher_of(topic)
            feed = Feed(topic, publisher, root or publisher == self.me)  # who subscribes to its own feed is its root
            if feed.is_root:
                feed.publisher_position = self.position or None  # until it has one, it can take no children
            if topic in self._updates:
                feed.last, cache = self._updates[topic]
                feed.cache = dict(cache)
            self.trees.feeds[topic] = feed
        return self.trees.feeds[topic]

    def _covering(self, topic: int) -> list[Address]:
        return self.friendship.covering(bloom.mask(self._key_of(topic)))

    # Coordinates, then a session (§5, §6.1.4)

    def _on_locate_timer(self, now: float) -> None:
        position = self._locating.ask(now)
        if position is not None:
            self._located(now, position)

    def _on_here_i_am(self, now: float, sender: Address, message: HereIAm) -> None:
        self._locating.hear(now, sender, message)

    def _on_where_are_you(self, now: float, sender: Address, message: WhereAreYou) -> None:
        """Live networks have no servers: whoever knows its place is a landmark to those who begin with it."""
        if self.position:
            self._out.send(sender, HereIAm(message.number, self.position, _LANDMARK_ERROR))

    def _located(self, now: float, position: Position) -> None:
        self.friendship.mine.position = self.trees.position = position
        for topic, feed in sorted(self.trees.feeds.items()):
            if feed.is_root:
                feed.publisher_position = position
            elif not feed.leaving:
                self._stagger.append(topic)
        self._random.shuffle(self._stagger)
        config = self.config
        self._out.timer("ping", self._random.random() * config.ping_s)
        self._out.timer("audit", self._random.random() * (config.virgin_audit_s if self._stagger else config.audit_s))
        if self._memory.friends:
            self._probed = set(self._memory.friends)
            for node in self._memory.friends:
                self._out.send(node, WhoAreYou())
            self._out.timer("probed", config.timeout_s)
        else:
            self._on_stagger_timer(now)

    def _on_probed_timer(self, now: float) -> None:
        """Stale friends have had their time (§5.3): what they do not cover is joined step by step."""
        self._probed.clear()
        self._on_stagger_timer(now)

    def _join_covered(self) -> None:
        """Join the feeds that friends cover (§5.1)."""
        waiting = []
        for topic in self._stagger:
            friends = self._covering(topic)
            if friends:
                feed = self.trees.feeds[topic]
                self.trees.join(feed, [*friends, feed.publisher])
            else:
                waiting.append(topic)
        self._stagger = waiting
        self._begin_rejoins()

    def _on_stagger_timer(self, now: float) -> None:
        """Covered feeds at once, one of the others at its publisher; after the twelfth of them all (§5.2)."""
        self._join_covered()
        count = 1 if self._staggered < self.config.staggered_joins else len(self._stagger)
        for topic in self._stagger[:count]:
            feed = self.trees.feeds[topic]
            self.trees.join(feed, [feed.publisher])
        self._stagger = self._stagger[count:]
        self._staggered += 1
        if self._stagger:
            self._out.timer("stagger", self.config.stagger_s)
        self._begin_rejoins()

    def _begin_rejoins(self) -> None:
        """Once all feeds are joined, or on their way, they are rejoined from time to time (§5.2)."""
        if not self._stagger and not self._rejoining:
            self._rejoining = True
            for topic in self.trees.feeds:
                self._begin_rejoin(topic)

    def _begin_rejoin(self, topic: int) -> None:
        if topic not in self._rejoin_timers:
            self._rejoin_timers.add(topic)
            self._out.timer(("rejoin", topic), self._random.random() * self.config.rejoin_s)

    # Pings (§3.3, §4.1)

    def _on_ping_timer(self, now: float) -> None:
        friends = tuple(self.friendship.friends)
        parents: dict[Address, list[int]] = {}
        for topic, feed in self.trees.feeds.items():
            if feed.parent is not None:
                parents.setdefault(feed.parent.node, []).append(topic)
        self._pinged = {}
        for node in {**self.friendship.friends, **parents}:
            feeds = tuple(parents.get(node, ()))
            self._pinged[node] = Ping(self.version, node in self.friendship.friends, feeds, friends)
            self._out.send(node, self._pinged[node])
        self._out.timer("ping", self.config.ping_s)
        self._out.timer("silence", self.config.timeout_s)
        self._announce_links()

    def _on_silence_timer(self, now: float) -> None:
        """Who has not answered has failed; so have fans and children that no longer ping."""
        silent, self._pinged = self._pinged, {}
        for node, ping in silent.items():
            self._has_failed(node, ping.feeds)
        before = now - self.config.silence_s
        self.friendship.drop_silent_fans(before)
        for feed in self.trees.feeds.values():
            self.trees.drop_silent_children(feed, before)

    def _has_failed(self, node: Address, feeds: Iterable[int]) -> None:
        self.friendship.forget(node)
        if node in self.friendship.friends:
            self.friendship.lose(node)
            self._audit()
        for topic in feeds:
            feed = self.trees.feeds.get(topic)
            if feed is not None and feed.is_child_of(node):
                self.trees.parent_lost(feed, silent=True)

    def _on_ping(self, now: float, sender: Address, message: Ping) -> None:
        friendship = self.friendship
        fan = False
        if message.fan:
            fan = friendship.accept_fan(sender, now)
            friendship.hear_of((sender, *message.friends))
        else:
            friendship.fans.pop(sender, None)
            friendship.hear_of(message.friends)
        told = self.trees.about(now, sender, message.feeds) if message.feeds else ()
        self._out.send(sender, Ack(self.version, fan, tuple(friendship.friends), told))

    def _on_ack(self, now: float, sender: Address, message: Ack) -> None:
        asked = self._pinged.pop(sender, None)
        friendship = self.friendship
        known = friendship.friends.get(sender)
        if known is not None:
            if asked is not None and asked.fan and not message.fan:
                friendship.lose(sender)
            elif message.version > known.version:
                self._out.send(sender, WhoAreYou())
        friendship.hear_of(message.friends)
        if asked is not None and asked.feeds:
            self.trees.on_about(sender, message.version[0], asked.feeds, message.feeds)

    # Audits (§3.4)

    def _on_audit_timer(self, now: float) -> None:
        if self._auditing is not None:
            self.friendship.forget(self._auditing)  # it has not answered since the last audit
            self._auditing = None
        self._repeats = 0
        self._audit()
        self._out.timer("audit", self.config.virgin_audit_s if self._stagger else self.config.audit_s)

    def _audit(self) -> None:
        """Look at the candidate with most votes."""
        node = self.friendship.next_candidate()
        if node is None:
            return
        self._auditing = node
        known = self.friendship.candidates[node].known
        if known is None:
            self._out.send(node, WhoAreYou())
        else:
            self._consider(node, known)

    def _consider(self, node: Address, known: Known) -> None:
        welcome, _ = self.friendship.victim(known)
        if welcome:
            self._out.send(node, FriendRequest(self.version))
        else:
            self._auditing = None

    def _on_who_are_you(self, now: float, sender: Address, message: WhoAreYou) -> None:
        mine = self.friendship.mine
        if mine.position:
            self._out.send(sender, Profile(self.version, bloom.to_bytes(mine.bloom), mine.position))

    def _on_profile(self, now: float, sender: Address, message: Profile) -> None:
        known = Known.of(message)
        friendship = self.friendship
        if sender in friendship.friends:
            friendship.friends[sender] = known
        elif sender in self._probed:
            self._probed.discard(sender)
            friendship.hear_of((sender,))
            friendship.candidates[sender].known = known
            self._auditing = sender
            self._consider(sender, known)
        elif sender in friendship.candidates:
            friendship.candidates[sender].known = known
            if sender == self._auditing:
                self._consider(sender, known)

    def _on_friend_request(self, now: float, sender: Address, message: FriendRequest) -> None:
        self.friendship.drop_silent_fans(now - self.config.silence_s)
        accepted = bool(self.position) and self.friendship.accept_fan(sender, now)
        self._out.send(sender, FriendReply(accepted, self.version, tuple(self.friendship.friends)))

    def _on_friend_reply(self, now: float, sender: Address, message: FriendReply) -> None:
        friendship = self.friendship
        if sender == self._auditing:
            self._auditing = None
        candidate = friendship.candidates.get(sender)
        friendship.hear_of(message.friends)
        if message.accepted and candidate is not None and candidate.known is not None:
            welcome, victim = friendship.victim(candidate.known)
            if welcome:
                friendship.befriend(sender, candidate.known, victim)
                if self._stagger:
                    self._join_covered()
        elif not message.accepted and not friendship.is_full and self._repeats < self.config.friends:
            self._repeats += 1
            self._audit()

    # Trees (§4)

    def _on_forward(self, now: float, sender: Address, message: JoinForward) -> None:
        """On its way through a tree a newcomer gets to know others (§5.2)."""
        asked = self.trees.on_forward(sender, message)
        if asked is not None:
            self.friendship.hear_of((sender, asked))

    def _on_ok(self, now: float, sender: Address, message: JoinOk) -> None:
        if self.trees.on_ok(sender, message):
            self.friendship.hear_of((sender,))

    def _on_update(self, now: float, sender: Address, message: Update) -> None:
        self.trees.on_update(sender, message, wanted=message.topic in self.subscriptions)

    def _on_submit(self, now: float, sender: Address, message: Submit) -> None:
        self.trees.on_submit(sender, message, wanted=message.feed in self.subscriptions)

    def _on_feed_timer(self, now: float, name: str, topic: int, number: int = 0) -> None:
        feed = self.trees.feeds.get(topic)
        if feed is None:
            if name == "rejoin":
                self._rejoin_timers.discard(topic)
            return
        if name == "join":
            self.trees.timed_out(feed, number)
        elif name == "again":
            self.trees.search_again(feed)
        elif name == "rejoin":
            self.trees.rejoin(feed)
            self._out.timer(("rejoin", topic), self.config.rejoin_s)
        elif name == "leave" and feed.leaving:
            self.trees.finish_leave(now, feed)
        elif name == "drained" and feed.drained_at is not None and feed.drained_at <= now and not self.leaving:
            self._updates[topic] = feed.last, feed.cache
            del self.trees.feeds[topic]

    def _on_submit_timer(self, now: float, key: tuple[int, int]) -> None:
        self.trees.resubmit(self._publisher_of(key[0]), key)

    def _on_left_timer(self, now: float) -> None:
        """Only to look whether everything is done."""

    # Neighbours

    def roles(self) -> dict[Address, list[str]]:
        roles: dict[Address, list[str]] = {}
        for node in self.friendship.friends:
            roles.setdefault(node, []).append("friend")
        for node in self.friendship.fans:
            roles.setdefault(node, []).append("fan")
        for feed in self.trees.feeds.values():
            if feed.parent is not None:
                roles.setdefault(feed.parent.node, []).append("parent")
            for node in feed.children:
                roles.setdefault(node, []).append("child")
        return roles

    def _announce_links(self) -> None:
        linked = set(self.roles())
        for node in sorted(self._linked - linked):
            self._out.add(LinkDown(node))
        for node in sorted(linked - self._linked):
            self._out.add(LinkUp(node))
        self._linked = linked
