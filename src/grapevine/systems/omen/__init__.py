"""OMen (Chen, Vitenberg & Jacobsen, DEBS 2016): every topic connected, few links, and mended locally under churn.

The overlay starts as LowODA designs it. Nodes also form an identifier ring; for its L predecessors each node prepares
what mending takes: the neighbours of the predecessor, and a backup set, a few nodes that want all its topics (gossiped,
`backups`). When a node joins, leaves or fails, its successor coordinates: it runs LowODA on the shadow set,
backups and neighbours, which is hundreds of times smaller than the network (Algorithm 1, `overlay_design.mend`). The
next L - 1 successors stand by, so that up to L concurrent events are handled even if coordinators are among them.

Differs from the paper (docs/papers.md#omen): who is found dead while a shadow set is collected is replaced by its own
neighbours, without which concurrent departures of neighbours could part a topic; topics of a newcomer for which nobody
was found are linked as soon as somebody is; who has been told that an event is handled drops it from its queue, too.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="omen",
        paper="Chen, Vitenberg & Jacobsen, DEBS 2016",
        summary="few links and every topic connected: LowODA's overlay, mended under churn among prepared backups",
        rounds="grapevine.systems.omen.rounds:Omen",
    )
)
