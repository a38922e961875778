"""Parameters of Rappel."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class RappelConfig(Config):
    """Rappel: sizes, periods and time-outs. All nodes of a network have the same."""

    friends: int = parameter(6, "most friends of a node, α; fans are twice as many", source="§3.1.1, §6.1.5", low=1)
    children: int = parameter(5, "most children of a node in a feed's tree, β", source="§4.1, §6.1.5", low=1)
    hysteresis: float = parameter(
        0.01, "a friend is exchanged when the utility grows by more than this share, δ", source="§3.4", low=0
    )
    interest: str = parameter(
        "both",
        "what a friend's utility counts: interest over distance, or the interest alone",
        source="Fig. 3; Fig. 9b compares the two",
        choices=("both", "alone"),
    )
    least_ms: float = parameter(
        1.0, "distances below this count as this", source="ours: two nodes may have one position", low=0.001
    )
    ping_s: float = parameter(30.0, "seconds between two pings of a neighbour", source="§3.3, §4.1", low=0.1)
    timeout_s: float = parameter(15.0, "seconds after which a request has failed", source="§3.3", low=0.1)
    audit_s: float = parameter(30.0, "seconds between two audits of a candidate", source="§3.4", low=0.1)
    virgin_audit_s: float = parameter(
        1.0, "seconds between two audits while feeds wait to be joined", source="ours: §5.2 says continually", low=0.1
    )
    rejoin_s: float = parameter(600.0, "seconds between two rejoins of a feed's tree", source="§4.3", low=1)
    stagger_s: float = parameter(20.0, "seconds between two joins at publishers", source="§5.2", low=0)
    staggered_joins: int = parameter(
        12, "joins at publishers in this way; all others then at once", source="§5.2", low=1
    )
    leave_s: float = parameter(30.0, "longest wait for children before a proper leave", source="§4.4", low=0)
    cache_size: int = parameter(10, "recent updates of a feed that a node keeps", source="§4.1", low=1)
    recover_gaps: bool = parameter(
        True, "pull what sequence numbers show to be missing, also without a new parent", source="§4.1"
    )
    signed: bool = parameter(False, "publishers sign their updates, and every node checks them", source="§4.1")
    name_failed: bool = parameter(
        True,
        "who lost its parent names it, so that nobody sends it back there",
        source="ours: §4.1 does not say how an orphan avoids the dead parent",
    )
    landmarks: int = parameter(18, "landmark servers", source="§6.1.4", low=3, high=1_000)
    landmark_rounds: int = parameter(
        4, "times that a newcomer measures its distance to each", source="ours: §6.1.4 says a matter of seconds", low=1
    )
    dimensions: int = parameter(
        3, "dimensions of the coordinates", source="ours: two fit PlanetLab worse, more hardly better", low=2, high=20
    )

    heights: bool = parameter(
        False,
        "coordinates have a height besides, the way from a node to the core of the network",
        source="ours: Vivaldi §5.4; Rappel names Vivaldi and no variant",
    )

    def mistakes(self) -> list[str]:
        if self.timeout_s >= self.ping_s:
            return [f"timeout_s={self.timeout_s:g}: needs to be less than ping_s={self.ping_s:g}, or nobody ever fails"]
        return []

    @property
    def silence_s(self) -> float:
        """A fan or a child that has not pinged for longer than this has failed (§3.3, §4.1)."""
        return self.ping_s + self.timeout_s

    @property
    def position_size(self) -> int:
        """Numbers in a node's coordinates."""
        return self.dimensions + self.heights

    @property
    def fans(self) -> int:
        """Most fans of a node (§3.1.2)."""
        return 2 * self.friends

    @property
    def candidates(self) -> int:
        """Most candidates: friends of friends, friends of fans, fans (§3.3)."""
        return 3 * self.friends**2 + 2 * self.friends


@dataclass(frozen=True, slots=True, kw_only=True)
class RappelPeersConfig(RappelConfig):
    """Rappel on a simulated network, where what nobody in it could know can be asked, too."""

    best_friends: int = parameter(
        0,
        "with full knowledge: whom would so many best friends cover? 0: not asked",
        source="Rappel Fig. 1",
        low=0,
        high=100,
    )
    filter_probes: int = parameter(
        0,
        "ask Bloom filters of 50, 100 and 200 feeds so many times for feeds that they do not hold; 0: not asked",
        source="Rappel §2.2",
        low=0,
    )
