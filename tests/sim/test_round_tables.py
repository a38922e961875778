"""The final tables against what the engine's arrays hold, slot by slot and topic by topic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from grapevine import Workload
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
    events, load = engine.publish(np.arange(30, dtype=np.int32))
    return final_tables(engine, events, load, diameter_topics=5)


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
    _, whole = engine.publish(topics)
    parts = [engine.publish(some)[1] for some in np.split(topics, [1, 7])]
    assert whole["wanted"].any()
    for kind, load in whole.items():
        assert load.tolist() == np.sum([part[kind] for part in parts], axis=0).tolist()
