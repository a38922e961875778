"""What `grapevine cluster` says of a network while it comes up, publishes, and loses nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grapevine.cli.cluster import _progress
from grapevine.net.cluster_config import ClusterConfig, workload_of
from grapevine.net.play import play
from tests.cli.command import run

STATE: dict[str, Any] = {
    "stage": "publishing",
    "time_s": 0.0,
    "nodes": 12,
    "nodes_wanted": 12,
    "degree": 7.25,
    "degree_max": 9,
    "connected": 0.5,
    "published": 40,
    "events_wanted": 1_000,
    "hit_ratio": 0.999,
    "delay_ms_p50": 10.47,
    "delay_ms_p99": None,
}
UP = {"stage": "starting", "published": 0, "hit_ratio": None, "delay_ms_p50": None}


def test_lines_say_who_is_up_how_many_neighbours_they_have_and_what_arrived(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with _progress(log="plain", quiet=False) as tell:
        assert tell is not None
        tell(STATE | UP | {"nodes": 0})
        tell(STATE | UP | {"nodes": 5, "time_s": 1.0})
        tell(STATE | UP | {"nodes": 5, "time_s": 2.0})  # nothing new
        tell(STATE | {"time_s": 3.0})
        tell(STATE | {"nodes": 8, "time_s": 4.0})
        tell(STATE | {"nodes": 8, "time_s": 8.0})
        tell(STATE | {"nodes": 8, "time_s": 9.0})  # another five seconds
    here = "7.2 neighbours each, at most 9"
    there = "topics connected 50% · 40 of 1,000 events · hit ratio 99.90% · delay, median 10.47 ms"
    assert capsys.readouterr().err.splitlines() == [
        "starting: 0 of 12 nodes are up",
        "starting: 5 of 12 nodes are up",
        f"publishing: 12 of 12 nodes are up · {here} · {there}",
        f"publishing: 8 of 12 nodes are up · {here} · {there}",
        f"publishing: 8 of 12 nodes are up · {here} · {there}",
    ]


def test_programs_get_every_state_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    with _progress(log="json", quiet=True) as tell:
        assert tell is not None
        tell(STATE)
        tell(STATE)
    assert [json.loads(line) for line in capsys.readouterr().err.splitlines()] == [STATE, STATE]
    with _progress(log="plain", quiet=True) as tell:
        assert tell is None


def test_a_network_is_watched_from_its_first_process_on() -> None:
    config = ClusterConfig(nodes=4, topics=4, subscriptions=2, processes=1, events=2)
    seen: list[dict[str, Any]] = []
    how: dict[str, Any] = {"system": "vitis", "parameters": {"round_s": 0.3}, "settings": {}}
    play(workload_of(config, 1), config, progress=seen.append, **how)
    assert (seen[0]["stage"], seen[0]["nodes"]) == ("starting", 0)
    assert (seen[-1]["nodes"], seen[-1]["nodes_wanted"], seen[-1]["events_wanted"]) == (4, 4, 2)


TINY = ("cluster", "--nodes", "4", "--topics", "4", "--subscriptions", "2", "--processes", "2", "--events", "4")


def test_a_network_that_does_not_come_together_is_a_failure_in_one_sentence() -> None:
    answer = run(*TINY, "--ready-s", "0", "--set", "round_s=60", "--json")
    assert (answer.returncode, answer.stdout) == (1, "")
    (line,) = answer.stderr.splitlines()
    assert line.startswith("failed: after 0 s the subscribers of ") and line.endswith("fewer nodes for this machine")


def test_deliveries_that_are_missing_in_the_end_are_a_failure_after_the_summary() -> None:
    answer = run(*TINY, "--events", "300", "--rate", "100000", "--settle-s", "0", "--set", "round_s=0.3", "--json")
    summary = json.loads(answer.stdout)
    assert not summary["is_complete"], "everything came at once: the test shows nothing"
    assert answer.returncode == 1 and "failed: 0 s after the last event " in answer.stderr
    assert f"deliveries were missing, and {summary['unconfirmed']} events not confirmed" in answer.stderr
