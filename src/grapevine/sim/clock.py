"""How a run in virtual time goes: how long, who publishes when, what is measured."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.sim.latency import LatencyConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockConfig(LatencyConfig):
    """How a run in virtual time goes. Times are seconds of its clock, which starts at 0; a round of churn takes one."""

    hours: float = parameter(1.0, "virtual hours", source="Rappel §6.2: 4", low=0.01)
    warm_up_s: float = parameter(
        65.0, "seconds at the beginning in which servers are alone", source="ours: landmarks settle", low=0
    )
    start_s: float = parameter(
        600.0, "seconds after the warm-up within which the first nodes start, at random times", source="ours", low=0
    )
    publish_every_s: float = parameter(
        60.0, "seconds between two events of a topic; 0: no events", source="Rappel §6.1.5", low=0
    )
    publish_from_s: float = parameter(900.0, "time of the first event", source="ours: all have started", low=0)
    quiet_s: float = parameter(
        60.0, "seconds before the end in which nothing is published", source="ours: they need to arrive", low=0
    )
    payload_bytes: int = parameter(1_024, "bytes of an event's payload", source="Rappel §6.1.5", low=0, high=1 << 20)
    measure_from_s: float = parameter(
        0.0, "time from which loads and messages of nodes are counted", source="ours", low=0
    )
    sample_s: float = parameter(300.0, "seconds between two rows of the `rounds` table", source="ours", low=1)
    grace_s: float = parameter(
        60.0, "seconds that a subscriber has been there before it counts", source="ours: longer than a join", low=0
    )
    observers: int = parameter(0, "subscribers that never leave, to be measured", source="Rappel §6.2.3: 10", low=0)
    loss: float = parameter(0.0, "share of messages that are lost", source="ours", low=0, high=0.99)
    duplication: float = parameter(0.0, "share of messages that arrive twice", source="ours", low=0, high=0.99)

    def mistakes(self) -> list[str]:
        found = []
        if self.publish_every_s > 0 and self.publish_from_s < self.warm_up_s:
            found.append(f"publish_from_s={self.publish_from_s:g}: publishers start after warm_up_s={self.warm_up_s:g}")
        if self.measure_from_s >= self.end_s:
            found.append(f"measure_from_s={self.measure_from_s:g}: the clock stops at {self.end_s:g} s")
        return found

    @property
    def end_s(self) -> float:
        """The time at which the clock stops, seconds."""
        return self.hours * 3_600
