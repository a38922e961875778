"""Tables of an experiment: all its runs, what was measured of them, and means over seeds."""

from __future__ import annotations

from grapevine.model.tables.schema import INT, LONG, REAL, TEXT, Column, Table

_system = Column("system", TEXT, "system")
_on = Column("workload", TEXT, "name of the workload in the experiment")
_parameters = Column("parameters", TEXT, 'what the grid set, as JSON with sorted keys, e.g. `{"table_size": 15}`')
_mean = Column("mean", REAL, "mean over seeds")
_low = Column("low", REAL, "lower end of its 95 % confidence interval; the mean itself for one seed")
_high = Column("high", REAL, "upper end of its 95 % confidence interval; the mean itself for one seed")
_count = Column("runs", LONG, "seeds that it is the mean of")

RUNS = Table(
    "runs",
    "Every run of an experiment; its own tables lie in `simulations/run_id=…`.",
    (
        Column("run_id", TEXT, "hash of system, configuration, workload, seed and code version"),
        _system,
        _on,
        _parameters,
        Column("seed", LONG, "seed"),
        Column("status", TEXT, "`done` or `failed`"),
        Column("error", TEXT, "why it failed", True),
        Column("wall_s", REAL, "wall seconds", True),
        Column("cpu_s", REAL, "CPU seconds", True),
    ),
)

METRICS = Table(
    "metrics",
    "Measures of each run, aggregated from its tables.",
    (
        Column("run_id", TEXT, "run"),
        Column("metric", TEXT, "name, e.g. `hit_ratio`, `overhead`, `hops`"),
        Column("value", REAL, "value; empty: undefined for this run", True),
    ),
)

SERIES = Table(
    "series",
    "Measures of runs that differ in their seeds alone, averaged: the points of a figure.",
    (_system, _on, _parameters, Column("metric", TEXT, "name"), _count, _mean, _low, _high),
)

DISTRIBUTIONS = Table(
    "distributions",
    "How a quantity is distributed over online nodes, all seeds together.",
    (
        _system,
        _on,
        _parameters,
        Column("quantity", TEXT, "`overhead` (in steps of 0.1), `degree`, `view` or `backup_of`"),
        Column("at", REAL, "lower end of the step of `overhead`; the value itself of the other quantities"),
        Column("share", REAL, "share of the nodes in this step, or with this value"),
    ),
)

PROGRESS = Table(
    "progress",
    "Measures over the rounds of a run, for runs with churn.",
    (
        _system,
        _on,
        _parameters,
        Column("round", INT, "round"),
        Column("metric", TEXT, "a measure of the `rounds` table, e.g. `online`, `hit_ratio` or `degree_max`"),
        _count,
        _mean,
        _low,
        _high,
    ),
)

TOPIC_GRAPHS = Table(
    "topic_graphs",
    "Per topic: the graph of its online subscribers, measured from stored links (`grapevine measure`).",
    (
        Column("topic", INT, "topic"),
        Column("subscribers", LONG, "online subscribers"),
        Column("clusters", LONG, "connected parts of their links"),
        Column("largest_cluster", LONG, "subscribers in the largest part"),
        Column("diameter", LONG, "longest shortest path inside a cluster"),
    ),
)

EXPERIMENT_TABLES = (RUNS, METRICS, SERIES, DISTRIBUTIONS, PROGRESS)
