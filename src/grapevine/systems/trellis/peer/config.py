"""Parameters of Trellis, message by message: its rules' own, periods as times, and how much of others a node bears."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class TrellisPeerConfig(Config):
    """Trellis: clusters on agreed links under a hard bound, joined by bridges of single nodes."""

    most_links: int = parameter(
        15,
        "links that a node has at most, whoever asked for them; two keep the ring (k)",
        source="Vitis §IV-A has tables of 15; here both ends count",
        low=5,
        high=1_000,
    )
    sample_size: int = parameter(20, "random nodes in the cache of samples", source="Newscast: 20", low=1, high=200)
    sample_turns: int = parameter(
        1,
        "turns between two samples of a random node; in the others a neighbour is asked",
        source="ours: 1, as by rounds; a live node needs a connection for each",
        low=1,
        high=100,
    )
    ring_backups: int = parameter(
        4, "nodes remembered in each direction of the ring, the next one included", source="as Vitis here", low=1
    )
    prospects: int = parameter(
        15, "nodes remembered that would be the best friends but are not linked", source="ours: as many as links", low=1
    )
    enough_neighbours: int = parameter(
        2,
        "neighbours in a topic up to which a further one is worth something (spare_value)",
        source="SpiderCast §2.2: K of 2 or 3 keep a topic connected",
        low=0,
    )
    spare_value: float = parameter(
        0.25, "worth of a neighbour in a topic that is no edge of its tree", source="ours", low=0, high=1
    )
    surplus_value: float = parameter(
        0.05, "worth of such a neighbour where there are enough already", source="ours", low=0, high=1
    )
    bridge_value: float = parameter(0.5, "worth of an edge of a way that is in use", source="ours", low=0)
    requests: int = parameter(2, "friends that a node asks in a turn, at most", source="ours", low=1, high=10)
    margin: float = parameter(
        0.75, "by how much a new friend must be better than what it replaces", source="ours: or links never rest", low=0
    )
    stiffness: float = parameter(0.25, "what the margin grows by whenever the period doubles", source="ours", low=0)
    margin_after_loss: float = parameter(
        6.0,
        "the margin for calm_s after a neighbour was lost by silence",
        source="ours: free slots find free slots first, and nobody is pushed out",
        low=0,
    )
    turn_s: float = parameter(
        1.0, "seconds between two turns (gossip, wishes) while something changes", source="Vitis §IV-E", low=0.01
    )
    most_turn_s: float = parameter(
        32.0, "seconds between two turns at most; doubles up to here while all is as it was", source="RFC 6206: Imax"
    )
    calm_s: float = parameter(
        15.0, "seconds without change after which turns become rarer", source="ours: a dozen turns see a change first"
    )
    patience_s: float = parameter(
        4.0,
        "seconds without change after which a label counts in the choice of friends",
        source="ours: while labels spread, any two clusters look different",
        low=0,
    )
    linger_s: float = parameter(
        5.0,
        "seconds for which a way is kept that is no longer wanted",
        source="ours: make before break, while news travel",
        low=0,
    )
    grace_s: float = parameter(
        1.5, "seconds that a new root waits for a bridge before it looks for a way itself", source="ours", low=0
    )
    heartbeat_s: float = parameter(
        2.0, "seconds after which a neighbour gets a sign of life if it got nothing else", source="ours", low=0.01
    )
    silence_s: float = parameter(
        8.0,
        "seconds without an answer after which a link is over",
        source="ours: four heartbeats and a delay",
        low=0.05,
    )
    answer_s: float = parameter(
        3.0, "seconds that an answer may take: to a request, a question, or facts", source="ours", low=0.01
    )
    gap_s: float = parameter(
        0.2, "seconds between two updates to a neighbour, at least", source="ours: gathers what changes together", low=0
    )
    ids_s: float = parameter(
        0.5, "seconds for which ids of events are gathered for lazy links", source="Plumtree §3.8: batches; ours", low=0
    )
    graft_s: float = parameter(
        1.0, "seconds between the id of an event and the question for it", source="Plumtree §3.6: timeout1; ours", low=0
    )
    shortcut_hops: int = parameter(
        3, "by so many hops an id must have come shorter to replace an eager link", source="Plumtree §3.7; ours", low=1
    )
    most_topics: int = parameter(
        100_000, "topics that a node may subscribe to", source="ours: bounds what strangers may send", low=1
    )
    most_relays: int = parameter(
        20_000, "topics that a node carries for one neighbour", source="ours: bounds what strangers may ask", low=1
    )

    def mistakes(self) -> list[str]:
        found = []
        if self.silence_s < 2 * self.heartbeat_s:
            found.append(f"silence_s={self.silence_s:g}: needs two heartbeats ({2 * self.heartbeat_s:g}) at least")
        if self.most_turn_s < self.turn_s:
            found.append(f"most_turn_s={self.most_turn_s:g}: needs to be turn_s ({self.turn_s:g}) at least")
        if self.enough_neighbours > self.most_links:
            found.append(f"enough_neighbours={self.enough_neighbours}: a node has {self.most_links} links")
        return found
