"""Parameters that several systems share, whoever plays them: rounds, peers in virtual time, or live nodes."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipConfig(Config):
    """Parameters of the gossip below every system that samples peers and exchanges views."""

    sample_size: int = parameter(
        20, "size of the peer-sampling cache; the whole cache is the sample", source="ours: no paper says", low=1
    )
    max_age: int = parameter(
        3, "rounds of silence after which a node is dropped", source="Vitis §III-D: THRESHOLD, no value given", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RingConfig(GossipConfig):
    """Parameters of gossip for systems on an identifier ring."""

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


@dataclass(frozen=True, kw_only=True)  # no slots, as above
class BoundedConfig(Config):
    """For systems whose links may need the consent of the other end."""

    most_links: int | None = parameter(
        None,
        "connections that a node has at most, both ways (blocks/acceptance); none: whoever is linked to accepts",
        source="ours: the papers bound the links that a node chooses, not those that others have to it",
        low=5,
        high=100_000,
    )
