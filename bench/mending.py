"""How long OMen takes to handle a churn event, against LowODA, which designs the overlay anew.

    .venv/bin/python -m bench.mending [--trace DIR]

Reference, in the same run: one design by LowODA (LowODA-Re does one after every event). `--trace` takes a stored
workload instead of generated ones.
"""

from __future__ import annotations

import argparse

from bench.designs import designed
from bench.rounds import Watch
from grapevine.model.workload import Workload
from grapevine.sim.churn import ChurnConfig, from_sessions
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate, generate_churn


def mended(workload: Workload, events: int = 40, quiet: int = 20, every: int = 4) -> tuple[float, float, Rounds]:
    """CPU seconds of a repair and of a round of gossip, and the engine."""
    sessions = generate_churn("machine-churn", nodes=workload.node_count, seed=1)
    schedule = from_sessions(sessions, workload.node_count, ChurnConfig(event_rounds=every, first_round=quiet))
    engine = Rounds("omen", workload, make_config("omen", {"resilience": 1}), seed=1, schedule=schedule)
    engine.step()
    watch = Watch()
    for _ in range(quiet - 2):
        engine.step()
    gossip = watch.spent().cpu / (quiet - 2)
    for _ in range(events * every):
        engine.step()
    return engine.system.findings()["repair_ms"] / 1000, gossip, engine


def compare(name: str, workload: Workload) -> None:
    repair, gossip, engine = mended(workload)
    anew, _ = designed("lowoda", workload)
    done = [row for row in engine.system.own_rows()["repairs"] if row["coordinator"] is not None]
    shadow = sum(row["shadow"] for row in done) / len(done)
    print(
        f"{name}: {len(done)} events, {1000 * repair:.2f} CPU ms each ({shadow:.0f} nodes in the shadow set); LowODA "
        f"anew {1000 * anew:,.0f} ms, {anew / repair:,.0f} times as long; a round of gossip {1000 * gossip:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace")
    chosen = parser.parse_args()
    if chosen.trace:
        stored = Workload.load(chosen.trace)
        compare(f"{stored.name}, {stored.node_count:,} nodes", stored)
    else:
        for nodes in (500, 1_000, 2_000):
            compare(f"Unif, {nodes:,} nodes × 200 topics", generate("omen", nodes=nodes, seed=1))
