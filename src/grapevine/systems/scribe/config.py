"""Parameters of Scribe."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter
from grapevine.model.ids import RING_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScribeConfig(Config):
    """Scribe: sizes of Pastry's tables, periods and time-outs. All nodes have the same."""

    digit_bits: int = parameter(4, "bits of a digit of Pastry's ids", source="Pastry §2.2: b", low=1, high=16)
    leaf_size: int = parameter(16, "nodes in a leaf set", source="Pastry §2.2: |L|", low=2, high=1_024)
    heartbeat_s: float = parameter(
        30.0, "seconds between heartbeats", source="Rappel §3.3, so that the two compare; Scribe gives none", low=0.001
    )
    timeout_s: float = parameter(
        15.0, "seconds to wait for an answer, or for a late heartbeat", source="Rappel §3.3, as above", low=0.001
    )
    join_s: float = parameter(
        1.0,
        "seconds after its start before a node subscribes",
        source="ours: Pastry's join is a few round trips",
        low=0,
    )
    window: int = parameter(
        64, "latest events of a topic that a node tells apart from new ones", source="ours: Scribe gives none", low=1
    )

    def mistakes(self) -> list[str]:
        return [
            *([f"digit_bits={self.digit_bits}: needs to divide {RING_BITS}"] if RING_BITS % self.digit_bits else []),
            *([f"leaf_size={self.leaf_size}: needs to be even, half for each side"] if self.leaf_size % 2 else []),
        ]
