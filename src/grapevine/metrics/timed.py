"""Runs by the clock, virtual or live: delays and stretch of deliveries, messages and load of peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.metrics.catalogue import Metric, add
from grapevine.metrics.definitions import Where
from grapevine.metrics.measured import Measure, MeasuredTable, Quantiles, declare
from grapevine.model.tables import DELIVERIES, PEERS

_SOON_MS = 1_000.0  # Rappel §6.2.3 asks for the share of deliveries within a second

DELAY_MS = add(Metric("delay_ms", "delay, median", "From publication to delivery, the median.", "ms", better="low"))
DELAY_MS_AT = Metric(
    "delay_ms_{quantile}",
    "delay, {quantile}",
    "From publication to delivery, {quantile} of all deliveries: the nearest rank of delays in tenths of a "
    "millisecond; in the headline numbers of one run interpolated.",
    "ms",
    better="low",
)
DELAY_MS_MAX = Metric(
    "delay_ms_max", "delay, max", "The longest time from publication to delivery.", "ms", better="low"
)
OBSERVER_DELAY_MS_AT = Metric(
    "observer_delay_ms_{quantile}",
    "delay at observers, {quantile}",
    "The same of deliveries to nodes that never leave, {quantile}.",
    "ms",
    better="low",
)
STRETCH = add(
    Metric(
        "stretch",
        "stretch, median",
        "The length of an event's way in network coordinates over the direct distance, the median.",
        better="low",
    )
)
STRETCH_AT = Metric(
    "stretch_{quantile}",
    "stretch, {quantile}",
    "The length of an event's way in network coordinates over the direct distance, {quantile} of all deliveries.",
    better="low",
)
DIRECT_STRETCH_AT = Metric(
    "direct_stretch_{quantile}",
    "delay over direct latency, {quantile}",
    "An event's delay over what a message from publisher to subscriber would have taken, {quantile}.",
    better="low",
)
WITHIN_1S = Metric(
    "within_1s", "delivered within 1 s", "The share of deliveries within a second.", share=True, better="high"
)
OBSERVER_WITHIN_1S = Metric(
    "observer_within_1s",
    "delivered within 1 s at observers",
    "The share of deliveries within a second to nodes that never leave.",
    share=True,
    better="high",
)
PULLED = Metric(
    "pulled", "pulled", "The share of deliveries that were asked for, because they had been missed.", share=True
)
MESSAGES_PER_S = add(
    Metric(
        "messages_per_s",
        "messages a second and node, median",
        "Messages that a node sends and receives in a second of being there, the median over nodes.",
        better="low",
    )
)
MESSAGES_PER_S_AT = Metric(
    "messages_per_s_{quantile}",
    "messages a second and node, {quantile}",
    "Messages that a node sends and receives in a second of being there, {quantile} over nodes.",
    better="low",
)
NEIGHBOUR_OVERLAP = Metric(
    "neighbour_overlap",
    "nodes with a neighbour in several roles",
    "The share of nodes with neighbours that have one in several roles, e.g. as a parent and as a friend.",
    share=True,
)
LEAVES = Metric("leaves", "leaves", "The share of subscribers that pass no event on.", share=True)
LOAD_CORRELATION = Metric(
    "load_correlation",
    "correlation of load and subscriptions",
    "Pearson's correlation, over nodes, of subscriptions with events received and sent.",
    better="high",
)
SUBSCRIPTIONS_MAX = Metric("subscriptions_max", "subscriptions, max", "The most topics that a node subscribes to.")

MESSAGES_PER_SUBSCRIPTION = Metric(
    "messages_per_subscription",
    "messages a second for each topic more",
    "By how much the messages that a subscriber sends and receives in a second grow with each topic that it subscribes "
    "to: the slope of the least-squares line over subscribers (Rappel Fig. 11d).",
    better="low",
)
STRETCH_AT_DISTANCE = Metric(
    "stretch_at_distance_{number}",
    "stretch in quarter {number} by distance",
    "The median stretch, in network coordinates, at subscribers in quarter {number} by their distance to the "
    "publisher, 1: the nearest (Rappel Fig. 8a).",
    better="low",
)

DELIVERY = declare(
    MeasuredTable(
        DELIVERIES,
        (
            Measure(WITHIN_1S, f"avg(CAST(delay_ms <= {_SOON_MS}D AS DOUBLE))"),
            Measure(OBSERVER_WITHIN_1S, f"avg(CAST(delay_ms <= {_SOON_MS}D AS DOUBLE)) FILTER (WHERE observer)"),
            Measure(PULLED, "avg(CAST(pulled AS DOUBLE))"),
            Measure(DELAY_MS_MAX, "max(delay_ms)"),
        ),
        (
            Quantiles(DELAY_MS_AT, "delay_ms", 1),
            Quantiles(OBSERVER_DELAY_MS_AT, "delay_ms", 1, Where("observer", "=", True)),
            Quantiles(STRETCH_AT, "path_ms / CASE WHEN coordinate_ms > 0 THEN coordinate_ms END", 3),
            Quantiles(DIRECT_STRETCH_AT, "delay_ms / CASE WHEN direct_ms > 0 THEN direct_ms END", 3),
        ),
    )
)

BY_DISTANCE = declare(
    MeasuredTable(
        DELIVERIES,
        (
            Measure(
                STRETCH_AT_DISTANCE,
                "round(percentile(path_ms / CASE WHEN coordinate_ms > 0 THEN coordinate_ms END, 0.5), 3)",
                by="quarter",
            ),
        ),
        where=Where("coordinate_ms", ">", 0),
        derived=(("quarter", "ntile(4) OVER (PARTITION BY run_id, event ORDER BY coordinate_ms, node)"),),
    )
)

PEER_LOAD = declare(
    MeasuredTable(
        PEERS,
        (
            Measure(NEIGHBOUR_OVERLAP, "avg(CAST(roles > neighbours AS DOUBLE)) FILTER (WHERE neighbours > 0)"),
            Measure(LEAVES, "avg(CAST(events_out = 0 AS DOUBLE)) FILTER (WHERE subscriptions > 0)"),
            Measure(
                LOAD_CORRELATION,
                "round(corr(CAST(subscriptions AS DOUBLE), CAST(events_in + events_out AS DOUBLE)), 6)",
            ),
            Measure(SUBSCRIPTIONS_MAX, "max(subscriptions)"),
            Measure(
                MESSAGES_PER_SUBSCRIPTION,
                "round(regr_slope((messages_in + messages_out) / CASE WHEN online_s > 0 THEN online_s END, "
                "CAST(CASE WHEN subscriptions > 0 THEN subscriptions END AS DOUBLE)), 6)",
            ),
        ),
        (Quantiles(MESSAGES_PER_S_AT, "(messages_in + messages_out) / CASE WHEN online_s > 0 THEN online_s END", 3),),
    )
)


def quantile(values: NDArray[Any], share: float) -> float | None:
    """A quantile of the known values, interpolated between ranks; None if none is known."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, share)) if len(known) else None


def over_distance(way: NDArray[Any], distance: NDArray[Any]) -> NDArray[np.float64]:
    """The length of ways over the distance of their ends; NaN where one of them is unknown or the distance is 0."""
    return np.asarray(way / np.where(distance > 0, distance, np.nan), np.float64)
