"""Tables of a run, simulated or live: the overlay, the events, and what they cost."""

from __future__ import annotations

import pyarrow as pa

from grapevine.model.tables.schema import INT, LONG, REAL, TEXT, Column, Table

LINKS = Table(
    "links",
    "The overlay at the end: whom each online node chose. A link is a connection and carries events both ways.",
    (
        Column("source", INT, "node that chose the link"),
        Column("target", INT, "node at the other end"),
        Column(
            "kind",
            TEXT,
            "what it was chosen for: `successor`, `predecessor`, `long`, `finger`, `friend`, `coverage`, "
            "`topic successor`, `designed`, `parent`; `neighbour` where both ends agreed on it",
        ),
    ),
)

EVENTS = Table(
    "events",
    "Published events and what became of them. Received = wanted + duplicate + unwanted.",
    (
        Column("round", INT, "round in which it was published"),
        Column("topic", INT, "topic"),
        Column("publisher", INT, "node that published it"),
        Column("rate", REAL, "publication rate of the topic: the event's weight in means"),
        Column(
            "subscribers",
            LONG,
            "online subscribers that count (there for the grace time), publisher excluded; of a live run also those "
            "that were away and came back",
        ),
        Column("reached", LONG, "subscribers that count and received it"),
        Column("wanted", LONG, "first notifications to interested nodes"),
        Column("duplicate", LONG, "further notifications to interested nodes"),
        Column("unwanted", LONG, "notifications to nodes without interest, repeated ones included"),
        Column("relays", LONG, "nodes without interest that received it"),
        Column(
            "ids",
            LONG,
            "notifications that named it only: all of a flood, where whoever hears of it pulls it; along a tree, where "
            "notifications carry it, those on lazy links besides",
        ),
        Column("payloads", LONG, "copies of the event itself: one for each that pulls it, or every notification"),
        Column("hops_sum", LONG, "hops to the reached subscribers, summed"),
        Column("hops_p50", LONG, "hops within which half of them were reached (nearest rank; 0: none reached)"),
        Column("hops_p95", LONG, "hops within which 95 % of them were reached"),
        Column("hops_p99", LONG, "hops within which 99 % of them were reached"),
        Column("hops_max", LONG, "hops to the subscriber that is farthest"),
    ),
)

DELIVERY_HOPS = Table(
    "delivery_hops",
    "How far deliveries went: one row per round in which events were published and number of hops.",
    (
        Column("round", INT, "round in which the events were published"),
        Column("hops", INT, "nodes that passed an event on, the publisher included"),
        Column("deliveries", REAL, "counted subscribers reached by so many hops, weighted by the topics' rates"),
    ),
)

NODE_LOAD = Table(
    "node_load",
    "Per node: its links, and what it received in the last evaluation (one event per topic, weighted by rate).",
    (
        Column("node", INT, "node"),
        Column("online", pa.bool_(), "whether it was there at the end"),
        Column("degree", LONG, "distinct neighbours, both ways"),
        Column("wanted", REAL, "first notifications of its topics, per mean topic rate"),
        Column("duplicate", REAL, "further notifications of its topics, per mean topic rate"),
        Column("unwanted", REAL, "notifications of topics that it does not want, per mean topic rate"),
        Column("overhead", REAL, "unwanted over all received; empty: it received nothing", True),
    ),
)

TOPIC_OVERLAY = Table(
    "topic_overlay",
    "Per topic: the graph of its online subscribers at the end.",
    (
        Column("topic", INT, "topic"),
        Column("subscribers", LONG, "online subscribers"),
        Column("clusters", LONG, "connected parts of their links; 1: the topic is connected"),
        Column("largest_cluster", LONG, "subscribers in the largest part"),
        Column("gateways", LONG, "subscribers that look up the topic's rendezvous"),
        Column(
            "diameter",
            LONG,
            "longest shortest path inside a cluster (the topic's diameter if it is the only one); empty: not asked for",
            True,
        ),
    ),
)

