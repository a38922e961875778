"""The schema of every stored table, in one place; docs/tables.md is written from it (`make pages`).

A stage writes exactly these columns, in this order and of these types, and readers may rely on it. `empty` in a meaning
says what a null stands for; columns that may be null are declared so.
"""

from grapevine.model.tables.dictionary import data_dictionary
from grapevine.model.tables.experiment import (
    DISTRIBUTIONS,
    EXPERIMENT_TABLES,
    METRICS,
    PROGRESS,
    RUNS,
    SERIES,
    TOPIC_GRAPHS,
)
from grapevine.model.tables.profile import (
    DEGREE_CCDF,
    DEGREE_STATISTICS,
    INTEREST_COVERAGE,
    INTEREST_OVERLAP,
    PROFILE_TABLES,
)
from grapevine.model.tables.schema import Column, Table
from grapevine.model.tables.simulation import (
    DELIVERIES,
    DELIVERY_HOPS,
    DRAWN_LINKS,
    DRAWN_NODES,
    EVENTS,
    LINKS,
    MESSAGES,
    NODE_LOAD,
    PEERS,
    ROUNDS,
    SIMULATION_TABLES,
    TIMED_TABLES,
    TOPIC_OVERLAY,
)
from grapevine.model.tables.workload import CHURN, LATENCY, NODES, REJECTED, SUBSCRIPTIONS, TOPICS, WORKLOAD_TABLES

__all__ = [
    "CHURN",
    "DEGREE_CCDF",
    "DEGREE_STATISTICS",
    "DELIVERIES",
    "DELIVERY_HOPS",
    "DISTRIBUTIONS",
    "DRAWN_LINKS",
    "DRAWN_NODES",
    "EVENTS",
    "EXPERIMENT_TABLES",
    "INTEREST_COVERAGE",
    "INTEREST_OVERLAP",
    "LATENCY",
    "LINKS",
    "MESSAGES",
    "METRICS",
    "NODES",
    "NODE_LOAD",
    "PEERS",
    "PROFILE_TABLES",
    "PROGRESS",
    "REJECTED",
    "ROUNDS",
    "RUNS",
    "SERIES",
    "SIMULATION_TABLES",
    "SUBSCRIPTIONS",
    "TIMED_TABLES",
    "TOPICS",
    "TOPIC_GRAPHS",
    "TOPIC_OVERLAY",
    "WORKLOAD_TABLES",
    "Column",
    "Table",
    "data_dictionary",
]
