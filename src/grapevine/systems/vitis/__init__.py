"""Vitis (Rahimian et al., IPDPS 2011): gossip clusters joined by relay paths.

Nodes with similar subscriptions become friends, so the subscribers of a topic form a few clusters. Two links of every
table keep an identifier ring and some more are long links, which makes the whole a navigable small world. Inside a
cluster the members agree, by gossip, on gateways: the members nearest to the topic's id within a few hops. Each gateway
looks the topic's id up; the nodes on the way become relays, and since all lookups end at the same rendezvous node, all
clusters are joined. An event floods its cluster, and the relay paths carry it to the others.

Differs from the paper: a round answers from its start (docs/papers.md#rounds); links carry events both ways; every
other round the exchange goes to a ring link; a node never takes its own proposal back from a neighbour.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="vitis",
        paper="Rahimian, Girdzijauskas, Payberah & Haridi, IPDPS 2011",
        summary="gossip clusters of similar nodes, joined by relay paths over a small-world ring",
        rounds="grapevine.systems.vitis.rounds:Vitis",
        peers="grapevine.systems.vitis.peers:VitisPeers",
        live="grapevine.systems.vitis.live:LiveVitis",
    )
)
