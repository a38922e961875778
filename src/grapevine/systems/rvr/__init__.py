"""RVR (the structured baseline of Vitis §IV): rendezvous routing with one multicast tree per topic, as in Scribe.

All links serve the small world: successor, predecessor and long links, from the same sampling and exchange as Vitis.
Every subscriber looks its topic's id up; the paths form a tree with the rendezvous node as root, and events travel on
the tree's edges alone. What a node subscribes to has no influence on its links.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="rvr",
        paper="the structured baseline of Vitis, IPDPS 2011, §IV (as Scribe, Castro et al. 2002)",
        summary="rendezvous routing: a multicast tree per topic over a small-world ring, blind to interests",
        rounds="grapevine.systems.rvr.rounds:Rvr",
    )
)
