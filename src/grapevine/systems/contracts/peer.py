"""What a sans-IO peer is: it is told what happened and answers with effects. No clock, no socket, no thread inside.

The same peer runs in virtual time (`sim/events`) and on sockets (`net/host`); whoever runs it is its host. Three rules:

1. The host calls one method at a time, `start` first, and carries out the effects in their order before the next call.
   `now` is in seconds of a clock that never goes back, and means nothing beyond the session.
2. A peer is one session. What a node remembers of it is taken out of the peer and given to the next one.
3. What comes from others may be anything: late, doubled, forged, of an earlier session. A peer ignores what does not
   fit. If it raises all the same, a live host counts and logs that, and goes on; a simulation stops.

Messages are msgspec structs: cheap to make a hundred million times in a simulation, and ready for the wire. Randomness
comes from the generator that a peer is given, so that a simulation is a function of its seed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from grapevine.model.config import Config
from grapevine.model.errors import UsageError

if TYPE_CHECKING:  # a live node has neither tables nor workloads, nor the packages that these need
    from grapevine.metrics.catalogue import Metric
    from grapevine.metrics.measured import MeasuredTable
    from grapevine.model.workload import Workload

FROM_BEHIND = ("fan", "child", "reverse")  # roles of links that the other end chose: it counts them as its own
ADMIRERS = ("fan",)  # of these, roles in which it serves for nothing: no neighbours in tables
Address = int  # a node's number in a simulation; live, the first 64 bits of its id


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message to a node, neighbour or not.

    Nobody says whether it arrives, so peers have time-outs. A simulation delivers it after the network's delay, unless
    it is lost or the receiver's session ends before. A live host writes it to the connection to that node and dials one
    if there is none; what cannot be delivered is dropped, and `on_unreachable` is called when nobody can be reached.
    """

    to: Address
    message: Any  # a `Message` of the peer's system


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Call `on_timer` with `timer`, once, after so many seconds, if the session lasts that long.

    A timer cannot be stopped: a peer that no longer needs it ignores it. Setting an equal one again adds another. Where
    `on_timer` raises, a live host calls it again a second later, so that whatever the timer drives goes on.
    """

    timer: Hashable
    after_s: float


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """An event for the application, which subscribes to its topic. A peer delivers each event once in a session.

    A simulation measures by it. A live host does not use it: its store says what is new, since that also knows what
    came in earlier sessions.
    """

    topic: int
    sequence: int  # the event's number at its publisher; a topic's publisher and this name an event
    payload: bytes
    sender: Address  # the neighbour that the first copy came from
    pulled: bool = False  # asked for, because it had been missed


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """The peer has become a neighbour, in one role or more. Sent once per link, also when the other end chose it.

    A live host keeps a connection to a neighbour open when it is idle or others need the room; it dials none for it:
    the first message does. A simulation, which has no connections, ignores it.
    """

    peer: Address


class LinkDown(msgspec.Struct, frozen=True, gc=False):
    """The peer is no longer a neighbour in any role. Sent once per link, also when the other end broke it.

    A live host may then close the connection once it was not used for `idle_s`; messages can still be sent. After
    `on_unreachable` the host treats the link as gone without waiting for this.
    """

    peer: Address


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The peer has left in good order, after `leave`; the host calls it no more.

    A simulation ends the session there. A live host closes its connections; it does not wait for this for ever.
    """


Effect = Send | SetTimer | Deliver | LinkUp | LinkDown | Finished
Effects = Sequence[Effect]


class Message(msgspec.Struct, frozen=True, gc=False, tag=True, array_like=True):
    """A message between two peers; its sender is known from the connection and is not part of it.

    The class's name and the order of its fields are what travels: renaming a class or moving a field changes the
    protocol. A kind with `carries_event` has the fields `topic` and `sequence`, by which hosts count and check events.
    """

    carries_event: ClassVar[bool] = False

    def named(self) -> Iterable[Address]:
        """Nodes that the message names and that the receiver may want to talk to, each as often as it likes.

        A live host sends along where to find those that the receiver has not heard of on this connection.
        """
        return ()


def messages_in(*modules: ModuleType, without: Collection[type[Message]] = ()) -> Any:
    """The union of all messages that these modules define, `without` some: the type from which a decoder is made.

    UsageError if a module defines none.
    """
    kinds = []
    for module in modules:
        found = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Message)]
        own = [kind for kind in found if kind.__module__ == module.__name__]
        if not own:
            raise UsageError(f"{module.__name__} defines no messages; give a module with subclasses of Message")
        kinds += own
    return reduce(or_, [kind for kind in kinds if kind not in without])


