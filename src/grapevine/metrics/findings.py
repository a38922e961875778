"""Numbers that no table holds: a driver or a system works them out at the end of a run, and its manifest keeps them."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric, add

_FINDINGS: list[Metric] = []


def finding(metric: Metric) -> Metric:
    """Have a number of the manifest among the metrics of a run from now on; returns the metric."""
    if metric not in _FINDINGS:  # systems may share one
        _FINDINGS.append(add(metric))
    return metric


def is_finding(name: str) -> bool:
    """Whether a number of this name in a manifest is a metric of the run; others repeat what its tables tell."""
    return any(metric.name == name or (metric.is_family and metric.member(name)) for metric in _FINDINGS)


LOOKUP_HOPS = finding(
    Metric(
        "lookup_hops",
        "hops of a lookup",
        "Steps of a lookup by the ring's links, or of a route where a system has routes of its own, in the mean.",
        "hops",
        better="low",
    )
)
UTILITY = finding(
    Metric("utility", "utility", "Mean utility (Vitis Eq. 1) of the links of a sample of nodes.", better="high")
)
RING = finding(
    Metric(
        "ring",
        "ring correctness",
        "The share of online nodes that know their true successor and predecessor.",
        share=True,
        better="high",
    )
)
TOP_INTERSECTION = finding(
    Metric(
        "top_intersection",
        "top-d intersection",
        "How much of their topics nodes have in common with the most similar others (tdi of SpiderCast §3.4).",
        "percent",
    )
)
OVERLAY_DIAMETER = finding(
    Metric(
        "overlay_diameter",
        "diameter by way of any node, mean",
        "The longest shortest path between a topic's subscribers in the whole overlay, by way of any node, in the mean "
        "over the topics whose diameter was asked for and whose subscribers reach each other.",
        "hops",
        better="low",
    )
)
OVERLAY_DIAMETER_MAX = finding(
    Metric(
        "overlay_diameter_max",
        "diameter by way of any node, max",
        "The largest of these diameters.",
        "hops",
        better="low",
    )
)
POPULARITY_EXPONENT = finding(
    Metric(
        "popularity_exponent",
        "exponent of topic popularity",
        "The power-law exponent of the tail of the topics' numbers of subscribers.",
    )
)
MESSAGES = finding(Metric("messages", "messages", "Messages of a whole run.", better="low"))
WALL_S = finding(Metric("wall_s", "wall time", "How long the run took.", "s", better="low"))
CPU_S = finding(Metric("cpu_s", "CPU time", "Processor time that it took.", "s", better="low"))
