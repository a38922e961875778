"""Parameters of Vitis, message by message."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.gossip.messages import MOST_TOPICS
from grapevine.systems.vitis.config import VitisRules


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisPeerConfig(VitisRules):
    """Vitis' own parameters, what a round is in seconds, and how much of others a node puts up with."""

    max_age: int = parameter(
        5,
        "rounds of silence after which a node is dropped",
        source="Vitis §III-D: THRESHOLD; ours: two more than in rounds, since messages take time",
        low=1,
    )
    round_s: float = parameter(1.0, "seconds of a gossip round", source="Vitis §IV-E: a round is a second", low=0.01)
    sample_rounds: int = parameter(
        1,
        "rounds between two exchanges of samples",
        source="ours: 1, as by rounds; a live node may sample less often than it exchanges",
        low=1,
        high=100,
    )
    relay_rounds: int = parameter(
        3,
        "rounds between two renewals of a gateway's path to the rendezvous",
        source="ours: paths are soft state",
        low=1,
    )
    rates: str = parameter(
        "equal",
        "what topics weigh in the utility: all the same, the rate that was declared for them, or that of events seen",
        source="Vitis Eq. 1: publication rates, and not how a node knows them; ours: equal, as nothing has to be known",
        choices=("equal", "declared", "estimated"),
    )
    rate_horizon_s: float = parameter(
        600.0, "seconds over which the count of events decays that estimates a rate", source="ours", low=1
    )
    rendezvous: int = parameter(
        1,
        "rendezvous nodes of a topic, at places that have nothing to do with each other",
        source="Vitis has one; ours: with more, nobody who makes a key near a topic's id can cut its clusters apart",
        low=1,
        high=8,
    )
    believes: str = parameter(
        "hearsay",
        "who may become a link or gateway: anybody of whom others speak, or who has answered this node itself",
        source="Vitis does not say; ours: hearsay costs a liar nothing",
        choices=("hearsay", "answers"),
    )
    most_topics: int = parameter(
        MOST_TOPICS,
        "topics that a node may subscribe to; who claims to have more is not asked for them",
        source="ours: bounds what strangers may send",
        low=1,
        high=MOST_TOPICS,
    )
    most_relays: int = parameter(
        200_000, "topics that a node carries for one neighbour", source="ours: bounds what strangers may ask", low=1
    )

    @property
    def silence_s(self) -> float:
        """A link that was silent for so long is gone."""
        return self.max_age * self.round_s

    @property
    def hearsay_s(self) -> float:
        """Who was not heard of for so long is forgotten: news spread by samples, and are as old as these are rare."""
        return self.silence_s * self.sample_rounds

    @property
    def settle_s(self) -> float:
        """A node that has been there for so long is no newcomer."""
        return self.settle_rounds * self.round_s

    @property
    def relay_s(self) -> float:
        """A path that was not renewed for so long is gone."""
        return 2.5 * self.relay_rounds * self.round_s

    @property
    def most_known(self) -> int:
        """Nodes that are remembered, neighbours aside: some times what one exchange tells."""
        return 4 * (self.table_size + self.sample_size + 2 * self.ring_backups)
