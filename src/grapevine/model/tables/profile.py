"""Tables of a profile: how interests in a workload are distributed."""

from __future__ import annotations

from grapevine.model.tables.schema import INT, LONG, REAL, TEXT, Column, Table

_workload = Column("workload", TEXT, "name of the profiled workload")
_degree = Column("degree", TEXT, "`subscriptions` of a subscriber, or `subscribers` of a topic")

DEGREE_STATISTICS = Table(
    "degree_statistics",
    "The rows of Vitis Fig. 9, inequality and the power-law fit of both degree distributions.",
    (
        _workload,
        _degree,
        Column("count", LONG, "how many subscribers, or topics"),
        Column("mean", REAL, "mean degree"),
        Column("variance", REAL, "variance (of the whole population)"),
        Column("standard_deviation", REAL, "square root of the variance"),
        Column("maximum", LONG, "largest degree"),
        Column("gini", REAL, "0: all equal, 1: one has all"),
        Column("exponent", REAL, "power-law exponent of the tail, discrete maximum likelihood", True),
        Column("exponent_error", REAL, "standard error of the exponent", True),
        Column("tail_start", LONG, "smallest degree of the fitted tail", True),
        Column("tail_share", REAL, "share of the population in the fitted tail", True),
        Column("fit_distance", REAL, "Kolmogorov–Smirnov distance of tail and fit", True),
        Column(
            "whole_exponent",
            REAL,
            "exponent when the whole distribution is fitted, from its smallest degree",
            True,
        ),
        Column("whole_fit_distance", REAL, "Kolmogorov–Smirnov distance of that fit", True),
    ),
)

DEGREE_CCDF = Table(
    "degree_ccdf",
    "Both degree distributions, complete.",
    (
        _workload,
        _degree,
        Column("value", LONG, "a degree that occurs"),
        Column("count", LONG, "how many have it"),
        Column("ccdf", REAL, "share that has at least this degree"),
    ),
)

INTEREST_COVERAGE = Table(
    "interest_coverage",
    "Interest locality (Rappel Fig. 1): how far a few greedily chosen best friends cover a subscriber's topics.",
    (
        _workload,
        Column("friends", INT, "number of friends, k"),
        Column("complete", REAL, "share of sampled subscribers whose k friends cover all their topics"),
        Column("complete_coverable", REAL, "like `complete`, not counting topics that have no other subscriber"),
        Column("mean_coverage", REAL, "mean share of topics covered"),
        Column("sampled", LONG, "subscribers in the sample (of at least `least_subscriptions` each)"),
    ),
)

INTEREST_OVERLAP = Table(
    "interest_overlap",
    "How alike subscribers are.",
    (
        _workload,
        Column("measure", TEXT, "`tdi` (SpiderCast §3.4, percent) or `jaccard` (mean over pairs, 0 … 1)"),
        Column("d", INT, "d of tdi(d); empty for jaccard", True),
        Column("value", REAL, "measured value"),
        Column("sampled", LONG, "subscribers in the sample"),
    ),
)

PROFILE_TABLES = (DEGREE_STATISTICS, DEGREE_CCDF, INTEREST_COVERAGE, INTEREST_OVERLAP)
