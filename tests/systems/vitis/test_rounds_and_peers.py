"""The two drivers of Vitis side by side, on the same workload and under the same churn."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine import Workload, simulate
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.peers import PeerRun
from grapevine.sim.round_run import RunConfig
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.vitis.peer.peer import VitisPeer
from tests.peer_world import clock_of

ROUND_S = 8  # seconds that a peer's round takes

# Churn: from round 21 on five crash every ten rounds, and come back twenty rounds later.
NODES, TOPICS, FIRST, LAST = 30, 15, 21, 60
WAVES, SIZE, TABLE = 2, 5, 8
HEALED = range(FIRST + 9, LAST + 1, 10)  # nine rounds after each wave


def with_publishers() -> Workload:
    """Every topic's publisher is one of few subscribers, since those who publish never leave a timed run."""
    made = generate("vitis-high", nodes=NODES, topics=TOPICS, subscriptions_per_node=6, buckets=5, seed=3)
    publishers = [int(made.subscribers_of(topic)[0]) for topic in range(TOPICS)]
    return Workload.from_rows(made.node_topics, topic_count=TOPICS, publishers=publishers)


def churn(workload: Workload, seconds_a_round: int) -> Schedule:
    loose = np.setdiff1d(np.arange(NODES, dtype=np.int32), workload.publishers).astype(np.int32)
    nobody = np.empty(0, np.int32)
    waves = loose[: WAVES * SIZE].reshape(WAVES, SIZE)
    changes = {
        (FIRST + 10 * i) * seconds_a_round: Change(
            crashes=waves[i] if i < WAVES else nobody, joins=waves[i - 2] if i >= 2 else nobody
        )
        for i in range(WAVES + 2)
    }
    return Schedule(np.arange(NODES, dtype=np.int32), changes)


def ring_of(run: PeerRun) -> float:
    """The share of settled nodes whose first two links are their true neighbours on the ring, as rounds count it."""
    old = run.engine.now - 10 * ROUND_S
    peers = {n: p for n, p in run.engine.peers.items() if isinstance(p, VitisPeer) and run.since[n] <= old}
    ring_id = {node: int(run.workload.node_ids[node]) for node in peers}
    order = sorted(peers, key=lambda node: ring_id[node])
    right = [peers[node].table[:2] == [order[(i + 1) % len(order)], order[i - 1]] for i, node in enumerate(order)]
    return sum(right) / len(right)


def churn_by_rounds(workload: Workload) -> dict[str, float]:
    how = RunConfig(rounds=LAST, measure_every=5, measure_from=FIRST + 4, measure_topics=TOPICS, publish_from="owner")
    done = simulate("vitis", workload, run=how, seed=1, schedule=churn(workload, 1), table_size=TABLE)
    rows = done.tables["rounds"].to_pylist()
    rings = [row["ring"] for row in rows if row["round"] in HEALED]
    assert len(rings) == len(HEALED)
    means = {name: float(np.mean([row[name] for row in rows])) for name in ("hit_ratio", "overhead", "hops")}
    return means | {"ring": float(np.mean(rings))}


def churn_by_peers(workload: Workload) -> dict[str, float]:
    clock = clock_of(
        hours=(LAST + 2) * ROUND_S / 3_600,
        warm_up_s=0,
        start_s=10,
        publish_from_s=(FIRST + 1) * ROUND_S,
        publish_every_s=5 * ROUND_S,
        grace_s=10 * ROUND_S,  # as the grace of 10 rounds
        quiet_s=ROUND_S,
    )
    config = make_config("vitis", {"round_s": float(ROUND_S), "table_size": TABLE}, "peers")
    run = PeerRun("vitis", workload, config, clock, seed=1, schedule=churn(workload, ROUND_S))
    rings = []
    for now in HEALED:
        run.engine.run(now * ROUND_S)
        rings.append(ring_of(run))
    run.engine.run(clock.end_s)
    events = {name: float(column.sum()) for name, column in run.recorder.event_columns().items()}
    received = events["wanted"] + events["duplicate"] + events["unwanted"]
    return {
        "hit_ratio": events["reached"] / events["subscribers"],
        "overhead": events["unwanted"] / received,
        "hops": events["hops_sum"] / events["reached"],
        "ring": float(np.mean(rings)),
    }


def test_under_churn_peers_come_to_what_rounds_come_to() -> None:
    """Means over 40 rounds of the share reached, of overhead and hops; of the ring nine rounds after each wave, as a
    peer takes two rounds more than by rounds to believe that a node is gone. Without churn all hit ratios are 1."""
    workload = with_publishers()
    assert len(np.unique(workload.publishers)) < NODES - WAVES * SIZE
    rounds, peers = churn_by_rounds(workload), churn_by_peers(workload)
    assert peers["hit_ratio"] == pytest.approx(rounds["hit_ratio"], abs=0.02)
    assert peers["overhead"] == pytest.approx(rounds["overhead"], abs=0.03)
    assert peers["hops"] == pytest.approx(rounds["hops"], rel=0.15)
    assert peers["ring"] == pytest.approx(rounds["ring"], abs=0.05)
