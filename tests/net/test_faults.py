"""Faults of real processes: crashes, restarts, a network that falls apart and together again, full disks.

Applications read under names, and the oracle of `torture` (`net/judge`) says whether every promise was kept: what was
acknowledged is read, or was reported as lost; nothing comes twice, forged, or out of order. `grapevine cluster` does
the same with as many nodes as the machine can bear (docs/guide/torture.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from grapevine.net import namespaces, small_disks
from grapevine.net.cluster import Cluster
from grapevine.net.cluster_config import ClusterConfig, workload_of
from grapevine.net.cluster_faults import Faults, FullDisk, Kill, Partition
from grapevine.net.judge import Judge
from grapevine.net.play import play

PARAMETERS = {"round_s": 0.5, "settle_rounds": 4}
SETTINGS = {"durability": "process", "recover_every_s": 1.0, "retry_s": 1.0, "order_s": 60.0}
PATIENCE_S = 180.0  # the machine may be busy
pytestmark = pytest.mark.slow


def config(**changes: Any) -> ClusterConfig:
    sizes: dict[str, Any] = {"nodes": 10, "topics": 12, "subscriptions": 4, "processes": 5, "rate": 15.0}
    return ClusterConfig(**(sizes | {"ready_s": PATIENCE_S, "settle_s": PATIENCE_S} | changes))


def played(faults: Faults, data: Path, events: int) -> dict[str, Any]:
    """The summary of a run that these faults befell, which has to be sound."""
    sizes = config(events=events)
    how: dict[str, Any] = {"system": "vitis", "parameters": PARAMETERS, "settings": SETTINGS, "data": data}
    summary = play(workload_of(sizes, 1), sizes, **how, faults=faults, judged=True)
    assert summary["broken"] == [] and summary["is_complete"], summary
    assert (summary["damaged"], summary["strays"], summary["nodes_down"]) == (0, 0, 0)
    assert summary["recovery_ms_p50"] > 0, "nothing was missed, so the faults show nothing"
    return summary


def test_who_is_killed_and_returns_has_everything_that_was_published_meanwhile(tmp_path: Path) -> None:
    summary = played(Faults(kill=Kill(0.3, 2, 4)), tmp_path, events=150)
    assert summary["losses_reported"] == 0 and summary["hit_ratio"] == 1.0


def test_halves_that_were_apart_have_all_of_each_others_events_when_they_meet_again(tmp_path: Path) -> None:
    if (obstacle := namespaces.obstacle()) is not None:
        pytest.skip(obstacle)
    summary = played(Faults(partition=Partition(0.5, 2, 20)), tmp_path, events=400)
    assert summary["recovered"] > 0


def test_nodes_whose_disks_were_full_get_what_they_missed_and_keep_what_they_acknowledged(tmp_path: Path) -> None:
    if (obstacle := small_disks.obstacle()) is not None:
        pytest.skip(obstacle)
    summary = played(Faults(full_disk=FullDisk(5, 2, 10)), tmp_path, events=250)
    assert summary["unconfirmed"] > 0, "no disk refused anything"


def test_kills_cuts_and_full_disks_at_once(tmp_path: Path) -> None:
    if (obstacle := namespaces.obstacle() or small_disks.obstacle()) is not None:
        pytest.skip(obstacle)
    faults = Faults(kill=Kill(0.3, 2, 10), partition=Partition(0.5, 6, 15), full_disk=FullDisk(2, 4, 10))
    played(faults, tmp_path, events=400)


@asynccontextmanager
async def connected(data: Path, **changes: Any) -> AsyncIterator[Cluster]:
    sizes = config(**changes)
    how: dict[str, Any] = {"parameters": PARAMETERS, "settings": SETTINGS, "data": data, "judge": Judge()}
    async with Cluster.open(workload_of(sizes, 1), sizes, **how) as cluster:
        await cluster.wait_until_connected()
        yield cluster


def test_a_node_that_crashes_twenty_times_under_load_loses_nothing_and_gives_nothing_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path, nodes=5, processes=5) as cluster:
            publishing = asyncio.create_task(cluster.publish(events=100_000))
            for _ in range(20):
                await asyncio.sleep(0.3)
                await cluster.kill(4)
                await cluster.restart(4)
            publishing.cancel()
            assert cluster.tally.published > 100
            assert await cluster.wait_until_delivered(), cluster.summary()
            assert cluster.judge is not None and cluster.judge.verdict(cluster.down) == ([], 0)
            assert cluster.workers[4].session == 21

    asyncio.run(scenario())


def test_the_judge_notices_when_a_node_comes_back_without_its_folder(tmp_path: Path) -> None:
    """So that the tests above can fail: it is another peer, and has forgotten what it had acknowledged."""

    async def scenario() -> None:
        async with connected(tmp_path, nodes=4, processes=4) as cluster:
            await cluster.publish(events=20)
            assert await cluster.wait_until_delivered(), cluster.summary()
            await cluster.kill(3)
            cluster.folder_of(tmp_path, 3).rename(tmp_path / "gone")
            await cluster.restart(3)
            assert cluster.judge is not None
            found, _ = cluster.judge.verdict(cluster.down)
            assert "true: node 3 came back as another peer" in map(str, found)

    asyncio.run(scenario())
