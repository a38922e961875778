"""`grapevine torture`: totals of sound seeds, and a failing seed with how to see it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grapevine.net.torture import Outcome, Settings, run_seed
from grapevine.net.torture.machine import Machine
from tests.cli.command import run

SMALL = ("--nodes", "3", "--minutes", "1", "--pace-s", "8", "--publish-s", "1", "--heal-s", "20")


def without_recovery(machines: list[Machine]) -> None:
    machines[0].world.settings["recover_every_s"] = 1e9


def test_totals_are_printed_for_people_and_programs() -> None:
    answer = run("torture", "--seeds", "1", *SMALL, "--json")
    totals: dict[str, Any] = json.loads(answer.stdout)
    assert answer.returncode == 0 and totals["seeds"] == 1 and totals["failed"] == {}
    assert totals["read"] > totals["acknowledged"] > 0 and totals["virtual_node_hours"] > 0.05


def test_a_seed_that_fails_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int, settings: Settings) -> Outcome:
        return run_seed(seed, settings, change=without_recovery)

    monkeypatch.setattr("grapevine.cli.torture.run_seed", broken)
    answer = run("torture", "--seed", "3", *SMALL, "--no-shrink")
    assert answer.returncode == 1 and "complete: " in answer.stdout
    replay = "grapevine torture --seed 3 --nodes 3 --minutes 1 --pace-s 8 --publish-s 1 --heal-s 20 --transcript"
    assert f"Replay: {replay}" in answer.stdout
