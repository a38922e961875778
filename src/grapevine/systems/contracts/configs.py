"""Parameters that several systems share, whoever plays them: rounds, peers in virtual time, or live nodes."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.blocks.consent import Printed
from grapevine.model.config import Config, parameter

RULES = "prose", "printed"  # where SpiderCast's text and its figures differ


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
    """For systems whose topics have more edges than an event needs."""

    dissemination: str = parameter(
        "flood",
        "events flood the edges of the topic, or follow a tree of them, while lazy links tell ids",
        source="SpiderCast §5; Plumtree (blocks/eager_links)",
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


@dataclass(frozen=True, kw_only=True)  # no slots, so that a config can have two of these as bases
class ConnectionRules(Config):
    """Parameters of the rules by which both ends agree on links, whoever plays them (`blocks/consent`)."""

    margin: int = parameter(
        5,
        "links that a node accepts beyond its limit (Margin)",
        source="SpiderCast §2.3",
        low=0,
    )
    quarantine_rounds: int = parameter(
        5, "rounds before the same node is asked again", source="SpiderCast §2.3.1 names no period", low=0, high=1_000
    )
    max_age: int = parameter(
        3, "rounds without heartbeat after which a neighbour is dropped", source="SpiderCast §2.3 names none", low=1
    )
    target_rule: str = parameter(
        "prose",
        "when an accepted link raises the target L: from Margin above it on (prose), or always (printed)",
        source="SpiderCast §2.3: prose; Fig. 4, lines 4, 15: printed",
        choices=RULES,
    )
    disconnect_rule: str = parameter(
        "prose",
        "who lets a needed neighbour go: who is above its limit L^max (prose), or above its target L (printed)",
        source="SpiderCast §2.3.1: prose; Fig. 4, line 23: printed",
        choices=RULES,
    )
    redirect_rule: str = parameter(
        "prose",
        "who is named in a REDIRECT: a neighbour below its target (prose), or less than Margin above it (printed)",
        source="SpiderCast §2.3.1: prose; Fig. 4, line 7: printed",
        choices=RULES,
    )

    @property
    def printed(self) -> Printed:
        """Which of the rules are those of the figures."""
        chosen = self.target_rule, self.disconnect_rule, self.redirect_rule
        return Printed(*(rule == "printed" for rule in chosen))


@dataclass(frozen=True, kw_only=True)  # no slots, as above
class ConnectionConfig(ConnectionRules, FloodingConfig):
    """Parameters of SpiderCast by rounds, and of the rivals that run its code."""

    view_share: float = parameter(
        1.0,
        "share of all nodes that a node knows, with their interests; 1: full membership",
        source="SpiderCast §3.7: 0.05 … 1",
        low=0.001,
        high=1,
    )
    ties: str = parameter(
        "random",
        "of equally good nodes everybody asks a random one of its own (random), or all the same one: by a common order "
        "(order), or by one that is drawn anew in every round, as if all nodes had the same random numbers (stream)",
        source="SpiderCast Fig. 5: random; order and stream are experiments of ours (docs/papers.md#spidercast)",
        choices=("random", "order", "stream"),
    )
