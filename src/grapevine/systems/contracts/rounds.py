"""What a system is to the simulator: tables of a size, a round, and how an event finds its way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.network import Network
from grapevine.kernels.csr import Columns
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.measured import MeasuredTable
from grapevine.model.config import Config, parameter


class Sent(NamedTuple):
    """Control messages of one kind."""

    messages: int
    descriptors: int  # of nodes (address and topics) that they carried


class Delivery(NamedTuple):
    """How a topic's events travel: over links between subscribers, over lookup trees from gateways, or both."""

    floods: bool
    gateways: NDArray[np.bool_]  # by (topic, subscriber), in the order of `Network.topic_nodes`
    spanning: bool = False  # of the links between subscribers, only those of a spanning tree carry events
    homes: Columns = np.empty(
        0, np.int32
    )  # by topic: the root of a tree of routes to all subscribers; empty: no such tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipConfig(Config):
    """Parameters of the gossip below every system."""

    sample_size: int = parameter(
        20, "size of the peer-sampling cache; the whole cache is the sample", source="ours: no paper says", low=1
    )
    max_age: int = parameter(
        3, "rounds of silence after which a node is dropped", source="Vitis §III-D: THRESHOLD, no value given", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RingConfig(GossipConfig):
    """The same for systems on an identifier ring."""

    table_size: int = parameter(15, "links in a routing table", source="Vitis §IV-A", low=4, high=1_000)
    ring_backups: int = parameter(
        4,
        "nodes remembered in each direction of the ring, the next one included; 0: none, as in the paper",
        source="ours: links alone repair a ring slowly (docs/papers.md#ring)",
        low=0,
        high=100,
    )
    settle_rounds: int = parameter(
        10,
        "rounds after its join before a newcomer is a ring link of others and takes part in lookups; 0: none",
        source="ours: the time after which Vitis §IV-F counts a node (docs/papers.md#ring)",
        low=0,
        high=10_000,
    )


@dataclass(frozen=True, kw_only=True)  # no slots, so that a system can also have GossipConfig as a base
class FloodingConfig(Config):
    """For systems that connect every topic: events need no other links than those between subscribers."""

    dissemination: str = parameter(
        "flood",
        "events flood the links between subscribers, or follow a spanning tree of the topic",
        source="SpiderCast §5",
        choices=("flood", "tree"),
    )


class RoundSystem(ABC):
    """A protocol on a network. One object lives as long as the network."""

    config_type: ClassVar[type[Config]]
    own_tables: ClassVar[tuple[MeasuredTable, ...]] = ()  # that only it fills, and what is measured of them
    own_findings: ClassVar[tuple[Metric, ...]] = ()  # numbers that only it finds
    ring_slots: ClassVar[int] = 0  # the first slots of a table that hold successor and predecessor

    def __init__(self, config: Any, network: Network) -> None:
        self.config, self.network = config, network
        network.set_room(self.row_sizes())

    @abstractmethod
    def row_sizes(self) -> NDArray[np.int64]:
        """The room for links of every node."""

    @abstractmethod
    def slot_kinds(self, size: int) -> list[str]:
        """What each slot of a table of this size is for."""

    @abstractmethod
    def round(self) -> None:
        """One round: all that nodes do to find neighbours and keep them."""

    def gossip(self) -> None:
        """One round of whatever else neighbours tell each other, from where the last round left it."""
        return

    def settle(self, topics: tuple[int, int]) -> int:
        """The same for the topics first … last-1, from a fresh start until nothing changes; returns the rounds needed.

        On links that do not change this is where `gossip` ends, and it spares doing it in every round.
        """
        return 0

    def say_goodbye(self, nodes: Columns) -> None:
        """These nodes leave, and tell their neighbours."""
        self.network.say_goodbye(nodes)

    def forget(self, nodes: Columns) -> None:
        """Nodes left or joined: drop what the system keeps about them beyond their links."""
        return

    def interests_changed(self, nodes: Columns) -> None:
        """These nodes have other subscriptions now: `network.topic_nodes` has new rows."""
        self.network.set_room(self.row_sizes())

    @abstractmethod
    def delivery(self) -> Delivery:
        """How events travel over the links as they are now."""

    def flooding(self) -> Delivery:
        """Delivery over the links between subscribers alone; for a `FloodingConfig`, as it says."""
        nobody = np.zeros(len(self.network.topic_nodes.columns), np.bool_)
        return Delivery(True, nobody, spanning=getattr(self.config, "dissemination", "flood") == "tree")

    def messages(self) -> dict[str, Sent]:
        """Control messages sent so far, by kind; empty where the system does not count them."""
        return {}

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

    @abstractmethod
    def exchange(self) -> None:
        """One round of view exchange."""
