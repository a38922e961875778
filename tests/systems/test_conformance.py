"""What every system owes: the same for all that are registered, so a new one is tested as soon as it exists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grapevine import Workload, simulate
from grapevine.model.errors import UsageError
from grapevine.sim.churn import flash_crowd, mass_failure
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.registry import system_named, systems_with

EVERY = sorted(systems_with("rounds"))
WITH_TABLES = [name for name in EVERY if "table_size" in system_named(name).config_type("rounds").__dataclass_fields__]
# OPT with a bounded table owes no delivery; with coverage as wide as it likes, it does. Similarity owes none either;
# with this many links it cannot miss.
FREE: dict[str, dict[str, Any]] = {
    "opt": {"table_size": None},
    "similarity": {"similar": 40, "random": 20},
    "omen": {"patience": 2},
}
# OMen owes healing for up to L events at once; with eight successors that know, a third of the nodes is not too much.
HARDY = FREE | {"omen": {"resilience": 8, "patience": 2}}
# Parameters that bind, and the most links of a node then (20 topics each).
BOUND: dict[str, tuple[dict[str, Any], int]] = {
    "spidercast": ({"greedy_coverage": 1, "random_coverage": 1, "margin": 2}, 2 * (20 + 2)),
    "similarity": ({"similar": 3, "random": 1, "margin": 1}, 3 + 1 + 2),
    "ring-per-topic": ({}, 20),
    "trellis": ({"most_links": 6}, 6),
    **{name: ({}, 239) for name in ("gm", "minmax-oda", "lowoda", "omen")},  # no bound but the number of nodes
}


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=240, topics=200, subscriptions_per_node=20, buckets=10, seed=2)


def run_for(
    system: str, workload: Workload, rounds: int, parameters: dict[str, dict[str, Any]] = FREE, **more: Any
) -> Rounds:
    engine = Rounds(system, workload, make_config(system, parameters.get(system, {})), **more)
    for _ in range(rounds):
        engine.step()
    return engine


@pytest.mark.parametrize("system", EVERY)
def test_every_subscriber_is_reached_when_nobody_leaves(system: str, workload: Workload) -> None:
    done = simulate(system, workload, rounds=40, threads=1, **FREE.get(system, {}))
    assert done.summary["hit_ratio"] == 1.0
    assert done.summary["ring"] in (None, 1.0)


@pytest.mark.parametrize("system", EVERY)
def test_the_seed_decides_and_the_threads_do_not(system: str, workload: Workload) -> None:
    one = simulate(system, workload, rounds=12, threads=1, seed=9)
    many = simulate(system, workload, rounds=12, threads=3, seed=9)
    other = simulate(system, workload, rounds=12, threads=1, seed=10)
    for name, table in one.tables.items():
        assert table.equals(many.tables[name]), name
    assert not one.events.equals(other.events)


@pytest.mark.parametrize("system", EVERY)
def test_tables_stay_within_their_bound_and_name_nobody_twice(system: str, workload: Workload) -> None:
    parameters, bound = BOUND.get(system, ({"table_size": 6}, 6))
    engine = Rounds(system, workload, make_config(system, parameters))
    for _ in range(25):
        engine.step()
    views = engine.network.views
    for p in range(engine.network.size):
        row = [q for q in views.links[views.starts[p] : views.starts[p + 1]].tolist() if q >= 0]
        assert len(row) <= bound
        assert len(row) == len(set(row))
        assert p not in row
    if engine.network.most_links is not None:
        assert engine.network.neighbours().sizes().max() <= engine.network.most_links == 6


@pytest.mark.parametrize("system", EVERY)
def test_it_heals_after_a_third_of_the_nodes_crash(system: str, workload: Workload) -> None:
    crash = mass_failure(workload.node_count, share=0.33, round=20)
    done = run_for(system, workload, rounds=55, parameters=HARDY, schedule=crash)
    events = done.publish(np.arange(workload.topic_count, dtype=np.int32)).events
    assert events["reached"].sum() == events["subscribers"].sum() > 0
    gone = np.flatnonzero(~done.network.alive)
    assert not np.isin(done.network.views.links, gone).any()
    assert not np.isin(done.network.views.cache, gone).any()


@pytest.mark.parametrize("system", EVERY)
def test_a_crowd_is_taken_in(system: str, workload: Workload) -> None:
    done = run_for(system, workload, rounds=45, schedule=flash_crowd(workload.node_count, share=0.5, round=15))
    assert done.network.alive.all()
    events = done.publish(np.arange(workload.topic_count, dtype=np.int32), grace_rounds=10).events
    assert events["reached"].sum() == events["subscribers"].sum() > 0


@pytest.mark.parametrize("system", EVERY)
def test_interests_may_change_while_it_runs(system: str, workload: Workload) -> None:
    engine = run_for(system, workload, rounds=20, always_gossip=True)
    newcomer = int(np.setdiff1d(np.arange(workload.node_count), workload.subscribers_of(7))[0])
    leaver = int(workload.subscribers_of(7)[0])
    engine.subscribe(newcomer, 7)
    engine.unsubscribe(leaver, 7)
    for _ in range(20):
        engine.step()
    members = engine.network.topic_nodes.row(7).tolist()
    assert newcomer in members and leaver not in members
    events = engine.publish(np.array([7], np.int32)).events
    assert events["reached"][0] == events["subscribers"][0] == len(members) - 1


@pytest.mark.parametrize("system", EVERY)
def test_odd_workloads_are_survived(system: str) -> None:
    nodes = np.repeat(np.arange(30), 2)
    lonely = Workload.from_pairs(nodes, nodes % 3 + np.tile([0, 3], 30), node_count=40, topic_count=8, rates=[0.0] * 8)
    done = simulate(system, lonely, rounds=30, threads=1)  # ten nodes want nothing, two topics have no subscriber
    assert done.events.num_rows == 6
    assert done.topics.num_rows == 8


@pytest.mark.parametrize("system", WITH_TABLES)
def test_impossible_tables_are_said_in_a_sentence(system: str, workload: Workload) -> None:
    with pytest.raises(UsageError, match="table_size=3: needs at least 4"):
        simulate(system, workload, table_size=3)
    with pytest.raises(UsageError, match="has 240 nodes, too few for table_size=240"):
        simulate(system, workload, table_size=240)


@pytest.mark.parametrize("system", EVERY)
def test_what_cannot_be_simulated_is_said_in_a_sentence(system: str, workload: Workload) -> None:
    with pytest.raises(UsageError, match=f"{system} has no parameter tabel_size; it has .*"):
        simulate(system, workload, tabel_size=3)
    nobody = Workload.from_pairs([], [], node_count=50, topic_count=3)
    with pytest.raises(UsageError, match="nobody subscribes to anything"):
        simulate(system, nobody)
    with pytest.raises(UsageError, match="rounds=0: needs at least 1"):
        simulate(system, workload, run=RunConfig(rounds=0))
