"""Many seeds, and what they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from grapevine.net.torture.run import Outcome, run_seed
from grapevine.net.torture.schedule import Settings

FAULT = "fault "  # before the kinds of faults, in counts


@dataclass(slots=True)
class Campaign:
    """The sum of all outcomes so far."""

    seeds: int = 0
    failed: dict[int, list[str]] = field(default_factory=dict)  # by seed: the promises that were broken, in sentences
    counts: Counter[str] = field(default_factory=Counter)
    virtual_node_s: float = 0.0
    cpu_s: float = 0.0
    slowest_healing_s: int = 0

    def add(self, outcome: Outcome) -> None:
        """One seed more."""
        self.seeds += 1
        self.counts += outcome.counts
        self.virtual_node_s += outcome.virtual_node_s
        self.cpu_s += outcome.cpu_s
        self.slowest_healing_s = max(self.slowest_healing_s, outcome.counts["healed_s"])
        if not outcome.is_sound:
            self.failed[outcome.seed] = [str(violation) for violation in outcome.violations]

    @property
    def faults(self) -> dict[str, int]:
        """How many faults of each kind there were, by name."""
        return {key.removeprefix(FAULT): n for key, n in sorted(self.counts.items()) if key.startswith(FAULT)}

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        counts = {key: self.counts[key] for key in ("published", "acknowledged", "refused", "read", "recovered")}
        return {
            "seeds": self.seeds,
            "virtual_node_hours": self.virtual_node_s / 3_600,
            "cpu_s": self.cpu_s,
            "virtual_node_hours_per_cpu_hour": self.virtual_node_s / self.cpu_s if self.cpu_s else None,
            **counts,
            "losses_reported": self.counts["reported"],
            "slowest_healing_s": self.slowest_healing_s,
            "faults": self.faults,
            "failed": {str(seed): sentences for seed, sentences in self.failed.items()},
        }


def run_seeds(seeds: Iterable[int], settings: Settings) -> Iterator[Outcome]:
    """Run seeds one after another."""
    for seed in seeds:
        yield run_seed(seed, settings)