ROUNDS = Table(
    "rounds",
    "The run as it went: one row per measured round. Delivery is measured on a sample of topics. A timed "
    "run, virtual or live, has a round per second and measures all topics.",
    (
        Column("round", INT, "round"),
        Column("online", LONG, "nodes that are there"),
        Column("joined", LONG, "joins since the row before"),
        Column("left", LONG, "leaves and crashes since the row before"),
        Column("ring", REAL, "share of nodes with true successor and predecessor; empty: the system has no ring", True),
        Column("utility", REAL, "mean utility (Vitis Eq. 1) of the links of a sample of nodes", True),
        Column("hit_ratio", REAL, "share of counted subscribers reached; empty: nothing published", True),
        Column("overhead", REAL, "share of notifications that nobody wanted", True),
        Column("hops", REAL, "mean hops of deliveries", True),
        Column("degree", REAL, "mean neighbours of online nodes", True),
        Column(
            "connected_topics",
            REAL,
            "share of the sampled topics whose counted subscribers form one cluster, among those with at least two",
            True,
        ),
        Column("degree_max", LONG, "most neighbours of an online node", True),
        Column("delay_ms_p50", REAL, "timed runs: median delay of the events since the row before", True),
        Column("delay_ms_p95", REAL, "timed runs: 95th percentile of these delays", True),
        Column("stretch_p50", REAL, "median length of their ways in coordinates, over the direct distance", True),
        Column("stretch_p95", REAL, "95th percentile of these ratios", True),
        Column(
            "diameter", REAL, "mean diameter of the sampled topics in one cluster; empty: none, or not asked for", True
        ),
        Column("diameter_max", LONG, "largest diameter of these topics", True),
    ),
)

MESSAGES = Table(
    "messages",
    "Control messages of systems that count them: one row per measured round and kind.",
    (
        Column("round", INT, "round"),
        Column(
            "kind",
            TEXT,
            "SpiderCast: connect, connect-ok, redirect, disconnect, disconnect-ok, leave. OMen: gossip (views), ask "
            "(new backups for their topics, and their answers), join, leave, notify (an event to the successors), "
            "collect (the shadow set asked, and its answers), probe (along links, to see what is connected), connect "
            "(new links to their ends), neighbours (changed links to the successors), handover (a node's neighbours to "
            "a new successor), done. Timed runs: message kinds",
        ),
        Column("count", LONG, "messages since the measured round before"),
        Column("descriptors", LONG, "descriptors of nodes (address and topics) that they carried"),
    ),
)

DELIVERIES = Table(
    "deliveries",
    "Timed runs: every first copy of an event that a counted subscriber got.",
    (
        Column("event", INT, "row number of the event in `events`, from 0"),
        Column("node", INT, "who got it"),
        Column("delay_ms", REAL, "from publication to delivery"),
        Column("hops", INT, "nodes that passed it on, the publisher included"),
        Column("pulled", pa.bool_(), "asked for, because it had been missed"),
        Column(
            "direct_ms",
            REAL,
            "what a message from publisher to node would have taken then; empty: a live run, nobody knows",
            True,
        ),
        Column("coordinate_ms", REAL, "distance of the two in network coordinates; empty: the system has none", True),
        Column("path_ms", REAL, "length in network coordinates of the way that the event took; empty: none", True),
        Column("observer", pa.bool_(), "one of the nodes that never leave"),
    ),
)

PEERS = Table(
    "peers",
    "Timed runs: every node that was online at the end, or since the measurement began.",
    (
        Column("node", INT, "node"),
        Column("online", pa.bool_(), "whether it was there at the end"),
        Column("online_s", REAL, "seconds that it was there since the measurement began"),
        Column("subscriptions", LONG, "topics that it subscribes to"),
        Column("neighbours", LONG, "distinct friends, parents and children"),
        Column("roles", LONG, "roles that these play, e.g. the parent in one tree and a friend"),
        Column("messages_in", LONG, "messages received since the measurement began, events included"),
        Column("messages_out", LONG, "messages sent since the measurement began, events included"),
        Column("events_in", LONG, "received messages that carried an event, repeated ones included"),
        Column("events_out", LONG, "sent messages that carried an event"),
    ),
)

DRAWN_NODES = Table(
    "drawn_nodes",
    "One topic to look at: every node that carries it, with its place on the ring.",
    (
        Column("topic", INT, "topic"),
        Column("node", INT, "node"),
        Column("role", TEXT, "`subscriber`, `gateway` (a subscriber), `relay`, `rendezvous` (a relay) or `publisher`"),
        Column("cluster", INT, "number of its cluster, from 0 by size; empty: not a subscriber", True),
        Column("position", REAL, "place on the identifier ring, or direction from the publisher, 0 … 1"),
    ),
)

DRAWN_LINKS = Table(
    "drawn_links",
    "The links that the topic's events travel on.",
    (
        Column("topic", INT, "topic"),
        Column("source", INT, "one end"),
        Column("target", INT, "the other end"),
        Column("kind", TEXT, "`cluster` (between subscribers) or `path` (of a lookup, or of a tree by way of others)"),
    ),
)

TIMED_TABLES = (DELIVERIES, PEERS)  # empty in runs by rounds
SIMULATION_TABLES = (  # of every run; a system may have tables of its own beside these
    *(EVENTS, DELIVERY_HOPS, NODE_LOAD, TOPIC_OVERLAY, LINKS, ROUNDS, MESSAGES, DRAWN_NODES, DRAWN_LINKS),
    *TIMED_TABLES,
)
