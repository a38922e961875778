"""What a workload looks like, among the results of a run on it: the rows of Vitis Fig. 9, for claims about traces."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.distributions import Histogram
from grapevine.metrics.findings import finding
from grapevine.metrics.power_law import fit_power_law
from grapevine.model.workload import Workload

WORKLOAD_NODES = finding(Metric("workload_nodes", "nodes of the workload", "Nodes, online or not."))
SUBSCRIPTIONS_MEAN = finding(
    Metric("subscriptions_mean", "subscriptions a node", "Subscriptions, in the mean over all nodes.")
)
WORKLOAD_MAX = finding(Metric("workload_{kind}_max", "{kind}, max", "The most {kind} that a node, or a topic, has."))
WORKLOAD_EXPONENT = finding(
    Metric(
        "workload_{kind}_exponent",
        "exponent of {kind}",
        "The power-law exponent of the best-fitting tail of the numbers of {kind}.",
    )
)
WORKLOAD_WHOLE_EXPONENT = finding(
    Metric(
        "workload_{kind}_whole_exponent",
        "exponent of all {kind}",
        "The power-law exponent of the numbers of {kind}, fitted to all that have any.",
    )
)


def describe(workload: Workload) -> dict[str, float | None]:
    """The metrics of this module by name; an exponent is None where no power law can be fitted."""
    found: dict[str, float | None] = {
        WORKLOAD_NODES.name: workload.node_count,
        SUBSCRIPTIONS_MEAN.name: workload.subscription_count / workload.node_count,
    }
    for kind, rows in (("subscriptions", workload.node_topics), ("subscribers", workload.topic_nodes)):
        sizes = rows.sizes()
        histogram = Histogram.of(sizes[sizes > 0])
        tail, whole = fit_power_law(histogram), fit_power_law(histogram, tail_start=1)
        found[WORKLOAD_MAX.of(kind=kind).name] = float(sizes.max())
        found[WORKLOAD_EXPONENT.of(kind=kind).name] = tail.exponent if tail else None
        found[WORKLOAD_WHOLE_EXPONENT.of(kind=kind).name] = whole.exponent if whole else None
    return found
