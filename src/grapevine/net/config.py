"""Bounds and periods of a live node. Whatever a peer can make grow has its bound here."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter
from grapevine.net.wire import FRAME_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig(Config):
    """How much a node gives to others, and how long it waits for them."""

    frame_bytes: int = parameter(
        FRAME_LIMIT,
        "bytes of the longest frame; who announces more is banned",
        source="ours: no event is a file",
        low=1024,
    )
    most_connections: int = parameter(
        256,
        "open connections; idle ones make room for new peers, links do not. Twice as many may be greeting or closing",
        source="ours: several times any table and its reverse",
        low=2,
    )
    queue_bytes: int = parameter(
        4 << 20,
        "bytes that may wait for one peer to read them; beyond, messages are dropped",
        source="ours",
        low=65_536,
    )
    slow_s: float = parameter(
        10.0, "seconds after which a peer whose queue stays full is cut off and blamed", source="ours", low=0.1
    )
    rate_bytes: int = parameter(
        8 << 20, "bytes a second that one peer may send; more waits in its own buffers", source="ours", low=1024
    )
    rate_messages: int = parameter(
        5_000, "messages a second that one peer may send; more wait in its own buffers", source="ours", low=10
    )
    idle_s: float = parameter(
        15.0, "seconds without a message until a connection that is no link is closed", source="ours", low=0.1
    )
    dial_s: float = parameter(5.0, "seconds to reach a peer, handshake and hello included", source="ours", low=0.1)
    retry_s: float = parameter(
        5.0, "seconds until an unreachable peer, or a lost bootstrap node, is tried again", source="ours", low=0.0
    )
    ban_s: float = parameter(
        60.0, "seconds that a peer which broke the rules is refused", source="ours: points halve in as long", low=0.0
    )
    contacts: int = parameter(
        10_000, "peers whose whereabouts are remembered; the least recently used go first", source="ours", low=16
    )
    payload_bytes: int = parameter(
        262_144,
        "bytes of the longest payload; longer ones of others are refused",
        source="ours: a quarter of a frame",
        low=1,
    )
    publish_s: float = parameter(
        10.0, "seconds that `publish` waits for a path, then NoPath", source="ours: ten rounds of gossip", low=0.0
    )
    recover_every_s: float = parameter(
        2.0, "seconds between two comparisons with a partner of what both possess", source="ours", low=0.05
    )
    recover_s: float = parameter(
        3_600.0, "seconds that who carries a topic for others looks back", source="ours: most outages end", low=0
    )
    gap_limit: int = parameter(
        10_000,
        "events of a publisher and topic that may be missing at a time; older ones are given up",
        source="ours",
        low=1,
    )
    publishers: int = parameter(
        10_000, "publishers of a topic of which accounts are kept; events of others are not kept", source="ours", low=1
    )
    patience: int = parameter(
        8, "answers without an event after which it is given up (and counted)", source="ours: several neighbours", low=1
    )
    order_s: float = parameter(
        60.0,
        "seconds that a named reader waits for a missing event before later ones of its publisher; then it gets a Gap",
        source="ours: longer than giving up takes",
        low=0,
    )
    membership_s: float = parameter(
        600.0, "seconds that a publisher stays a member of a topic which it does not subscribe to", source="ours", low=0
    )
    durability: str = parameter(
        "power",
        "what an acknowledged event survives: loss of power (a sync for every commit), or the end of the process",
        source="ours",
        choices=("power", "process"),
    )

    def mistakes(self) -> list[str]:
        if 2 * self.payload_bytes > self.frame_bytes:
            return [f"payload_bytes={self.payload_bytes}: needs at most half of frame_bytes={self.frame_bytes}"]
        return []
