"""Payload once: eager and lazy links per topic, as in Plumtree (Leitão, Pereira & Rodrigues, SRDS 2007), at one node.

For sans-IO peers. An overlay says over which links a topic's events are exchanged, and which of these belong to a tree
to begin with (`Edges`); a flooding overlay calls all of them so. Events go over **eager** links at once, and over
**lazy** ones only their ids, some at a time.

1. An event that came before: the link that brought it is lazy from now on (`Prune` tells the other end).
2. An id whose event has not come after `graft_s`: the link that brought the id is eager again, and the event is asked
   for (`Graft`). Where several have told the id, the next one is asked after another `graft_s`.
3. An event whose id came over a lazy link by `shortcut_hops` hops shorter than the event itself did over an eager one:
   the two links change their places (§3.7 of the paper).

Claims. While links rest, and none is asked twice for an event, every event that reaches one of some nodes that links
connect reaches all of them: a node that has an event tells each neighbour the event or its id. After a first event has
come by all links of a circle, one of these is lazy: what remains eager is a tree, and every node gets a payload once.
What a node decided about a link counts as long as the overlay says of it what it said then; when a link becomes, or no
longer is, part of its tree, the overlay's word counts again.

Everything that a neighbour may send is bounded: ids that are waited for, events that are kept for those who ask.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

MOST_KEPT = 1_024  # events that a neighbour may still ask for
MOST_KEPT_BYTES = 4 << 20
MOST_MISSING = 10_000  # events of which only ids are known
MOST_BEARERS = 4  # who have told the same id
MOST_IDS = 256  # of a message that are read, or sent in one
MOST_DECISIONS = 100_000  # links of topics about which the node has decided otherwise than the overlay

Edges = Callable[[int], Mapping[int, bool]]  # of a topic: with whom events are exchanged, and whether in its tree


class Name(NamedTuple):
    """Which event it is."""

    topic: int
    publisher: int
    sequence: int


Payload = TypeVar("Payload")


@dataclass(slots=True)
class Actions(Generic[Payload]):
    """What the peer has to send now, by receiver."""

    events: list[tuple[int, Payload]] = field(default_factory=list)
    prunes: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # topics
    grafts: dict[int, list[Name]] = field(default_factory=lambda: defaultdict(list))
    joins: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # topics: a graft of no event
    ids: dict[int, list[tuple[Name, int]]] = field(default_factory=dict)  # names and hops


class _Kept(NamedTuple, Generic[Payload]):
    event: Payload
    hops: int
    size: int
    sender: int | None


@dataclass(slots=True)
class _Missing:
    bearers: list[int]  # who have told the id, and were not asked yet
    ask_at: float


class LazyPush(Generic[Payload]):
    """One node's part in it. Times are in the peer's clock; `due` says when `expire` is to be called."""

    def __init__(self, edges: Edges, *, ids_s: float, graft_s: float, shortcut_hops: int) -> None:
        self._edges, self._ids_s, self._graft_s, self._shortcut_hops = edges, ids_s, graft_s, shortcut_hops
        self._decided: OrderedDict[tuple[int, int], tuple[bool, bool]] = OrderedDict()  # the overlay's word, and ours
        self._kept: OrderedDict[Name, _Kept[Payload]] = OrderedDict()
        self._kept_bytes = 0
        self._missing: OrderedDict[Name, _Missing] = OrderedDict()
        self._ids: defaultdict[int, dict[Name, int]] = defaultdict(dict)  # to be told, with hops, by receiver
        self._ids_at = 0.0  # when they are

    def is_eager(self, topic: int, node: int, in_tree: bool) -> bool:
        """Whether a link, of which the overlay says so, carries the topic's events."""
        said, ours = self._decided.get((topic, node), (in_tree, in_tree))
        return ours if said == in_tree else in_tree

    def _decide(self, topic: int, node: int, eager: bool) -> None:
        in_tree = self._edges(topic).get(node)
        self._decided.pop((topic, node), None)
        if in_tree is not None and in_tree != eager:
            self._decided[topic, node] = in_tree, eager
            if len(self._decided) > MOST_DECISIONS:
                self._decided.popitem(last=False)

    def forget(self, node: int) -> None:
        """The neighbour is gone."""
        self._ids.pop(node, None)
        for key in [key for key in self._decided if key[1] == node]:
            del self._decided[key]

    # Events

    def publish(self, now: float, name: Name, event: Payload, size: int) -> Actions[Payload]:
        """This node publishes an event."""
        return self._pass_on(now, name, _Kept(event, 0, size, None))

    def take(self, now: float, name: Name, event: Payload, hops: int, size: int, sender: int) -> Actions[Payload]:
        """A new event came from a neighbour, or a stranger, after so many hops; `event` is what is to be passed on."""
        missing = self._missing.pop(name, None)
        self._decide_if_linked(name.topic, sender, eager=True)
        found = self._pass_on(now, name, _Kept(event, hops, size, sender))
        for bearer in missing.bearers if missing else ():
            self._ids.get(bearer, {}).pop(name, None)  # it has the event
        return found

    def again(self, name: Name, sender: int) -> Actions[Payload]:
        """An event that the node has had came once more; from whom it was new, that is a message that was doubled."""
        found: Actions[Payload] = Actions()
        kept = self._kept.get(name)
        if kept is None or kept.sender != sender:
            self._decide_if_linked(name.topic, sender, eager=False)
            found.prunes[sender].add(name.topic)
        return found

    def _decide_if_linked(self, topic: int, node: int, *, eager: bool) -> None:
        if node in self._edges(topic):
            self._decide(topic, node, eager)

    def _pass_on(self, now: float, name: Name, kept: _Kept[Payload]) -> Actions[Payload]:
        found: Actions[Payload] = Actions()
        for node, in_tree in self._edges(name.topic).items():
            if node == kept.sender:
                continue
            if self.is_eager(name.topic, node, in_tree):
                found.events.append((node, kept.event))
            else:
                self._announce(now, node, name, kept.hops)
        self._keep(name, kept)
        return found

    def _keep(self, name: Name, kept: _Kept[Payload]) -> None:
        self._kept[name] = kept
        self._kept_bytes += kept.size
        while len(self._kept) > MOST_KEPT or (self._kept_bytes > MOST_KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= self._kept.popitem(last=False)[1].size

    def _announce(self, now: float, node: int, name: Name, hops: int) -> None:
        if not any(self._ids.values()):
            self._ids_at = now + self._ids_s
        ids = self._ids[node]
        ids[name] = hops
        if len(ids) > MOST_KEPT:
            del ids[next(iter(ids))]

    # What neighbours say

    def on_ids(
        self, now: float, sender: int, ids: Iterable[tuple[Name, int]], had: Callable[[Name], bool]
    ) -> Actions[Payload]:
        """A neighbour has these events; `had` says whether this node has had one."""
        found: Actions[Payload] = Actions()
        for name, hops in list(ids)[:MOST_IDS]:
            if sender not in self._edges(name.topic):
                continue
            if had(name):
                self._shorten(name, hops, sender, found)
                continue
            missing = self._missing.setdefault(name, _Missing([], now + self._graft_s))
            if sender not in missing.bearers and len(missing.bearers) < MOST_BEARERS:
                missing.bearers.append(sender)
            if len(self._missing) > MOST_MISSING:
                self._missing.popitem(last=False)
        return found

    def _shorten(self, name: Name, hops: int, sender: int, found: Actions[Payload]) -> None:
        """An id came by a shorter way than its event: use that from now on."""
        kept = self._kept.get(name)
        if kept is None or kept.sender is None or hops + 1 + self._shortcut_hops > kept.hops:
            return
        edges = self._edges(name.topic)
        if kept.sender in edges and kept.sender != sender and not self.is_eager(name.topic, sender, edges[sender]):
            self._decide(name.topic, sender, True)
            self._decide(name.topic, kept.sender, False)
            found.prunes[kept.sender].add(name.topic)
            found.joins[sender].add(name.topic)
            self._kept[name] = kept._replace(sender=sender, hops=hops + 1)  # or a second id would do it once more

    def on_prune(self, topics: Iterable[int], sender: int) -> None:
        """A neighbour gets these topics' events from somebody else."""
        for topic in list(topics)[:MOST_IDS]:
            self._decide_if_linked(topic, sender, eager=False)

    def on_graft(self, names: Iterable[Name], topics: Iterable[int], sender: int) -> Actions[Payload]:
        """A neighbour lacks these events, or wants these topics: the link is eager again, and it gets what is kept."""
        found: Actions[Payload] = Actions()
        for topic in list(topics)[:MOST_IDS]:
            self._decide_if_linked(topic, sender, eager=True)
        for name in list(names)[:MOST_IDS]:
            if sender in self._edges(name.topic):
                self._decide(name.topic, sender, True)
                kept = self._kept.get(name)
                if kept is not None and kept.sender != sender:
                    found.events.append((sender, kept.event))
        return found

    # Time

    def due(self) -> float | None:
        """When there is something to do next; None: nothing is."""
        times = [self._ids_at] if any(self._ids.values()) else []
        times += [next(iter(self._missing.values())).ask_at] if self._missing else []
        return min(times, default=None)

    def expire(self, now: float) -> Actions[Payload]:
        """Tell the ids that were gathered, and ask for events that have not come."""
        found: Actions[Payload] = Actions()
        if now >= self._ids_at:
            for node, ids in self._ids.items():
                if ids:
                    found.ids[node] = list(ids.items())
            self._ids.clear()
        for name, missing in list(self._missing.items()):
            if missing.ask_at > now:
                break
            edges = self._edges(name.topic)
            bearers = [node for node in missing.bearers if node in edges]
            if not bearers:
                del self._missing[name]
                continue
            missing.bearers, missing.ask_at = bearers[1:], now + self._graft_s
            self._missing.move_to_end(name)
            self._decide(name.topic, bearers[0], True)
            found.grafts[bearers[0]].append(name)
        return found