class Peer(ABC):
    """One session of a node, from its start to its end. Its host calls it; the answer is what the host has to do."""

    excesses = 0
    """Messages so far that wanted more than any peer gives anybody. The peer counts them and does not obey; a live host
    compares the number before and after a message, and holds it against the sender."""

    surplus = 0
    """Messages so far that wanted more than this peer gives, by a bound of its own, which nobody else knows. It does
    not obey, and a live host counts them; whoever sent one, perhaps on behalf of others, is not blamed."""

    @abstractmethod
    def start(self, now: float) -> Effects:
        """The session begins. Called once, before everything else."""

    @abstractmethod
    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        """A message came from a node, which need not be known. Kinds that the peer has no use for are ignored."""

    @abstractmethod
    def on_timer(self, now: float, timer: Any) -> Effects:
        """A timer that the peer has set in this session is due: `timer` is that of `SetTimer`."""

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        """The application publishes an event in a topic, which it need not subscribe to.

        A host that keeps events on disk numbers them itself, in ascending order; without a number the peer counts.
        UsageError where this node may not publish the topic. Servers have no application: they ignore this, and
        subscriptions.
        """
        return []

    def subscribe(self, now: float, topic: int) -> Effects:
        """The application wants a topic's events from now on; nothing happens if it does already."""
        return []

    def unsubscribe(self, now: float, topic: int) -> Effects:
        """The application no longer wants a topic's events; nothing happens if it did not."""
        return []

    def declare_rate(self, now: float, topic: int, rate: float) -> Effects:
        """The application says how often events are published in a topic that it subscribes to, or will: a number of
        its own unit, the same for all topics and nodes. UsageError if that is no rate. Most systems have no use for it.
        """
        return []

    def meet(self, now: float, node: Address) -> Effects:
        """The host has found somebody of the network: to begin with, or later, in case the network fell apart."""
        return []

    def on_unreachable(self, now: float, node: Address) -> Effects:
        """The connection to a node broke, or none could be made; live hosts only. In a simulation a node that is gone
        is silent, so peers may not depend on this."""
        return []

    def carried(self, now: float) -> Collection[int]:
        """Topics whose events this peer wants, or carries for others. A live host keeps the events of all of them."""
        return ()

    def partners(self, now: float, topic: int) -> Collection[Address]:
        """Neighbours with whom the peer exchanges the topic's events: these can be asked for what was missed."""
        return ()

    def has_path(self, now: float, topic: int) -> bool:
        """Whether an event that the peer published now would go anywhere. A live host waits with it until then."""
        return bool(self.partners(now, topic))

    def roles(self) -> dict[Address, list[str]]:
        """The neighbours, and each one's roles, once per role and topic; those of `FROM_BEHIND` were its own choice."""
        return {}

    def leave(self, now: float) -> Effects:
        """Leave the network in good order. `Finished`, now or later, says that it is done."""
        return [Finished()]


@dataclass(frozen=True, slots=True)
class World:
    """What the nodes of a simulated network have in common."""

    workload: Workload
    publishers: Sequence[Address]  # the publisher of every topic
    latency_s: Callable[[Address, Address], float]  # one way between any two nodes, as it usually is
    seed: int


class Place(NamedTuple):
    """A peer's place in the tree of a topic."""

    topic: int
    parent: Address | None  # None: the root, or somebody who looks for a parent
    height: int | None  # steps to the root; None where a peer does not know
    children: int
    rejoins: int = 0  # periodic rejoins of others that began at this peer since `restart_counts`


PeerType = TypeVar("PeerType", bound=Peer)


class PeerSystem(ABC, Generic[PeerType]):
    """A protocol whose nodes are sans-IO peers: it makes them, and says what a measurement wants to know of them.

    One object per simulation; only `sim` calls it. Asking about a peer never changes it, `restart_counts` aside.
    """

    config_type: ClassVar[type[Config]]
    own_tables: ClassVar[tuple[MeasuredTable, ...]] = ()  # that only it fills, and what is measured of them
    own_findings: ClassVar[tuple[Metric, ...]] = ()  # numbers that only it finds

    def __init__(self, config: Any, world: World) -> None:
        self.config, self.world = config, world

    @classmethod
    def servers(cls, config: Any) -> int:
        """How many nodes of the infrastructure there are. They start before the others, and are numbered after them."""
        return 0

    def server(self, index: int) -> Peer:
        """The peer of one of the servers, from 0 on. Called once for each."""
        raise NotImplementedError

    @abstractmethod
    def peer(self, node: Address, before: PeerType | None) -> PeerType:
        """A new session of the node. `before` is its last one, from which it may take what a disk would keep; None if
        this is its first."""

    @abstractmethod
    def neighbours(self, peer: PeerType) -> dict[Address, list[str]]:
        """The neighbours of a peer that is online, and each one's roles, as `Peer.roles` has them."""

    def places(self, peer: PeerType) -> list[Place]:
        """The peer's places in trees, a row of the `places` table each; none where the system has no trees."""
        return []

    def carriers(self, peer: PeerType, now: float) -> dict[int, Collection[Address]]:
        """By topic that the peer wants or carries: with whom it exchanges the events. In trees the parent will do, as
        edges count both ways."""
        return {place.topic: () if place.parent is None else (place.parent,) for place in self.places(peer)}

    def position(self, peer: PeerType) -> tuple[float, ...] | None:
        """The peer's network coordinates in ms; None where the system has none, or it does not know them yet."""
        return None

    def distance(self, a: tuple[float, ...], b: tuple[float, ...]) -> float:
        """How far apart two of its network coordinates are, ms."""
        return math.dist(a, b)

    def own_rows(self, peers: Mapping[Address, PeerType]) -> dict[str, list[dict[str, Any]]]:
        """Rows of the system's own tables, by their names, from the peers that are online at the end of a run."""
        return {}

    def findings(self) -> dict[str, float | None]:
        """Numbers that no table holds, by the names of its `own_findings`; None, or left out: not known."""
        return {}

    def restart_counts(self, peer: PeerType) -> None:
        """The measurement begins now: what the peer has counted for it so far, like rejoins, starts again from 0."""
        return
