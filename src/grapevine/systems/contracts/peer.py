"""What a sans-IO peer is: it is told what happened and answers with effects. No clock, no socket, no thread inside.

The same peer runs in virtual time (`sim/events`) and on sockets (`net`). Messages are msgspec structs: cheap to make a
hundred million times in a simulation, and ready for the wire. Randomness comes from the generator that a peer is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import ModuleType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.measured import MeasuredTable
from grapevine.model.config import Config
from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload

FROM_BEHIND = ("fan", "child", "reverse")  # roles of links that the other end chose
ADMIRERS = ("fan",)  # of these, roles in which it serves for nothing: no neighbours in tables
Address = int  # a node's number in a simulation; a live host numbers the peers that it knows


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message. Whether it arrives is not said: peers have time-outs."""

    to: Address
    message: Any


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Call `on_timer` once, after so many seconds. A timer cannot be stopped: who no longer needs it ignores it."""

    timer: Hashable
    after_s: float


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """An event for the application: the first copy of it that came, and from whom."""

    topic: int
    sequence: int
    payload: bytes
    sender: Address
    pulled: bool = False  # asked for, because it had been missed


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """This peer is a neighbour from now on: keep a connection to it."""

    peer: Address


class LinkDown(msgspec.Struct, frozen=True, gc=False):
    """It is none any more."""

    peer: Address


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The peer has left in good order; nobody needs it any more."""


Effect = Send | SetTimer | Deliver | LinkUp | LinkDown | Finished
Effects = Sequence[Effect]


class Message(msgspec.Struct, frozen=True, gc=False, tag=True, array_like=True):
    """What peers send each other. Those that carry an event have its `topic` and `sequence`."""

    carries_event: ClassVar[bool] = False

    def named(self) -> Iterable[Address]:
        """Other nodes that it names: a live host tells the receiver where to find them."""
        return ()


def messages_in(module: ModuleType, *, without: Collection[type[Message]] = ()) -> Any:
    """The union of all messages that a module defines, but for some: what a decoder of them is made from."""
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == module.__name__
    ]
    if not kinds:
        raise UsageError(f"{module.__name__} defines no messages; give a module with subclasses of Message")
    return reduce(or_, [kind for kind in kinds if kind not in without])


class Peer(ABC):
    """One session of a node, from its start to its end."""

    excesses = 0  # messages that wanted more of it than it gives anybody: a live host counts them against their senders

    @abstractmethod
    def start(self, now: float) -> Effects:
        """The session begins."""

    @abstractmethod
    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        """A message came."""

    @abstractmethod
    def on_timer(self, now: float, timer: Any) -> Effects:
        """A timer fired."""

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        """The application publishes an event. Servers have none, and ignore this and the next two.

        A host that keeps events on disk numbers them itself; without a number, the peer counts.
        """
        return []

    def subscribe(self, now: float, topic: int) -> Effects:
        """The application wants a topic's events from now on."""
        return []

    def unsubscribe(self, now: float, topic: int) -> Effects:
        """The application no longer wants them."""
        return []

    def meet(self, now: float, node: Address) -> Effects:
        """The host has found somebody of the network: to begin with, or after the network fell apart."""
        return []

    def on_unreachable(self, now: float, node: Address) -> Effects:
        """The connection to a node broke, or none could be made. In a simulation nobody says so: it is silent."""
        return []

    def carried(self, now: float) -> Collection[int]:
        """Topics whose events this peer wants, or carries for others."""
        return ()

    def partners(self, now: float, topic: int) -> Collection[Address]:
        """With whom it exchanges the topic's events: these can be asked for what was missed."""
        return ()

    def has_path(self, now: float, topic: int) -> bool:
        """Whether an event that it publishes now would go anywhere."""
        return bool(self.partners(now, topic))

    def roles(self) -> dict[Address, list[str]]:
        """Whom it keeps in touch with, and in which roles."""
        return {}

    def leave(self, now: float) -> Effects:
        """Leave in good order; `Finished` says when that is done."""
        return [Finished()]


@dataclass(frozen=True, slots=True)
class World:
    """What the nodes of a simulated network have in common."""

    workload: Workload
    publishers: Sequence[Address]  # of every topic
    latency_s: Callable[[Address, Address], float]  # one way, between any two, usually
    seed: int


class Place(NamedTuple):
    """A peer's place in the tree of a topic."""

    topic: int
    parent: Address | None
    height: int | None  # steps to the root, where a peer knows
    children: int
    rejoins: int = 0


PeerType = TypeVar("PeerType", bound=Peer)


class PeerSystem(ABC, Generic[PeerType]):
    """A protocol whose nodes are sans-IO peers: it makes them, and says what a measurement wants to know of them."""

    config_type: ClassVar[type[Config]]
    own_tables: ClassVar[tuple[MeasuredTable, ...]] = ()  # that only it fills, and what is measured of them
    own_findings: ClassVar[tuple[Metric, ...]] = ()  # numbers that only it finds

    def __init__(self, config: Any, world: World) -> None:
        self.config, self.world = config, world

    @classmethod
    def servers(cls, config: Any) -> int:
        """Nodes of the infrastructure, that are there before the others; they are numbered after them."""
        return 0

    def server(self, number: int) -> Peer:
        """One of these, from 0."""
        raise NotImplementedError

    @abstractmethod
    def peer(self, node: Address, before: PeerType | None) -> PeerType:
        """A new session of the node; `before` is its last one, of which it may remember what a disk would keep."""

    @abstractmethod
    def neighbours(self, peer: PeerType) -> dict[Address, list[str]]:
        """Whom the peer keeps in touch with, and in which roles."""

    def places(self, peer: PeerType) -> list[Place]:
        """Its places in trees, a row of the `places` table each."""
        return []

    def carriers(self, peer: PeerType, now: float) -> dict[int, Collection[Address]]:
        """By topic that the peer wants or carries: with whom it exchanges the events; of trees, the parents."""
        return {place.topic: () if place.parent is None else (place.parent,) for place in self.places(peer)}

    def position(self, peer: PeerType) -> tuple[float, ...] | None:
        """Its network coordinates in ms; None where the system has none."""
        return None

    def own_rows(self, peers: Mapping[Address, PeerType]) -> dict[str, list[dict[str, Any]]]:
        """Rows of the system's own tables, by their names, from the peers that are online at the end of a run."""
        return {}

    def findings(self) -> dict[str, float | None]:
        """Numbers that no table holds, by the names of its `own_findings`; None, or left out: not known."""
        return {}

    def restart_counts(self, peer: PeerType) -> None:
        """The measurement begins: forget what was counted for it."""
        return
