"""The facet `rounds` of a system: tables of a size, a round, and how an event finds its way.

The round engine (`sim/rounds`) makes one object per run and calls it in this order. In every round: `say_goodbye` for
those who leave, `forget` when somebody came or went, `interests_changed` when subscriptions changed, `round`, and under
churn `gossip`. Before events are published: `settle` where `gossip` was not called, then `delivery`. What the system
keeps beyond links is its own; links are in the tables of the `Network`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.exchange import Rules
from grapevine.blocks.network import Network
from grapevine.blocks.rows import NO_MEMORY, SlotMemory
from grapevine.kernels.csr import Columns, Starts
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.measured import MeasuredTable
from grapevine.model.config import Config
from grapevine.systems.contracts.configs import BoundedConfig, FloodingConfig


class Sent(NamedTuple):
    """Control messages of one kind, counted since the start of the run."""

    messages: int
    descriptors: int  # of nodes (address and topics) that they carried: the measure of their size


class Ways(NamedTuple):
    """Edges by which a topic's events travel besides the links between its subscribers; each has an end that does not
    subscribe, and both ends are there. Topic t has those at starts[t] … starts[t + 1]-1."""

    starts: Starts
    sources: Columns
    targets: Columns


NO_WAYS = Ways(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


class Delivery(NamedTuple):
    """How a topic's events travel: over links between subscribers, over lookup trees from gateways, or both."""

    floods: bool  # the links between subscribers carry events
    gateways: NDArray[np.bool_]  # by (topic, subscriber), in the order of `Network.topic_nodes`: who looks the topic up
    spanning: bool = False  # events travel along a tree of these edges; the others tell ids (`blocks/eager_links`)
    homes: Columns = np.empty(
        0, np.int32
    )  # by topic: the root of a tree of routes to all subscribers; empty: no such tree
    ways: Ways = NO_WAYS


class RoundSystem(ABC):
    """A protocol on a network. One object lives as long as the network; the round engine calls it, nobody else."""

    config_type: ClassVar[type[Config]]  # what the command line makes options from
    own_tables: ClassVar[tuple[MeasuredTable, ...]] = ()  # that only it fills, and what is measured of them
    own_findings: ClassVar[tuple[Metric, ...]] = ()  # numbers that only it finds
    ring_slots: ClassVar[int] = 0  # the first slots of a table that hold successor and predecessor
    routes_to_nodes: ClassVar[bool] = False  # instead of looking topics up by the links of the ring
    needs: ClassVar[str] = ""  # what it knows of the whole network that its nodes do not find out by messages

    slot_memory: ClassVar[SlotMemory] = NO_MEMORY  # what is remembered beside links, for their owner alone

    def __init__(self, config: Any, network: Network) -> None:
        self.config, self.network = config, network
        network.most_links = self.most_links()
        network.set_room(self.row_sizes(), self.slot_memory)

    @classmethod
    def within(cls, links: int) -> dict[str, Any] | None:
        """Parameters with which no node has more than so many connections, both ways; None: it has what it needs."""
        return {"most_links": links, "table_size": links} if issubclass(cls.config_type, BoundedConfig) else None

    def most_links(self) -> int | None:
        """How many connections a node accepts, both ways; None: there is no bound. Asked once, at the start."""
        return self.config.most_links if isinstance(self.config, BoundedConfig) else None

    @abstractmethod
    def row_sizes(self) -> NDArray[np.int64]:
        """How many links every node has room for. Asked at the start, and when subscriptions have changed."""

    @abstractmethod
    def slot_kinds(self, size: int) -> list[str]:
        """The `kind` in the `links` table of each slot of a table of this size, e.g. `successor` or `friend`."""

    @abstractmethod
    def round(self) -> None:
        """One round: all that nodes do to find neighbours and keep them. `network.now` is its number.

        Every decision reads the state at the round's start and draws from hashes of seed, round and node, so that the
        result depends on the seed alone.
        """

    def gossip(self) -> None:
        """One round of whatever else neighbours tell each other, from where the last round left it (Vitis: proposals).

        Called after `round`, and only where links change by churn. The default is for systems that have none.
        """
        return

    def settle(self, topics: tuple[int, int]) -> int:
        """What `gossip` does, for the topics first … last-1, from a fresh start until nothing changes; returns the
        rounds needed.

        On links that do not change this is where `gossip` ends, and it spares doing it in every round.
        """
        return 0

    def say_goodbye(self, nodes: Columns) -> None:
        """These nodes leave in good order and tell their neighbours, who drop their links at once. Not called for
        crashes.

        Called before the network takes them out, so their own tables are still there.
        """
        self.network.say_goodbye(nodes)

    def forget(self, nodes: Columns) -> None:
        """These nodes left or joined since the last round: drop what the system keeps about them beyond their links.

        `network.alive` says which of them are there now; those start with empty tables.
        """
        return

    def interests_changed(self, nodes: Columns) -> None:
        """These nodes have other subscriptions now. `network.profiles` and `network.topic_nodes` are new, so whatever
        the system keeps by (topic, subscriber) has to be made anew; the default only gives tables their new sizes."""
        self.network.set_room(self.row_sizes(), self.slot_memory)

    @abstractmethod
    def delivery(self) -> Delivery:
        """How events travel over the links as they are now. Asked before every evaluation; changes nothing."""

    def flooding(self) -> Delivery:
        """Delivery over the links between subscribers; a `FloodingConfig` says whether over all of them."""
        nobody = np.zeros(len(self.network.topic_nodes.columns), np.bool_)
        return Delivery(True, nobody, spanning=self.spans())

    def spans(self) -> bool:
        """Whether events follow a tree of the topic's edges (`FloodingConfig`)."""
        return isinstance(self.config, FloodingConfig) and self.config.dissemination == "tree"

    def route_hops(self, routes: int) -> float | None:
        """Mean hops of so many random routes; None if none of them arrived. Asked of systems that route to nodes
        (`routes_to_nodes`), with somebody online."""
        raise NotImplementedError

    def messages(self) -> dict[str, Sent]:
        """Control messages since the start of the run, by kind; empty where the system does not count them.

        The engine stores differences between measured rounds in the `messages` table.
        """
        return {}

    def saved(self) -> dict[str, NDArray[Any]]:
        """What the system keeps beyond links and cannot make anew, as arrays, so that a run that was killed can go on
        (`sim/parts/keeper`). Asked after a round."""
        return {}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Take what `saved` gave. Called on a fresh system, whose network is as it was then."""
        return

    def own_rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of the system's own tables, by their names. Called once, at the end of a run."""
        return {}

    def findings(self) -> dict[str, float]:
        """Numbers about the state of the system that no table holds, by the names of its `own_findings`; those that
        are not known in this run are left out. Called once, at the end of a run."""
        return {}


class GossipSystem(RoundSystem):
    """A system whose nodes sample peers and exchange views in every round."""

    def round(self) -> None:
        self.network.sample()
        self.exchange()

    def exchange(self) -> None:
        """One round of view exchange by the system's rules."""
        self.network.exchange(self.rules(), ring_slots=self.ring_slots, max_age=self.config.max_age)

    @abstractmethod
    def rules(self) -> Rules:
        """How links are chosen now. Asked in every round; `reads` are the same arrays until they change."""
