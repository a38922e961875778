"""Trellis (this repository, 2026): clusters on agreed links under a hard bound, joined by bridges of single nodes.

Links are agreed on by both ends, and no node ever has more than k. The subscribers of a topic that links connect form
clusters, each with a root whose label spreads along a tree. A node that does not want a topic but has neighbours in two
of its clusters offers itself as a bridge; every cluster but the lowest takes one, always to a lower one, so that there
are no cycles. Where nobody offers, a probe of two hops, then a lookup finds a way. An event travels the topic's tree
once, and a few other links carry its id, so that what is missing is asked for.

The rules are `rules`, the protocol is docs/trellis.md.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="trellis",
        paper="this repository, 2026",
        summary="clusters on agreed links under a hard bound, joined by bridges of single nodes",
        rounds="grapevine.systems.trellis.rounds:Trellis",
        peers="grapevine.systems.trellis.peers:TrellisPeers",
        live="grapevine.systems.trellis.live:LiveTrellis",
    )
)
