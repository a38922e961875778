"""A run as it went: the worst moments, means on the way, control messages per change, and what is shown over rounds."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric, add
from grapevine.metrics.findings import RING
from grapevine.metrics.measured import Measure, MeasuredTable, declare
from grapevine.metrics.structure import CONNECTED_TOPICS, DEGREE, DEGREE_MAX, DIAMETER, DIAMETER_MAX
from grapevine.metrics.timed import DELAY_MS_AT, STRETCH_AT
from grapevine.metrics.traffic import HIT_RATIO, HOPS, OUTCOME, OVERHEAD
from grapevine.model.tables import ROUNDS

_CROWD_ROUNDS = 20  # twice the time after which a newcomer counts (Vitis §IV-E)
_BEFORE = f"since_crowd BETWEEN {-_CROWD_ROUNDS} AND -1"
_AFTER = f"since_crowd BETWEEN {_CROWD_ROUNDS} AND {5 * _CROWD_ROUNDS}"

ONLINE = add(Metric("online", "nodes online", "Nodes that are there."))
HIT_RATIO_MIN = Metric(
    "hit_ratio_min", "hit ratio, worst round", "The hit ratio of the worst measured round.", share=True, better="high"
)
HIT_RATIO_MIN_CROWD = Metric(
    "hit_ratio_min_crowd",
    "hit ratio, worst round of the crowd",
    f"The hit ratio of the worst of the {_CROWD_ROUNDS} rounds after most nodes came at once.",
    share=True,
    better="high",
)
OVERHEAD_BEFORE_CROWD, OVERHEAD_IN_CROWD, OVERHEAD_AFTER_CROWD = (
    Metric(
        f"overhead_{when}_crowd", f"overhead, {when} the crowd", f"The overhead, in the mean over {what}.", share=True
    )
    for when, what in (
        ("before", f"the {_CROWD_ROUNDS} rounds before most nodes came at once"),
        ("in", f"the {_CROWD_ROUNDS} rounds after most nodes came at once"),
        ("after", f"the rounds {_CROWD_ROUNDS} … {5 * _CROWD_ROUNDS} after most nodes came at once"),
    )
)
HOPS_BEFORE_CROWD, HOPS_AFTER_CROWD = (
    Metric(f"hops_{when}_crowd", f"hops, {when} the crowd", f"Hops, in the mean over {what}.", "hops")
    for when, what in (
        ("before", f"the {_CROWD_ROUNDS} rounds before most nodes came at once"),
        ("after", f"the rounds {_CROWD_ROUNDS} … {5 * _CROWD_ROUNDS} after most nodes came at once"),
    )
)
CONNECTED_TOPICS_MIN = Metric(
    "connected_topics_min",
    "topics in one cluster, worst round",
    "The share of sampled topics that are connected, in the worst measured round.",
    share=True,
    better="high",
)
DEGREE_ON_THE_WAY = Metric(
    "degree_on_the_way", "degree, mean over the run", "The mean degree, in the mean over measured rounds.", better="low"
)
DEGREE_MAX_ON_THE_WAY = Metric(
    "degree_max_on_the_way",
    "degree, max, mean over the run",
    "The largest degree, in the mean over measured rounds.",
    better="low",
)
DIAMETER_ON_THE_WAY = Metric(
    "diameter_on_the_way",
    "diameter, mean over the run",
    "The mean diameter of the sampled topics in one cluster, in the mean over measured rounds.",
    "hops",
    better="low",
)
DIAMETER_MAX_ON_THE_WAY = Metric(
    "diameter_max_on_the_way",
    "diameter, max, mean over the run",
    "The largest diameter of the sampled topics in one cluster, in the mean over measured rounds.",
    "hops",
    better="low",
)
PER_CHANGE = add(
    Metric(
        "{kind}_per_change",
        "{kind} per join or leave",
        "Control messages of this kind per join or leave after the first measured round; `messages` stands for all "
        "kinds, `descriptors` for the descriptors of nodes that they carried.",
        better="low",
    )
)
PROGRESS = (  # columns of `rounds` that are kept over seeds, for runs whose course is worth showing
    *(ONLINE, RING, *OUTCOME, DEGREE, CONNECTED_TOPICS, DEGREE_MAX, DIAMETER),
    *(family.of(quantile=quantile) for family in (DELAY_MS_AT, STRETCH_AT) for quantile in ("p50", "p95")),
)

COURSE = declare(
    MeasuredTable(
        ROUNDS,
        (
            Measure(HIT_RATIO_MIN, f"min({HIT_RATIO.name})"),
            Measure(HIT_RATIO_MIN_CROWD, f"min({HIT_RATIO.name}) FILTER (WHERE in_crowd)"),
            Measure(OVERHEAD_BEFORE_CROWD, f"avg({OVERHEAD.name}) FILTER (WHERE {_BEFORE})"),
            Measure(OVERHEAD_IN_CROWD, f"avg({OVERHEAD.name}) FILTER (WHERE in_crowd)"),
            Measure(OVERHEAD_AFTER_CROWD, f"avg({OVERHEAD.name}) FILTER (WHERE {_AFTER})"),
            Measure(HOPS_BEFORE_CROWD, f"avg({HOPS.name}) FILTER (WHERE {_BEFORE})"),
            Measure(HOPS_AFTER_CROWD, f"avg({HOPS.name}) FILTER (WHERE {_AFTER})"),
            Measure(CONNECTED_TOPICS_MIN, f"min({CONNECTED_TOPICS.name})"),
            Measure(DEGREE_ON_THE_WAY, f"avg({DEGREE.name})"),
            Measure(DEGREE_MAX_ON_THE_WAY, f"avg({DEGREE_MAX.name})"),
            Measure(DIAMETER_ON_THE_WAY, f"avg({DIAMETER.name})"),
            Measure(DIAMETER_MAX_ON_THE_WAY, f"avg({DIAMETER_MAX.name})"),
        ),
        derived=(
            ("growth", "online - lag(online) OVER (PARTITION BY run_id ORDER BY round)"),
            # The largest growth, and of equal ones the first.
            ("most", "max(struct(growth, -round AS minus_round)) OVER (PARTITION BY run_id)"),
            ("since_crowd", "IF(most.growth > 0, round + most.minus_round, NULL)"),
            ("in_crowd", f"since_crowd BETWEEN 0 AND {_CROWD_ROUNDS}"),
        ),
    )
)
