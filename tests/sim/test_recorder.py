"""Events of runs in virtual time, counted again from a diary of what happened."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import pytest

from grapevine.systems.rappel.peer import RappelPeer
from tests.peer_world import (
    EVERY,
    WatchedRun,
    calm,
    rows,
)


class Journey:
    """What became of one event, from the messages that carried it."""

    def __init__(self, run: WatchedRun, number: int) -> None:
        diary, workload = run.diary, run.workload
        self.time, self.topic = diary.published[number]
        self.publisher = int(workload.publishers[self.topic])
        self.sequence = [topic for _, topic in diary.published[: number + 1]].count(self.topic)
        old = self.time - run.clock.grace_s
        here = {
            n for n, stays in diary.stays().items() if any(start <= old and self.time < end for start, end in stays)
        }
        self.subscribers = set(workload.subscribers_of(self.topic).tolist())
        self.counted = (here & self.subscribers) - {self.publisher}
        self.copies = [
            (at, node, sender)
            for at, node, sender, message in diary.received
            if (message.topic, message.sequence) == (self.topic, self.sequence)
        ]
        self.came_from: dict[int, int] = {}
        for _, node, sender in self.copies:
            if node != self.publisher:
                self.came_from.setdefault(node, sender)

    def way(self, node: int) -> list[int]:
        """From the publisher to the node."""
        return [*self.way(self.came_from[node]), node] if node in self.came_from else [node]

    def kinds(self) -> Counter[tuple[str, int]]:
        """Of every copy: wanted, duplicate or unwanted, and where."""
        seen, found = {self.publisher}, Counter[tuple[str, int]]()
        for _, node, _ in self.copies:
            wanted = "duplicate" if node in seen else "wanted"
            found[wanted if node in self.subscribers else "unwanted", node] += 1
            seen.add(node)
        return found


@EVERY
def test_events_count_wanted_and_unwanted_copies_relays_and_hops(system: str, made: Any) -> None:
    done, run = made(system)
    told, deliveries = rows(done, "events"), rows(done, "deliveries")
    assert len(told) == len(run.diary.published) > 20
    for number, row in enumerate(told):
        event = Journey(run, number)
        kinds = Counter[str]()
        for (kind, _), count in event.kinds().items():
            kinds[kind] += count
        assert (row["round"], row["topic"], row["publisher"]) == (int(event.time), event.topic, event.publisher)
        assert row["rate"] == 1.0
        assert row["subscribers"] == len(event.counted)
        got = {d["node"] for d in deliveries if d["event"] == number}
        assert row["reached"] == len(got) and got <= event.counted
        assert {kind: row[kind] for kind in ("wanted", "duplicate", "unwanted")} == {
            kind: kinds[kind] for kind in ("wanted", "duplicate", "unwanted")
        }
        assert row["relays"] == len({node for _, node, _ in event.copies} - event.subscribers)
        hops = sorted(len(event.way(node)) - 1 for node in got)
        ranks = [hops[math.ceil(q * len(hops)) - 1] if hops else 0 for q in (0.5, 0.95, 0.99, 1.0)]
        assert [row[f"hops_{name}"] for name in ("p50", "p95", "p99", "max")] == ranks
        assert row["hops_sum"] == sum(hops)


@EVERY
def test_deliveries_are_the_first_copies_that_counted_subscribers_got(system: str, made: Any) -> None:
    done, run = made(system)
    told, expected = rows(done, "deliveries"), 0
    journeys = [Journey(run, number) for number in range(len(run.diary.published))]
    numbers = {(event.topic, event.sequence): number for number, event in enumerate(journeys)}
    for at, node, handed in run.diary.delivered:
        number = numbers[handed.topic, handed.sequence]
        event = journeys[number]
        if node in event.counted:
            row, expected = told[expected], expected + 1
            assert (row["event"], row["node"], row["pulled"]) == (number, node, handed.pulled)
            assert row["delay_ms"] == pytest.approx((at - event.time) * 1e3)
            assert row["hops"] == len(event.way(node)) - 1
            assert row["direct_ms"] == pytest.approx(run.latency(event.time, event.publisher, node) * 1e3)
            assert row["observer"] == (node in run.observers)
    assert expected == len(told) > 100
    assert len({(row["event"], row["node"]) for row in told}) == len(told)


def test_a_way_is_as_long_as_its_steps_in_coordinates() -> None:
    """Without churn everybody has the same coordinates from its start to the end."""
    done, run = calm("rappel")
    places = {n: p.position for n, p in run.engine.peers.items() if isinstance(p, RappelPeer)}
    journeys = [Journey(run, number) for number in range(len(run.diary.published))]
    for row in rows(done, "deliveries"):
        event = journeys[row["event"]]
        way = event.way(row["node"])
        steps = sum(math.dist(places[a], places[b]) for a, b in itertools.pairwise(way))
        assert row["path_ms"] == pytest.approx(steps)
        assert row["coordinate_ms"] == pytest.approx(math.dist(places[way[0]], places[way[-1]]))
    assert max(row["hops"] for row in rows(done, "deliveries")) > 1


def test_a_system_without_coordinates_and_friends_leaves_their_columns_empty() -> None:
    done, _ = calm("scribe")
    assert {row[name] for row in rows(done, "deliveries") for name in ("coordinate_ms", "path_ms")} == {None}
    assert "friends" not in done.tables
    assert done.summary["stretch"] is None


@EVERY
def test_loads_are_the_copies_since_the_measurement_began(system: str, made: Any) -> None:
    done, run = made(system)
    load: dict[str, Counter[int]] = defaultdict(Counter)
    for number in range(len(run.diary.published)):
        event, seen = Journey(run, number), set[int]()
        for at, node, _ in event.copies:
            again = node in seen or node == event.publisher
            kind = "unwanted" if node not in event.subscribers else "duplicate" if again else "wanted"
            seen.add(node)
            load[kind][node] += at > run.clock.measure_from_s
    for row in rows(done, "node_load"):
        node, mine = row["node"], [load[kind][row["node"]] for kind in ("wanted", "duplicate", "unwanted")]
        assert [row[kind] for kind in ("wanted", "duplicate", "unwanted")] == mine
        assert row["overhead"] == (pytest.approx(mine[2] / sum(mine)) if sum(mine) else None)
        assert row["online"] == (node in run.diary.online(run.clock.end_s))
        there = run.engine.peers.get(node)
        assert row["degree"] == (len(run.system.neighbours(there)) if there else 0)
    assert sum(load["wanted"].values()) > 100
