"""The final tables against what the engine's arrays hold, slot by slot and topic by topic."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from grapevine import Workload
from grapevine.metrics.definitions import Rank
from grapevine.model import tables
from grapevine.sim.churn import mass_failure
from grapevine.sim.round_tables import final_tables
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate

SYSTEMS: list[tuple[str, dict[str, Any]]] = [("vitis", {"table_size": 6}), ("opt", {"table_size": None, "coverage": 1})]


def workload_of() -> Workload:
    return generate("spidercast", nodes=90, topics=30, min_subscriptions=1, max_subscriptions=6, exponent=1.0, seed=2)


@pytest.fixture(params=SYSTEMS, ids=[system for system, _ in SYSTEMS])
def engine(request: pytest.FixtureRequest) -> Rounds:
    """After twelve rounds, in one of which a tenth fails. OPT's tables are of as many sizes as nodes have interests."""
    system, parameters = request.param
    schedule = mass_failure(90, share=0.1, round=6, seed=4)
    engine = Rounds(system, workload_of(), make_config(system, parameters), schedule=schedule, threads=2)
    for _ in range(12):
        engine.step()
    return engine


def tables_of(engine: Rounds) -> dict[str, Any]:
    return final_tables(engine, engine.publish(np.arange(30, dtype=np.int32)), diameter_topics=5)


def test_every_link_is_told_with_what_its_slot_is_for(engine: Rounds) -> None:
    views, expected = engine.network.views, []
    for p in range(engine.network.size):
        row = views.links[views.starts[p] : views.starts[p + 1]].tolist()
        kinds = engine.system.slot_kinds(len(row))
        expected += [{"source": p, "target": q, "kind": kinds[slot]} for slot, q in enumerate(row) if q >= 0]
    found = tables_of(engine)[tables.LINKS.name]
    assert found.schema == tables.LINKS.schema
    assert found.to_pylist() == expected


def test_gateways_are_counted_by_topic(engine: Rounds) -> None:
    flags, starts = engine.system.delivery().gateways.tolist(), engine.network.topic_nodes.starts.tolist()
    counts = [sum(flags[a:b]) for a, b in pairwise(starts)]
    assert tables_of(engine)[tables.TOPIC_OVERLAY.name]["gateways"].to_pylist() == counts
    assert any(counts) == (engine.name == "vitis")


def test_load_is_the_same_whatever_the_chunks(engine: Rounds) -> None:
    topics = np.arange(30, dtype=np.int32)
    whole = engine.publish(topics).load
    parts = [engine.publish(some).load for some in np.split(topics, [1, 7])]
    assert whole["wanted"].any()
    for kind, load in whole.items():
        assert load.tolist() == np.sum([part[kind] for part in parts], axis=0).tolist()


def test_deliveries_by_hops_are_those_of_the_events_by_their_rates(engine: Rounds) -> None:
    topics = np.arange(30, dtype=np.int32)
    total: Counter[int] = Counter()
    for topic in topics:
        one = engine.publish(topics[topic : topic + 1])
        ways = {name: one.hops[name].tolist() for name in ("hops", "deliveries")}
        total.update(dict(zip(ways["hops"], ways["deliveries"], strict=True)))
        for percent in (50, 95, 99):
            assert [Rank("hops", "deliveries", percent).of(one.hops) or 0.0] == one.events[f"hops_p{percent}"].tolist()
    whole = engine.publish(topics)
    assert dict(zip(whole.hops["hops"].tolist(), whole.hops["deliveries"].tolist(), strict=True)) == dict(total)
    assert set(whole.hops["round"]) == {engine.now}
    reached = whole.events["reached"] * whole.events["rate"]
    assert whole.hops["deliveries"].sum() == pytest.approx(reached.sum() / engine.network.rates.mean(), rel=1e-3)


def clusters_of(found: dict[str, Any]) -> tuple[int, list[int]]:
    """The drawn topic, and the sizes of its clusters."""
    nodes = found[tables.DRAWN_NODES.name].to_pylist()
    sizes = Counter(node["cluster"] for node in nodes if node["cluster"] is not None)
    return nodes[0]["topic"], sorted(sizes.values(), reverse=True)


def test_a_topic_of_a_few_clusters_is_drawn_with_what_joins_them(engine: Rounds) -> None:
    found = tables_of(engine)
    rows = found[tables.TOPIC_OVERLAY.name].to_pylist()
    telling = [row for row in rows if 2 <= row["clusters"] <= 4 and 10 <= row["subscribers"] <= 60]
    topic, sizes = clusters_of(found)
    if engine.name == "vitis":
        assert telling, "or this test says nothing"
        assert rows[topic] in telling
        assert {"gateway", "relay"} <= {node["role"] for node in found[tables.DRAWN_NODES.name].to_pylist()}
    popular = max(rows, key=lambda row: row["subscribers"])
    most = max(telling, key=lambda row: row["subscribers"] - row["largest_cluster"], default=popular)
    assert topic == most["topic"]
    assert (sum(sizes), len(sizes), sizes[0]) == tuple(
        most[name] for name in ("subscribers", "clusters", "largest_cluster")
    )


def test_where_links_between_subscribers_carry_nothing_the_most_popular_topic_is_drawn() -> None:
    engine = Rounds("rvr", workload_of(), make_config("rvr", {"table_size": 8}), threads=2)
    for _ in range(12):
        engine.step()
    found = tables_of(engine)
    rows = found[tables.TOPIC_OVERLAY.name].to_pylist()
    most = max(row["subscribers"] for row in rows)
    topic, sizes = clusters_of(found)
    assert any(2 <= row["clusters"] <= 4 and 10 <= row["subscribers"] < most for row in rows), "that have links, too"
    assert rows[topic]["subscribers"] == most
    assert sizes == [1] * most
