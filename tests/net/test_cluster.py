"""A small network of processes: what it counts, and what it survives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from grapevine.model.errors import GrapevineError
from grapevine.net.cluster import Cluster
from grapevine.net.cluster_config import ClusterConfig, workload_of
from grapevine.net.connectedness import are_connected
from grapevine.net.orders import Look, Opened
from grapevine.net.play import play

SMALL: dict[str, Any] = {"nodes": 6, "topics": 8, "subscriptions": 4, "processes": 2, "rate": 20.0}
FAST = {"round_s": 0.3}


def children() -> set[int]:
    """Groups that this process has started."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "grapevine.net.group"], capture_output=True, check=False
    )
    return {int(pid) for pid in found.stdout.split()}


def test_every_event_reaches_every_subscriber_once(tmp_path: Path) -> None:
    config = ClusterConfig(**SMALL, events=20)
    seen: list[dict[str, Any]] = []
    summary = play(
        *(workload_of(config, 1), config),
        system="vitis",
        parameters=FAST,
        settings={},
        out=tmp_path / "out",
        progress=seen.append,
    )
    assert (summary["hit_ratio"], summary["events"], summary["stopped"]) == (1.0, 20, False)
    assert summary["delivered"] == summary["expected"] > 20
    assert (summary["duplicates"], summary["damaged"], summary["strays"], summary["failures"]) == (0, 0, 0, 0)
    assert summary["topics_connected"] == 1.0
    assert 0 < summary["delay_ms_p50"] <= summary["delay_ms_p99"] <= summary["delay_ms_max"]
    assert summary["degree_max"] <= 5
    assert summary["rss_per_node_bytes"] > 0
    assert len(list((tmp_path / "out" / "diaries").glob("*.jsonl"))) == 6
    assert seen[-1]["nodes"] == 6
    assert not children()


def test_nothing_is_published_before_all_topics_are_connected() -> None:
    config, seen = ClusterConfig(**SMALL, events=20, ready_s=0), list[dict[str, Any]]()
    how: dict[str, Any] = {"system": "vitis", "parameters": {"round_s": 60.0}, "settings": {}}
    with pytest.raises(GrapevineError, match=r"after 0 s the subscribers of \d of 8 topics were connected"):
        play(workload_of(config, 1), config, progress=seen.append, **how)
    assert all(state["published"] == 0 for state in seen)
    assert not children()


@pytest.mark.slow
def test_a_group_that_is_killed_gets_what_it_missed_when_it_comes_back(tmp_path: Path) -> None:
    config = ClusterConfig(**SMALL)

    async def scenario() -> None:
        opening = Cluster.open(workload_of(config, 1), config, parameters=FAST, data=tmp_path)
        async with asyncio.timeout(180), opening as cluster:
            await cluster.wait_until_connected()
            await cluster.publish(events=10)
            assert await cluster.wait_until_delivered()
            await cluster.kill(1)
            assert cluster.down == {1, 3, 5}
            await cluster.publish(events=10)
            assert await cluster.wait_until_delivered(), cluster.tally.missing(cluster.down)
            alone = cluster.tally.delivered(cluster.down)
            await cluster.restart(1)
            assert cluster.tally.delivered()[1] > alone[1], "what was published meanwhile is due"
            assert await cluster.wait_until_delivered(60), cluster.tally.missing()
            assert cluster.tally.duplicates == 0
            await cluster.stop(1)
            with pytest.raises(GrapevineError, match="group 1: it is not running"):
                await cluster.workers[1].ask(Look(), Opened, 10)

    asyncio.run(scenario())
    assert not children()


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_command(tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "grapevine", "cluster", "--nodes", "4", "--topics", "4", "--subscriptions", "2"]
    command += ["--processes", "2", "--duration", "600", "--out", "out", "--json"]
    started = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    groups = _wait_for_groups(started.pid, 2)
    started.send_signal(end)
    started.communicate(timeout=60)
    assert started.returncode == (130 if end != signal.SIGKILL else -9)
    deadline = time.monotonic() + 30
    while any(_is_running(pid) for pid in groups):
        assert time.monotonic() < deadline, "a group is left behind"
        time.sleep(0.05)


def _wait_for_groups(parent: int, count: int) -> list[int]:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, check=False).stdout.split()
        if len(found) == count:
            return [int(pid) for pid in found]
        time.sleep(0.05)
    raise AssertionError("the groups did not start")


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z" if Path("/proc").is_dir() else True


def test_generated_workloads_fit_whatever_is_asked_for() -> None:
    for topics, subscriptions in ((200, 50), (12, 4), (7, 3), (10, 10), (5, 1), (9, 4)):
        workload = workload_of(ClusterConfig(nodes=6, topics=topics, subscriptions=subscriptions, processes=1), 1)
        assert workload.topic_count == topics
        assert {len(workload.topics_of(node)) for node in range(6)} == {subscriptions}


def test_components_are_those_of_networkx() -> None:
    for seed in range(20):
        graph = nx.gnm_random_graph(12, 9, seed=seed)
        wanted = list(range(0, 12, 4))
        expected = any(set(wanted) <= part for part in nx.connected_components(graph))
        assert are_connected(wanted, graph.edges) == expected
