"""similarity(x, y) and random(y) (SpiderCast §3.9.1): links to the most similar nodes, and to random ones.

SpiderCast's code with other wishes: a node wants x neighbours, each time the one with the most topics in common, and y
random ones. Nobody looks at what is covered already, so an unpopular topic is easily left in pieces. random(y) is
similarity(0, y).
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="similarity",
        paper="the rivals of SpiderCast, DEBS 2007, §3.9.1 (similarity after Chand & Felber 2005)",
        summary="links to the most similar and to random nodes, whatever is covered; no guarantee of delivery",
        rounds="grapevine.systems.similarity.rounds:Similarity",
    )
)
