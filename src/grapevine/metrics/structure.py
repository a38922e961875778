"""What an overlay looks like at the end of a run: degrees and load of nodes, and the parts that topics are in."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric, add
from grapevine.metrics.definitions import Largest, Mean, Share, Where
from grapevine.metrics.measured import Measure, MeasuredTable, Quantity, declare
from grapevine.model.tables import NODE_LOAD, TOPIC_OVERLAY

_ONLINE = Where("online", "=", True)
_DEGREES = 15, 200  # Vitis Fig. 11 asks for the shares above these
_MUCH_OVERHEAD = 0.2  # Vitis Fig. 5 counts nodes with more

DEGREE = Metric("degree", "degree", "Neighbours of an online node, in the mean.", better="low")
DEGREE_MAX = Metric("degree_max", "degree, max", "The most neighbours that an online node has.", better="low")
DEGREE_DEVIATION = Metric(
    "degree_deviation", "degree, standard deviation", "How far the degrees of online nodes lie apart.", better="low"
)
DEGREE_OVER = add(
    Metric(
        "degree_over_{number}",
        "nodes with more than {number} neighbours",
        "The share of online nodes with more than {number} neighbours.",
        share=True,
        better="low",
    )
)
NODES_OVER_20_PERCENT = Metric(
    "nodes_over_20_percent",
    "nodes with over 20% overhead",
    "The share of nodes of whose notifications more than 20 % were not wanted, among those that received any.",
    share=True,
    better="low",
)
OVERHEAD_OF_NODES = Metric(
    "overhead_of_nodes",
    "overhead, mean over nodes",
    "The share of a node's notifications that it did not want, in the mean over nodes that received any.",
    share=True,
    better="low",
)
LOAD_MAX = Metric(
    "load_max",
    "notifications, busiest node",
    "Notifications that the busiest node receives while every topic publishes once, weighted by topic rates whose mean "
    "is 1.",
    better="low",
)
CLUSTERS_PER_TOPIC = Metric(
    "clusters_per_topic",
    "clusters per topic",
    "Connected parts of the links between a topic's online subscribers, in the mean over topics that have any.",
    better="low",
)
CONNECTED_TOPICS = Metric(
    "connected_topics",
    "topics in one cluster",
    "The share of topics whose online subscribers are connected with each other, among those that have at least two.",
    share=True,
    better="high",
)
CLUSTERS = Metric("clusters", "clusters", "Clusters of all topics together.", better="low")
PARTITIONED_TOPICS = Metric(
    "partitioned_topics", "partitioned topics", "Topics whose online subscribers form several clusters.", better="low"
)
GATEWAYS_PER_TOPIC = Metric(
    "gateways_per_topic",
    "gateways per topic",
    "Subscribers that look up a topic's rendezvous, in the mean.",
    better="low",
)
DIAMETER = Metric(
    "diameter",
    "diameter, mean",
    "The longest shortest path between a topic's subscribers inside the topic, in the mean over the topics in one "
    "cluster whose diameter was asked for: one in pieces has no finite diameter.",
    "hops",
    better="low",
)
DIAMETER_MAX = Metric("diameter_max", "diameter, max", "The largest diameter of these topics.", "hops", better="low")

NODES = declare(
    MeasuredTable(
        NODE_LOAD,
        (
            Measure.defined(DEGREE, Mean("degree", _ONLINE)),
            Measure(
                DEGREE_DEVIATION,
                "sqrt(sum(degree * degree) FILTER (WHERE online) / sum(CAST(online AS BIGINT))"
                " - pow(avg(degree) FILTER (WHERE online), 2))",
            ),
            Measure.defined(DEGREE_MAX, Largest("degree", _ONLINE)),
            Measure(LOAD_MAX, "max(wanted + duplicate + unwanted)"),
            Measure.defined(OVERHEAD_OF_NODES, Mean("overhead")),
            Measure.defined(NODES_OVER_20_PERCENT, Share(Where("overhead", ">", _MUCH_OVERHEAD))),
            *(
                Measure(DEGREE_OVER.of(number=most), Share(Where("degree", ">", most), _ONLINE).sql())
                for most in _DEGREES
            ),
        ),
        quantities=(Quantity("overhead", "overhead", share=True, steps=10), Quantity("degree", "degree")),
    )
)

TOPICS = declare(
    MeasuredTable(
        TOPIC_OVERLAY,
        (
            Measure.defined(CLUSTERS_PER_TOPIC, Mean("clusters")),
            Measure.defined(CONNECTED_TOPICS, Share(Where("clusters", "=", 1), Where("subscribers", ">", 1))),
            Measure(CLUSTERS, "sum(clusters)"),
            Measure(PARTITIONED_TOPICS, "sum(CAST(clusters > 1 AS BIGINT))"),
            Measure.defined(GATEWAYS_PER_TOPIC, Mean("gateways")),
            Measure(DIAMETER_MAX, "max(diameter) FILTER (WHERE clusters = 1)"),
            Measure(DIAMETER, "avg(diameter) FILTER (WHERE clusters = 1)"),
        ),
        where=Where("subscribers", ">", 0),
    )
)
