"""Faults of a live network: crashes, and a network that falls apart and together again. Nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grapevine.net.cluster import Cluster
from grapevine.net.cluster_config import ClusterConfig, workload_of
from tests.net import namespaces

PARAMETERS = {"round_s": 0.5, "settle_rounds": 4}
SETTINGS = {"durability": "process", "recover_every_s": 1.0, "retry_s": 1.0}


def config(**changes: int) -> ClusterConfig:
    return ClusterConfig(**({"nodes": 12, "topics": 12, "subscriptions": 4, "processes": 4} | changes))


@pytest.mark.slow
def test_who_is_killed_and_returns_has_everything_that_was_published_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        sizes = config()
        async with Cluster.open(
            workload_of(sizes, 1), sizes, parameters=PARAMETERS, settings=SETTINGS, data=tmp_path / "data"
        ) as cluster:
            await cluster.wait_until_connected(60)
            await cluster.publish(events=30, rate=15)
            killed = cluster.groups_for(0.3)
            await asyncio.gather(*(cluster.kill(group) for group in killed))
            await cluster.publish(events=60, rate=15)
            await asyncio.gather(*(cluster.restart(group) for group in killed))
            await cluster.publish(events=30, rate=15)
            assert await cluster.wait_until_delivered(90), cluster.summary()
            summary = cluster.summary()
            assert summary["hit_ratio"] == 1.0 and not summary["nodes_down"]
            assert summary["events"] >= 119  # one may have died with its publisher, unacknowledged

    asyncio.run(scenario())


@pytest.mark.slow
def test_halves_that_were_apart_have_all_of_each_others_events_when_they_meet_again(tmp_path: Path) -> None:
    if reason := namespaces.possible():
        pytest.skip(reason)

    async def scenario(hosts: namespaces.Hosts) -> None:
        sizes = config()
        async with Cluster.open(
            workload_of(sizes, 1), sizes, parameters=PARAMETERS, settings=SETTINGS, spots=hosts.spots
        ) as cluster:
            await cluster.wait_until_connected(60)
            await cluster.publish(events=30, rate=15)
            assert await cluster.wait_until_delivered(60), cluster.summary()
            hosts.cut()
            await cluster.publish(events=60, rate=15)
            found, expected = cluster.tally.delivered(cluster.down)
            assert found < expected, "the halves were not apart"
            hosts.heal()
            assert await cluster.wait_until_delivered(120), cluster.summary()
            assert cluster.summary()["hit_ratio"] == 1.0

    with namespaces.hosts("grapevine-test") as hosts:
        asyncio.run(scenario(hosts))
