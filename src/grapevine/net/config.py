"""Bounds and periods of a live node. Whatever a peer can make grow has its bound here."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.net.origins import parse_networks
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
        "open connections; `slots` says who makes room for whom. Twice as many may be greeting or closing",
        source="ours: several times any table and its reverse",
        low=2,
    )
    own_share: float = parameter(
        0.25,
        "share of the connections that is kept for those which this node opens itself",
        source="ours: whoever is surrounded by strangers still reaches whom it chose; four tables of Vitis",
        low=0.0,
        high=0.9,
    )
    most_per_address: int = parameter(
        32,
        "connections that others may open from one address; of IPv6, from a /64",
        source="ours: an eighth of all; many nodes behind one router, and too few to surround anybody",
        low=1,
    )
    most_per_subnet: int = parameter(
        64,
        "connections that others may open from one subnet: IPv4 /24, IPv6 /48",
        source="ours: a quarter of all; what one customer of a provider has",
        low=1,
    )
    uncounted: str = parameter(
        "127.0.0.0/8 ::1/128",
        "networks whose addresses are not counted: this machine, and your own where all nodes are yours; with spaces",
        source="ours: a network on one machine, or in one office, is no crowd of strangers",
    )
    most_handshakes: int = parameter(
        128,
        "connections that prove who they are now; more wait until one has, or has had handshake_grace_s",
        source="ours: 0.3 MB each; with 10 ms for each that is 10,000 newcomers a second",
        low=1,
    )
    most_silent: int = parameter(
        256,
        "connections that have said nothing yet; the next pushes out the oldest",
        source="ours: a socket each, of which a process may have 1,024",
        low=1,
    )
    handshakes_per_address: int = parameter(
        16, "connections of either kind from one address; more are closed at once", source="ours: an eighth", low=1
    )
    handshake_rate: float = parameter(
        32.0,
        "handshakes a second that one address may begin; more are closed at once",
        source="ours: each takes 2 ms of CPU, so a flood of one address takes 6 % of a core",
        low=1.0,
    )
    handshake_grace_s: float = parameter(
        0.5,
        "seconds that a handshake has while others wait; then it makes room",
        source="ours: two round trips around the world",
        low=0.01,
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
        try:
            parse_networks(self.uncounted)
        except UsageError as error:
            return [f"uncounted: {error}"]
        if 2 * self.payload_bytes > self.frame_bytes:
            return [f"payload_bytes={self.payload_bytes}: needs at most half of frame_bytes={self.frame_bytes}"]
        return []

    @property
    def most_incoming(self) -> int:
        """Connections that others may open; the rest is for those that this node opens."""
        return self.most_connections - int(self.own_share * self.most_connections)
