"""What `grapevine cluster` counts while a live network runs; everything else of it is measured from diaries."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric, add

_MIB = 2.0**20

DELIVERED = add(Metric("delivered", "deliveries", "Events that subscribers' applications read.", better="high"))
EXPECTED = add(Metric("expected", "deliveries expected", "Deliveries if every subscriber got every event."))
DUPLICATES = add(Metric("duplicates", "delivered twice", "Events that an application was given again.", better="low"))
RECOVERED = add(Metric("recovered", "deliveries recovered", "Events that nodes asked for, because they missed them."))
RECOVERY_MS_AT = Metric(
    "recovery_ms_{quantile}",
    "recovery, {quantile}",
    "From the end of a fault (a process is started again, a cable is plugged in, a disk has room) to the delivery of "
    "what was missing then, {quantile} of these deliveries.",
    "ms",
    better="low",
)
LOSSES_REPORTED = add(
    Metric("losses_reported", "losses reported", "Deliveries that did not come, and that readers were told of.")
)
EVENTS = add(Metric("events", "events", "Published events."))
WITHOUT_PATH = add(
    Metric("without_path", "events without a path at first", "Events that their publisher could first send to nobody.")
)
SKIPPED = add(Metric("skipped", "events not published", "Events whose publisher was down when they were due."))
UNCONFIRMED = add(
    Metric("unconfirmed", "events not confirmed", "Events that were ordered and whose publication nobody confirmed.")
)
EVENTS_PER_S = add(Metric("events_per_s", "events a second", "Published events over the time of publishing."))
TOPICS_CONNECTED = add(
    Metric(
        "topics_connected",
        "topics connected",
        "The share of topics whose subscribers are connected by those with whom they exchange its events.",
        share=True,
        better="high",
    )
)
CONNECT_S = add(
    Metric(
        "connect_s",
        "topics connected after",
        "From the last node's start until topics are connected.",
        "s",
        better="low",
    )
)
CONNECTIONS = add(Metric("connections", "connections, mean", "Open connections of a node, in the mean.", better="low"))
CONNECTIONS_MAX = add(
    Metric("connections_max", "connections, max", "The most open connections of a node.", better="low")
)
MESSAGES_PER_S_PER_NODE = add(
    Metric(
        "messages_per_s_per_node", "messages a second and node", "Messages that a node sends in a second.", better="low"
    )
)
BYTES_PER_S_PER_NODE = add(
    Metric("bytes_per_s_per_node", "bytes a second and node", "Bytes that a node sends in a second.", better="low")
)
BYTES_PER_DELIVERY = add(
    Metric(
        "bytes_per_delivery",
        "bytes a delivery, gossip included",
        "All bytes that were sent while events were published, over deliveries.",
        better="low",
    )
)
CPU_SHARE_PER_NODE = add(
    Metric("cpu_share_per_node", "CPU, share of a core and node", "Processor time over time and nodes.", better="low")
)
LATE_MS = add(
    Metric(
        "late_ms",
        "loops behind their work, mean",
        "How late the processes' loops come to what is due.",
        "ms",
        better="low",
    )
)
RSS_PER_NODE_BYTES = add(
    Metric(
        "rss_per_node_bytes", "memory a node", "Memory of the processes over nodes.", "MiB", better="low", per_unit=_MIB
    )
)
NODES_DOWN = add(Metric("nodes_down", "nodes down", "Nodes that were killed and not started again."))
LOST_PROCESSES = add(
    Metric("lost_processes", "processes lost", "Processes that ended without being told to.", better="low")
)
FAILURES = add(Metric("failures", "failures", "Mistakes of peers that their hosts noted.", better="low"))
