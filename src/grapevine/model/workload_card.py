"""A workload as people read it: its size, how subscriptions are spread, and what else it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grapevine.model.card import card, counted

if TYPE_CHECKING:
    from grapevine.model.workload import Csr, Latency, Workload


def one_line(workload: Workload) -> str:
    """Workload('high': 10,000 nodes, 5,000 topics, 500,000 subscriptions; 50.0 a node (at most 50), 100.0 a topic …)"""
    shape = ", ".join(
        f"{mean:,.1f} a {whose} (at most {most:,})"
        for whose, (mean, most) in (
            ("node", _mean_and_most(workload.node_topics)),
            ("topic", _mean_and_most(workload.topic_nodes)),
        )
    )
    more = "".join(f"; {name} {told}" for name, told in _besides(workload))
    return f"Workload({workload.name!r}: {_size(workload)}; {shape}{more})"


def as_html(workload: Workload) -> str:
    """The same as a card for notebooks, with the shares that have no subscription."""
    groups = {
        "Subscriptions": [
            ("of a node", _spread(workload.node_topics)),
            ("of a topic", _spread(workload.topic_nodes)),
            ("nodes without any", _share_without(workload.node_topics)),
            ("topics without any", _share_without(workload.topic_nodes)),
        ],
        "Besides": _besides(workload),
    }
    return card(f"Workload {workload.name}", _size(workload), groups)


def _size(workload: Workload) -> str:
    nodes, topics = counted(workload.node_count, "node"), counted(workload.topic_count, "topic")
    return f"{nodes}, {topics}, {counted(workload.subscription_count, 'subscription')}"


def _mean_and_most(rows: Csr) -> tuple[float, int]:
    sizes = rows.sizes()
    return (float(sizes.mean()), int(sizes.max())) if len(sizes) else (0.0, 0)


def _spread(rows: Csr) -> str:
    mean, most = _mean_and_most(rows)
    return f"{mean:,.1f} in the mean, {most:,} at most"


def _share_without(rows: Csr) -> str:
    sizes = rows.sizes()
    none = int(np.count_nonzero(sizes == 0))
    return f"{none:,} ({none / max(len(sizes), 1):.2%})"


def _besides(workload: Workload) -> list[tuple[str, str]]:
    """Rates where they differ, publishers, churn and latency, each where it is there."""
    found, rates, churn = [], workload.rates, workload.churn
    if len(rates) and rates.min() != rates.max():
        found.append(("rates", f"{rates.mean():,.4g} in the mean, {rates.max():,.4g} at most"))
    if owned := int(np.count_nonzero(workload.publishers >= 0)):
        found.append(("publishers", f"of {counted(owned, 'topic')} ({owned / workload.topic_count:.2%})"))
    if churn is not None:
        nodes = len(np.unique(churn.node))
        found.append(("churn", f"{counted(len(churn.node), 'session')} of {counted(nodes, 'node')}"))
    if workload.latency is not None:
        found.append(("latency", _round_trips(workload.latency)))
    return found


def _round_trips(latency: Latency) -> str:
    slices, nodes, _ = latency.rtt_ms.shape
    known = latency.rtt_ms[np.isfinite(latency.rtt_ms)]
    median = f"{np.median(known):,.4g} ms in the median" if len(known) else "nothing known"
    shares = f"{known.size / max(latency.rtt_ms.size, 1):.2%} of pairs"
    return f"round trips between {counted(nodes, 'node')} in {counted(slices, 'slice')}, {median}, {shares}"
