"""Parameters of Vitis."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.contracts.rounds import RingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisConfig(RingConfig):
    """Vitis: gossip clusters joined by relay paths."""

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
