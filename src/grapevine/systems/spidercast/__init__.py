"""SpiderCast (Chockler, Melamed, Tock & Vitenberg, DEBS 2007): one overlay in which every topic is connected.

Nodes know others and their interests from a membership service. Each node looks for neighbours that cover each of its
topics K times: the greedy task takes whoever covers most of what is uncovered, the random task anyone who covers
something. Connections are agreed on by both ends; nodes that have more than they need let links go. With correlated
interests a few links cover many topics. Three links a topic connect it with high probability when they are random, and
in practice also when most are greedy. Events then travel over links between subscribers alone.

What a node decides is in `blocks/consent`, whom it chooses in `blocks/coverage`; `blocks/connections` plays that by
rounds, `peer/` message by message. Differs from the paper: a synchronous round is an iteration of the maintenance loop;
where the figures and the prose differ, rules are those of the prose unless a parameter says otherwise; peers have
gossip where the paper assumes a membership service (docs/papers.md#spidercast has every reading).
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="spidercast",
        paper="Chockler, Melamed, Tock & Vitenberg, DEBS 2007",
        summary="one overlay in which every topic is connected: greedy and random coverage of each node's topics",
        rounds="grapevine.systems.spidercast.rounds:SpiderCast",
        peers="grapevine.systems.spidercast.peers:SpiderCastPeers",
        live="grapevine.systems.spidercast.live:LiveSpiderCast",
    )
)
