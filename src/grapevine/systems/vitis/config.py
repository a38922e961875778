"""Parameters of Vitis."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import BoundedConfig, FloodingConfig, RingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisRules(RingConfig):
    """Parameters of Vitis' rules, whoever plays them."""

    ring_and_long_links: int = parameter(
        3, "of these, successor, predecessor and long links (k); the others are friends", source="Vitis §IV-A", low=2
    )
    gateway_reach: int = parameter(
        5, "a member is fewer than so many hops from its gateway (d)", source="Vitis §IV-A", low=1, high=100
    )

    def mistakes(self) -> list[str]:
        if self.ring_and_long_links > self.table_size:
            return [f"ring_and_long_links={self.ring_and_long_links}: the table has {self.table_size} links"]
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisConfig(VitisRules, BoundedConfig, FloodingConfig):
    """Vitis: gossip clusters joined by relay paths."""

    notices: str = parameter(
        "at once",
        "when neighbours stop counting the proposals of a node that is gone: at once, or by silence, after max_age",
        source="Vitis §III-B: by silence; at once is ours, since heartbeats tell within a round or two",
        choices=("at once", "by silence"),
    )
    ties: str = parameter(
        "own",
        "which of equally similar nodes are preferred: every node has an order of its own, or all have a common one",
        source="Vitis §III-A2 does not say; ours",
        choices=("own", "common"),
    )
    friends: str = parameter(
        "gossip",
        "where friends come from: what gossip brings, or all online nodes, an optimum to compare with",
        source="Vitis §III-A2: gossip; ideal is ours",
        choices=("gossip", "ideal"),
    )

    def mistakes(self) -> list[str]:
        found = VitisRules.mistakes(self)
        if self.friends == "ideal" and self.most_links is not None:
            found.append(f"most_links={self.most_links}: ideal friends are not asked; leave it out, or choose gossip")
        return found
