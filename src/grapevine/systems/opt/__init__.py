"""OPT (the unstructured baseline of Vitis §IV): an overlay per topic with few links, as in SpiderCast.

A node links to candidates that serve as many of its topics as possible, until every topic is served K times or the
table is full; sampling and exchange are those of Vitis. Events flood the links between subscribers and nothing else, so
there are no relays, and a topic whose subscribers are not connected misses events. The bound holds for connections both
ways: a node that has enough refuses further ones, or popular nodes would have thousands.

The paper names neither K nor the rule; ours are SpiderCast's greedy coverage with K = 3 (docs/papers.md#opt).
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="opt",
        paper="the unstructured baseline of Vitis, IPDPS 2011, §IV (as SpiderCast, Chockler et al. 2007)",
        summary="an overlay per topic by greedy coverage; no relays, and no guarantee when the degree is bounded",
        rounds="grapevine.systems.opt.rounds:Opt",
    )
)
