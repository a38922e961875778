"""One peer of Scribe: a subscriber in the trees of its own topics, a forwarder in those that routes lead through.

Why trees have no cycles, and what holds while they change, is in `tree`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

import msgspec

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import (
    Address,
    Deliver,
    Effect,
    Effects,
    Finished,
    LinkDown,
    LinkUp,
    Peer,
    Send,
    SetTimer,
    World,
)
from grapevine.systems.scribe.config import ScribeConfig
from grapevine.systems.scribe.messages import Accept, Ack, Event, Heartbeat, Leave, Subscribe
from grapevine.systems.scribe.overlay import Overlay
from grapevine.systems.scribe.tree import Tree, Window

CLOCK_ERROR_S = 1e-6  # sums of seconds are not exact: a timer may fire this much before its time


class Join(msgspec.Struct, frozen=True):
    """A timer: Pastry's join is over, and the node subscribes to its topics."""


class Tick(msgspec.Struct, frozen=True):
    """A timer: the next heartbeats to children are due."""


class Watch(msgspec.Struct, frozen=True):
    """A timer: the neighbour may have been silent for too long."""

    neighbour: Address


class Answer(msgspec.Struct, frozen=True):
    """A timer: a subscription should have been answered by now."""

    topic: int
    question: int


class ScribePeer(Peer):
    """One session of a node. It shares the overlay with all others of the simulation."""

    def __init__(self, me: Address, config: ScribeConfig, world: World, overlay: Overlay) -> None:
        self.me, self.config = me, config
        self.subscriptions = {int(topic) for topic in world.workload.topics_of(me)}
        self.trees: dict[int, Tree] = {}
        self._world, self._overlay = world, overlay
        self._patience_s = config.heartbeat_s + config.timeout_s
        self._joined = False
        self._published: Counter[int] = Counter()  # events of the topics that this node publishes, so far
        self._windows: defaultdict[int, Window] = defaultdict(lambda: Window(config.window))
        self._silent_at: dict[Address, float] = {}  # neighbours, and when they will have been silent too long
        self._suspects: dict[Address, float] = {}  # who was silent for too long, and until when routes avoid them
        self._questions = 0
        self._routed_by: tuple[int, Collection[Address]] | None = None  # tables and suspects of the last look at routes

    def resume(self, before: ScribePeer) -> None:
        """Take over what a disk keeps between sessions: subscriptions, and which events were published and received."""
        self.subscriptions = set(before.subscriptions)
        self._published, self._windows = before._published, before._windows

    def start(self, now: float) -> Effects:
        self._overlay.here(now, self.me)
        return [SetTimer(Join(), self.config.join_s), SetTimer(Tick(), self.config.heartbeat_s)]

    def subscribe(self, now: float, topic: int) -> Effects:
        self.subscriptions.add(topic)
        return self._grow(now, topic) if self._joined else []

    def unsubscribe(self, now: float, topic: int) -> Effects:
        self.subscriptions.discard(topic)
        return self._prune(topic)

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        if not self.is_root(topic):
            publisher = self._world.publishers[topic]
            raise UsageError(f"node {self.me}: events of topic {topic} come from its publisher, node {publisher}")
        self._published[topic] += 1
        return self._pass_on(self.me, Event(topic, self._published[topic], payload))

    def leave(self, now: float) -> Effects:
        self._overlay.gone(self.me)
        farewell = [
            Send(neighbour, Leave(topic))
            for topic, tree in self.trees.items()
            for neighbour in dict.fromkeys([tree.parent, tree.asked, *tree.children])
            if neighbour is not None
        ]
        return [*farewell, Finished()]

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        self._suspects.pop(sender, None)
        if sender in self._silent_at:
            self._silent_at[sender] = now + self._patience_s
        match message:
            case Event():
                return [*self._confirm(sender, message.topic), *self._pass_on(sender, message)]
            case Heartbeat():
                return self._on_heartbeat(now, sender, message.topics)
            case Subscribe():
                return self._on_subscribe(now, sender, message.topic)
            case Accept():
                return self._confirm(sender, message.topic)
            case Leave():
                return self._part(now, sender, message.topic)
        return []  # an Ack says no more than that the child is there

    def on_timer(self, now: float, timer: Any) -> Effects:
        match timer:
            case Tick():
                return self._tick(now)
            case Watch():
                return self._watch(now, timer.neighbour)
            case Answer():
                return self._miss(now, timer)
            case Join():
                self._joined = True
                return [effect for topic in sorted(self.subscriptions) for effect in self._grow(now, topic)]
        return []

    # Trees: how they grow, carry events and shrink

    def is_root(self, topic: int) -> bool:
        """Whether this node publishes the topic."""
        return bool(self._world.publishers[topic] == self.me)

    def _grow(self, now: float, topic: int) -> list[Effect]:
        """Be in the topic's tree: look for a parent, unless the node is in it already."""
        if topic in self.trees:
            return []
        self.trees[topic] = Tree()
        return self._climb(now, topic)

    def _climb(self, now: float, topic: int, *, without: Collection[Address] = ()) -> list[Effect]:
        """Ask the next node on the route to the root to be the parent, unless it is that or has been asked.

        The old parent is kept until the new one has accepted; where there is no next hop, it is left.
        """
        if self.is_root(topic):
            return []
        tree, key = self.trees[topic], int(self._world.workload.node_ids[self._world.publishers[topic]])
        hop = self._overlay.next_hop(now, self.me, key, {*without, *self._avoided(now)})
        if hop is None and self._suspects:  # where all who are nearer to the root are suspects, one of them must do
            hop = self._overlay.next_hop(now, self.me, key, without)
        if hop == tree.asked and hop is not None:
            return []
        old, tree.asked = tree.parent, None
        if hop is None:  # the publisher is away, and nobody is nearer to it
            tree.parent = None
            return [] if old is None else [Send(old, Leave(topic))]
        return [] if hop == old else self._ask(now, topic, hop)

    def _ask(self, now: float, topic: int, neighbour: Address) -> list[Effect]:
        self._questions += 1
        tree = self.trees[topic]
        tree.asked, tree.question = neighbour, self._questions
        answer = SetTimer(Answer(topic, tree.question), self.config.timeout_s)
        return [*self._meet(now, neighbour), Send(neighbour, Subscribe(topic)), answer]

    def _miss(self, now: float, timer: Answer) -> list[Effect]:
        """A subscription has not been answered in time: its receiver is a suspect, and another route is tried."""
        tree = self.trees.get(timer.topic)
        if tree is None or tree.asked is None or tree.question != timer.question:
            return []
        self._suspects[tree.asked] = now + self._patience_s
        if tree.parent == tree.asked:
            tree.parent = None
        tree.asked = None
        return self._climb(now, timer.topic)

    def _on_subscribe(self, now: float, sender: Address, topic: int) -> list[Effect]:
        if not 0 <= topic < len(self._world.publishers):
            return []
        effects: list[Effect] = [*self._meet(now, sender), Send(sender, Accept(topic)), *self._grow(now, topic)]
        tree = self.trees[topic]
        tree.children[sender] = None
        if sender in (tree.parent, tree.asked):  # tables have changed: its route leads through this node now
            tree.parent = tree.asked = None
            effects += self._climb(now, topic, without=[sender])
        return effects

    def _confirm(self, sender: Address, topic: int) -> list[Effect]:
        """The sender acts as the parent in a tree: take it if it was asked, or tell it that it is none."""
        tree = self.trees.get(topic)
        if tree is not None:
            if sender == tree.asked:
                tree.parent, tree.asked = sender, None
                tree.children.pop(sender, None)
            if sender == tree.parent or (tree.parent is None and tree.asked is not None):
                return []  # without a parent, an old one that still sends is better than none
        return [Send(sender, Leave(topic))]

    def _pass_on(self, sender: Address, event: Event) -> list[Effect]:
        """Deliver an event that is new, and send it to all children."""
        if not self._windows[event.topic].is_new(event.sequence):
            return []
        effects: list[Effect] = []
        if event.topic in self.subscriptions:
            effects.append(Deliver(event.topic, event.sequence, event.payload, sender))
        if tree := self.trees.get(event.topic):
            effects += [Send(child, event) for child in tree.children if child != sender]
        return effects

    def _part(self, now: float, neighbour: Address, topic: int) -> list[Effect]:
        """The neighbour is neither child nor parent in a tree any more."""
        tree = self.trees.get(topic)
        if tree is None:
            return []
        tree.children.pop(neighbour, None)
        lost = neighbour in (tree.parent, tree.asked)
        tree.parent = None if tree.parent == neighbour else tree.parent
        tree.asked = None if tree.asked == neighbour else tree.asked
        return self._prune(topic) or (self._climb(now, topic) if lost and topic in self.trees else [])

    def _prune(self, topic: int) -> list[Effect]:
        """Leave the tree if this node does not subscribe and has no child in it."""
        tree = self.trees.get(topic)
        if tree is None or tree.children or topic in self.subscriptions:
            return []
        del self.trees[topic]
        above = dict.fromkeys([tree.parent, tree.asked])
        return [Send(neighbour, Leave(topic)) for neighbour in above if neighbour is not None]

    # Neighbours: who is there

    def _tick(self, now: float) -> list[Effect]:
        """Heartbeats to the children; new parents where tables have changed, or where there is none."""
        self._overlay.here(now, self.me)
        effects: list[Effect] = [SetTimer(Tick(), self.config.heartbeat_s)]
        topics: defaultdict[Address, list[int]] = defaultdict(list)
        for topic, tree in self.trees.items():
            for child in tree.children:
                topics[child].append(topic)
        effects += [Send(child, Heartbeat(tuple(shared))) for child, shared in topics.items()]
        tables = self._overlay.changes(now), self._avoided(now)
        for topic, tree in self.trees.items():
            if tables != self._routed_by or (tree.parent is None and tree.asked is None):
                effects += self._climb(now, topic)
        self._routed_by = tables
        return effects

    def _on_heartbeat(self, now: float, sender: Address, topics: tuple[int, ...]) -> list[Effect]:
        effects: list[Effect] = [Send(sender, Ack())]
        for topic in topics:
            effects += self._confirm(sender, topic)
        for topic, tree in self.trees.items():
            if tree.parent == sender and tree.asked is None and topic not in topics:  # it has forgotten this node
                effects += self._ask(now, topic, sender)
        return effects

    def _meet(self, now: float, neighbour: Address) -> list[Effect]:
        """The neighbour is to be watched from now on, if it is not yet."""
        known = neighbour in self._silent_at
        self._silent_at[neighbour] = now + self._patience_s
        return [] if known else [LinkUp(neighbour), SetTimer(Watch(neighbour), self._patience_s)]

    def _watch(self, now: float, neighbour: Address) -> list[Effect]:
        """Wait on for a neighbour that was heard; part from one that was not, or that no tree needs any more."""
        shared = [
            topic
            for topic, tree in self.trees.items()
            if neighbour in (tree.parent, tree.asked) or neighbour in tree.children
        ]
        left_s = self._silent_at[neighbour] - now
        if shared and left_s > CLOCK_ERROR_S:
            return [SetTimer(Watch(neighbour), left_s)]
        del self._silent_at[neighbour]
        effects: list[Effect] = [LinkDown(neighbour)]
        if shared:
            self._suspects[neighbour] = now + self._patience_s
        for topic in shared:  # it may be there after all, and would wait for this node
            effects += [Send(neighbour, Leave(topic)), *self._part(now, neighbour, topic)]
        return effects

    def _avoided(self, now: float) -> Collection[Address]:
        """Suspects that routes still have to avoid; the others are forgotten."""
        self._suspects = {suspect: until for suspect, until in self._suspects.items() if until > now}
        return frozenset(self._suspects)
