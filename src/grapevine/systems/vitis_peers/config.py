"""Parameters of Vitis, message by message."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.vitis import VitisConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisPeerConfig(VitisConfig):
    """Vitis' own, and what a round is in seconds."""

    max_age: int = parameter(
        5,
        "rounds of silence after which a node is dropped",
        source="Vitis §III-D: THRESHOLD; ours: two more than in rounds, since messages take time",
        low=1,
    )
    round_s: float = parameter(1.0, "seconds of a gossip round", source="Vitis §IV-E: a round is a second", low=0.01)
    relay_rounds: int = parameter(
        3,
        "rounds between two renewals of a gateway's path to the rendezvous",
        source="ours: paths are soft state",
        low=1,
    )

    @property
    def silence_s(self) -> float:
        """Who was not heard of for so long is gone."""
        return self.max_age * self.round_s

    @property
    def relay_s(self) -> float:
        """A path that was not renewed for so long is gone."""
        return 2.5 * self.relay_rounds * self.round_s
