"""Parameters of Trellis, each with its reason; what an ablation showed stands in docs/trellis.md."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import FloodingConfig, GossipConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TrellisRules(GossipConfig):
    """Parameters of Trellis' rules, whoever plays them. A round is a period of heartbeats."""

    most_links: int = parameter(
        15,
        "connections that a node has at most, both ways; two keep the ring (k)",
        source="Vitis §IV-A has tables of 15; here both ends count",
        low=5,
        high=1_000,
    )
    ring_backups: int = parameter(
        4, "nodes remembered in each direction of the ring, the next one included", source="as Vitis here", low=1
    )
    prospects: int = parameter(
        15, "nodes remembered that would be the best friends but are not linked", source="ours: as many as links", low=1
    )
    callers: int = parameter(
        4, "callers of a round whose lists are read, at most", source="ours: bounds the work of a popular node", low=0
    )
    stall_rounds: int = parameter(
        3, "rounds without a new tick of its root after which a label is dropped", source="ours: as max_age", low=1
    )
    linger_rounds: int = parameter(
        5,
        "rounds for which a member keeps a bridge that its cluster has given up",
        source="ours: make before break, while the new choice travels down the tree",
        low=0,
    )
    patience_rounds: int = parameter(
        4,
        "rounds without change after which a label counts in the choice of friends",
        source="ours: while labels spread, any two clusters look different",
        low=0,
    )
    enough_neighbours: int = parameter(
        2,
        "neighbours in a topic up to which a further one is worth something (spare_value)",
        source="SpiderCast §2.2: K of 2 or 3 keep a topic connected",
        low=0,
    )
    spare_value: float = parameter(
        0.25, "worth of a neighbour in a topic that is no edge of its tree", source="ours", low=0, high=1
    )
    surplus_value: float = parameter(
        0.05, "worth of such a neighbour where there are enough already", source="ours", low=0, high=1
    )
    bridge_value: float = parameter(0.5, "worth of an edge of a bridge that is in use", source="ours", low=0)
    requests: int = parameter(2, "friends that a node asks in a round, at most", source="ours", low=1, high=10)
    margin: float = parameter(
        0.75, "by how much a new friend must be better than what it replaces", source="ours: or links never rest", low=0
    )
    stiffness: float = parameter(0.25, "what the margin grows by whenever the interval doubles", source="ours", low=0)
    margin_after_loss: float = parameter(
        6.0,
        "the margin for calm_rounds after a neighbour was lost by silence",
        source="ours: free slots find free slots first, and nobody is pushed out",
        low=0,
    )
    calm_rounds: int = parameter(
        15, "rounds without loss after which a node begins to look for friends more rarely", source="ours", low=1
    )
    most_interval: int = parameter(
        32, "rounds between two looks for friends, at most; it doubles up to here", source="Trickle, RFC 6206", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrellisConfig(TrellisRules, FloodingConfig):
    """Trellis: clusters on agreed links, joined by bridges of single nodes."""

    dissemination: str = parameter(
        "tree",
        "events follow a tree of the edges of the topic, while lazy links tell ids, or flood them",
        source="Plumtree (blocks/eager_links)",
        choices=("flood", "tree"),
    )

    bridges: bool = parameter(
        True,
        "whether nodes offer themselves as bridges between clusters; if not, every cluster looks for a way itself",
        source="ours: what does the work (docs/trellis.md)",
    )
    probes: bool = parameter(
        True, "whether ways of one or two nodes are looked for before a lookup", source="ours (docs/trellis.md)"
    )
