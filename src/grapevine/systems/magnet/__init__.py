"""Magnet (Girdzijauskas, Chockler, Vigfusson, Tock & Melamed, DEBS 2010): similar nodes are neighbours on a ring.

A node that joins learns from a membership service a few subscribers of each of its topics, with their interests, and
joins the ring next to the most similar of them (Algorithm 1). So ids are skewed, and long links are
Oscar's (`oscar`), which do not mind. Every topic has a home, found by hashing its name on a second ring, the
control ring. Its events go from there to all subscribers on the greedy routes of the first ring. Routes to similar
nodes share most of their way, so few nodes relay what they do not want. The strawman is the same on hashed ids.

Differs from the paper (docs/papers.md#magnet): a topic's tree is not stored but is what the tree join (Algorithm 2)
makes of the current links, since both are the greedy routes from the home; a link that is silent is not used, so trees
mend with the heartbeats of links. Joins, homes, the circle and the control ring are exact and take no time: what they
cost in messages is counted (`home_trees`), but under churn the overlay is better than messages would make it.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="magnet",
        paper="Girdzijauskas, Chockler, Vigfusson, Tock & Melamed, DEBS 2010",
        summary="nodes of similar interests are neighbours on a ring; trees of greedy routes from each topic's home",
        rounds="grapevine.systems.magnet.rounds:Magnet",
    )
)
