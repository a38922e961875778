"""Vitis' claims about lookups (§III): how they grow with the network, and with fewer long links."""

from __future__ import annotations

import math
from itertools import pairwise

from grapevine.experiment.claims.base import (
    Evidence,
    Finding,
    claim,
    falls,
    graded,
    listed,
    met_if,
)
from grapevine.metrics.findings import LOOKUP_HOPS
from grapevine.metrics.traffic import HOPS


@claim("V17", "§III-A1", "k long links: lookups of O(log² N / k) hops", "≤ 1.25 × the law", "vitis_long_links")
def _(evidence: Evidence) -> Finding:
    """§III-A1, after Symphony: with k long links a lookup takes hops in the order of log² N / k. Doubling k may leave
    half the hops, and not fewer than a few: the law is judged from 2 to 4 and from 4 to 8 links."""
    hops = evidence.curve("vitis_long_links", LOOKUP_HOPS, "rvr", "random", "table_size")
    halves = [b / a for a, b in pairwise(hops)]
    return graded(
        band=max(halves[:2]) <= 0.5 * 1.25,
        direction=falls(hops),
        measured=f"{listed(hops, 1)} hops with 2/4/8/16/32 long links; each doubling leaves {listed(halves, 2)}",
        remark="the law is an upper bound for few links: lookups that go the shorter way round and look at all links "
        "take fewer hops with two links already, so there is less left to halve",
    )


@claim("V14", "§III-B", "lookup O(log² N / k), delay O(log² N + d)", "measured growth", "vitis_growth")
def _(evidence: Evidence) -> Finding:
    hops = evidence.curve("vitis_growth", LOOKUP_HOPS, "rvr", "random", "nodes")
    delay = evidence.curve("vitis_growth", HOPS, "vitis", "random", "nodes")
    sizes = sorted(row["parameters"]["nodes"] for row in evidence.rows("vitis_growth", LOOKUP_HOPS, "rvr"))
    bound = (math.log(sizes[-1]) / math.log(sizes[0])) ** 2
    growth = hops[-1] / hops[0], delay[-1] / delay[0]
    return met_if(
        max(growth) <= bound,
        f"{sizes[0]:,} → {sizes[-1]:,} nodes: lookups {hops[0]:.1f} → {hops[-1]:.1f} hops ({growth[0]:.2f}-fold), "
        f"Vitis' delay {delay[0]:.1f} → {delay[-1]:.1f} ({growth[1]:.2f}-fold); log² N grows {bound:.2f}-fold",
    )
