"""Parameters of SpiderCast, message by message."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.spidercast.config import SpiderCastRules


@dataclass(frozen=True, kw_only=True)
class SpiderCastPeerConfig(SpiderCastRules):
    """SpiderCast's own parameters, what a round is in seconds, and how much of others a node puts up with."""

    max_age: int = parameter(
        5,
        "rounds without heartbeat after which a neighbour is dropped",
        source="SpiderCast §2.3 names none; ours: two more than in rounds, since messages take time",
        low=1,
    )
    round_s: float = parameter(
        1.0,
        "seconds between two iterations of the maintenance loop, longer than an answer takes (connect_timeout)",
        source="SpiderCast Fig. 2 names none; Fig. 11: 0.2",
        low=0.01,
    )
    sample_size: int = parameter(20, "size of the peer-sampling cache", source="ours: as by rounds", low=1, high=1_000)
    sample_rounds: int = parameter(
        1, "rounds between two exchanges of samples", source="ours: a live node may sample less often", low=1, high=100
    )
    view_size: int = parameter(
        100,
        "nodes whose interests a node remembers, neighbours aside (the interest view)",
        source="SpiderCast §3.7: 5 % of the nodes suffice; 100 of 2,000",
        low=1,
        high=100_000,
    )
    hearsay_rounds: int = parameter(
        20,
        "exchanges of samples without news after which a node is forgotten",
        source="ours: news of a node are as old as samples need to spread",
        low=1,
        high=1_000,
    )
    seek_hops: int = parameter(
        4, "hops that the question for subscribers of a rare topic travels", source="ours", low=1, high=16
    )
    most_topics: int = parameter(
        1_000_000, "topics that a node may subscribe to", source="ours: bounds what strangers may send", low=1
    )

    @property
    def silence_s(self) -> float:
        """A link that was silent for so long is gone."""
        return self.max_age * self.round_s

    @property
    def hearsay_s(self) -> float:
        """Who was not heard of for so long is forgotten."""
        return max(self.hearsay_rounds * self.sample_rounds, self.max_age) * self.round_s

    @property
    def quarantine_s(self) -> float:
        """Who was asked is not asked again for so long."""
        return self.quarantine_rounds * self.round_s

    @property
    def grace_s(self) -> float:
        """For so long a new link may be missing from the other end's heartbeats: they may have left before it was."""
        return 2.0 * self.round_s

    @property
    def most_known(self) -> int:
        """Nodes that are remembered, neighbours aside."""
        return self.view_size
