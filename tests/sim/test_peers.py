"""Runs in virtual time: every number of their tables, counted again from a diary of what happened."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from functools import cache, partial
from typing import Any

import networkx as nx
import numpy as np
import pytest

from grapevine import Simulation, Workload, simulate
from grapevine.blocks.bloom import false_positive_rate
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.workload import Latency
from grapevine.sim.churn import Change, Schedule, mass_failure
from grapevine.sim.clock import ClockConfig
from grapevine.sim.peers import choose_publishers
from grapevine.synthetic import generate
from grapevine.systems.rappel import RappelPeer
from grapevine.systems.scribe import ScribePeer
from tests import naive
from tests.peer_world import WatchedRun, clock_of, crossing, watch, workload_of

SYSTEMS = "rappel", "scribe"
FAST: dict[str, dict[str, Any]] = {"rappel": {"landmarks": 5, "landmark_rounds": 2}, "scribe": {}}


def nodes(*numbers: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


COMING_AND_GOING = Schedule(
    np.arange(20, dtype=np.int32),  # 20 … 25 come later
    {
        310: Change(crashes=nodes(5, 6, 7, 1)),  # 1 publishes and 5 is an observer: they do not
        350: Change(joins=nodes(20, 21, 22, 23, 24, 25)),
        420: Change(leaves=nodes(8, 9)),
        500: Change(joins=nodes(6, 9)),
        600: Change(crashes=nodes(20, 6), leaves=nodes(21)),
        840: Change(leaves=nodes(10)),
    },
)
ROUGH = {"loss": 0.05, "duplication": 0.05, "measure_from_s": 400, "observers": 3}


@cache
def calm(system: str) -> tuple[Simulation, WatchedRun]:
    return watch(system, crossing(), clock_of(), **FAST[system])


@cache
def rough(system: str) -> tuple[Simulation, WatchedRun]:
    """Messages are lost and doubled, nodes come and go, and loads are measured from 400 s on."""
    return watch(system, crossing(), clock_of(**ROUGH), schedule=COMING_AND_GOING, **FAST[system])


EVERY = pytest.mark.parametrize(("system", "made"), [(s, made) for s in SYSTEMS for made in (calm, rough)])
BOTH = pytest.mark.parametrize("system", SYSTEMS)


def rows(done: Simulation, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.tables[table].to_pylist()
    return found


# Events, and who got them


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
    assert {row[name] for row in rows(done, "peers") for name in ("covered", "friends", "fans")} == {None}
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
        assert {row[name] for name in ("view", "backups", "backup_of")} == {None}
    assert sum(load["wanted"].values()) > 100


# The run as it went


@EVERY
def test_rounds_tell_who_was_there_and_what_became_of_the_events_in_between(system: str, made: Any) -> None:
    done, run = made(system)
    diary, count, before = run.diary, run.workload.node_count, 0
    events, deliveries = rows(done, "events"), rows(done, "deliveries")
    assert [row["round"] for row in rows(done, "rounds")] == [150, 300, 450, 600, 750, 900]
    for row in rows(done, "rounds"):
        now = row["round"]
        assert row["online"] == len({node for node in diary.online(now) if node < count})
        assert row["joined"] == sum(before < at <= now for at, node, _ in diary.started if node < count)
        assert row["left"] == sum(before < at <= now for at, node in diary.ended)
        chosen = [number for number, (at, _) in enumerate(diary.published) if before <= at < now]
        wanted = sum(events[number]["subscribers"] for number in chosen)
        reached = sum(events[number]["reached"] for number in chosen)
        assert row["hit_ratio"] == (pytest.approx(reached / wanted) if chosen else None)
        mine = [delivery for delivery in deliveries if delivery["event"] in chosen]
        for name, share in (("delay_ms_p50", 0.5), ("delay_ms_p95", 0.95)):
            delays = [delivery["delay_ms"] for delivery in mine]
            assert row[name] == (pytest.approx(np.quantile(delays, share)) if mine else None)
        ways = [d["path_ms"] / d["coordinate_ms"] for d in mine if d["path_ms"] is not None and d["coordinate_ms"]]
        assert row["stretch_p50"] == (pytest.approx(np.quantile(ways, 0.5)) if ways else None)
        assert {row[name] for name in ("ring", "utility", "connected_topics", "diameter")} == {None}
        before = now
    degrees = [len(run.system.neighbours(peer)) for node, peer in run.engine.peers.items() if node < count]
    assert rows(done, "rounds")[-1]["degree"] == pytest.approx(np.mean(degrees))
    assert rows(done, "rounds")[-1]["degree_max"] == max(degrees)


@EVERY
def test_messages_are_those_that_were_sent_between_two_rows_by_kind(system: str, made: Any) -> None:
    done, run = made(system)
    counts: Counter[tuple[int, str]] = Counter()
    for at, _, _, message, _ in run.diary.sent:
        counts[150 * max(1, math.ceil(at / 150)), type(message).__name__] += 1
    told = {(row["round"], row["kind"]): row["count"] for row in rows(done, "messages") if row["count"]}
    assert told == counts
    assert done.summary["messages"] == len(run.diary.sent)


@BOTH
def test_peers_send_and_receive_what_is_told_of_them(system: str) -> None:
    """Without loss, what is sent to somebody who is there arrives."""
    done, run = calm(system)
    start = {node: at for at, node, _ in run.diary.started}
    for row in rows(done, "peers"):
        sent = [message for _, sender, _, message, _ in run.diary.sent if sender == row["node"]]
        came = [
            message
            for at, _, to, message, arrives in run.diary.sent
            if to == row["node"] and at >= start[to] and arrives is not None and arrives <= run.clock.end_s
        ]
        assert (row["messages_out"], row["messages_in"]) == (len(sent), len(came))
        assert row["events_out"] == sum(message.carries_event for message in sent)
        assert row["events_in"] == sum(message.carries_event for message in came)
    assert len(rows(done, "peers")) == run.workload.node_count


@BOTH
def test_messages_of_peers_are_counted_from_the_measurement_on(system: str) -> None:
    done, run = rough(system)
    sent = Counter(sender for at, sender, *_ in run.diary.sent if at > 400)
    assert {row["node"]: row["messages_out"] for row in rows(done, "peers")} == {
        row["node"]: sent[row["node"]] for row in rows(done, "peers")
    }


# Who is there


@EVERY
def test_the_time_that_a_peer_was_there_is_counted_from_the_measurement_on(system: str, made: Any) -> None:
    done, run = made(system)
    begin, end = run.clock.measure_from_s, run.clock.end_s
    spent = {
        node: sum(max(0.0, min(last, end) - max(first, begin)) for first, last in stays)
        for node, stays in run.diary.stays().items()
        if node < run.workload.node_count
    }
    told = {row["node"]: row["online_s"] for row in rows(done, "peers")}
    assert told == pytest.approx({node: seconds for node, seconds in spent.items() if seconds > 0})
    assert {row["node"] for row in rows(done, "peers") if row["online"]} == {
        node for node in run.diary.online(end) if node < run.workload.node_count
    }


@BOTH
def test_nodes_come_and_go_at_the_seconds_of_the_schedule(system: str) -> None:
    _, run = rough(system)
    stays = run.diary.stays()
    steady = run.observers | {0, 1, 2, 3, 4}
    assert len(run.observers) == 3
    for node in steady:
        ((first, last),) = stays[node]  # publishers and observers never leave (Rappel §6.2.3)
        assert 65 <= first <= 95 and last == math.inf
    assert all(stays[publisher] == [(65.0, math.inf)] for publisher in (0, 1, 2, 3, 4))
    expected = {6: [310.0, 500.0, 600.0], 7: [310.0], 9: [420.0, 500.0], 10: [840.0]}
    expected |= {20: [350.0, 600.0], 21: [350.0, 600.0], 22: [350.0]}
    assert run.observers & {5, 8} and not run.observers & set(expected)
    for node, times in expected.items():
        told = [at for stay in stays[node] for at in stay if at != math.inf]
        assert told[0 if node >= 20 else 1 :] == times
    assert sum(at == 350.0 for at, _, _ in run.diary.started) == 6 - len(run.observers & set(range(20, 26)))


@BOTH
def test_the_first_nodes_start_one_after_the_other_when_servers_have_settled(system: str) -> None:
    _, run = calm(system)
    others = sorted(at for at, node, _ in run.diary.started if 5 <= node < run.workload.node_count)
    assert all(65 <= at <= 95 for at in others)
    assert len(set(others)) == len(others) == 21
    assert np.mean(others) == pytest.approx(80, abs=6)
    assert all(at == 0 for at, node, _ in run.diary.started if node >= run.workload.node_count)


def test_who_crashes_before_its_start_does_not_start() -> None:
    early = Schedule(np.arange(26, dtype=np.int32), {70: Change(crashes=np.arange(5, 26, dtype=np.int32))})
    _, run = watch("scribe", crossing(), clock_of(hours=0.05, start_s=60), schedule=early)
    started = {node: at for at, node, _ in run.diary.started if node >= 5}
    assert started and all(at <= 70 for at in started.values())
    assert len(started) < 21 and set(run.diary.online(180)) == {0, 1, 2, 3, 4}


def test_who_leaves_in_good_order_says_goodbye_and_who_crashes_does_not() -> None:
    _, run = rough("scribe")
    last = {node: max(at for at, sender, *_ in run.diary.sent if sender == node) for node in (7, 10)}
    said = {
        node: {type(message).__name__ for at, sender, _, message, _ in run.diary.sent if (at, sender) == (when, node)}
        for node, when in last.items()
    }
    assert last[10] == 840 and said[10] == {"Leave"}
    assert last[7] < 310 and "Leave" not in said[7]


@BOTH
def test_who_comes_back_remembers_its_last_session(system: str) -> None:
    _, run = rough(system)
    sessions = {node: [peer for _, who, peer in run.diary.started if who == node] for node in (6, 9)}
    for first, second in sessions.values():
        if isinstance(first, RappelPeer) and isinstance(second, RappelPeer):
            assert (first.session, second.session) == (1, 2)
            assert second._memory.friends == tuple(first.friendship.friends)  # stale by then (§5.3)
        else:
            assert isinstance(first, ScribePeer) and isinstance(second, ScribePeer)
            assert second._windows is first._windows
    got = Counter((node, event.topic, event.sequence) for _, node, event in run.diary.delivered)
    assert set(got.values()) == {1}  # nothing comes twice, not even to somebody who was away


# The overlay at the end


@EVERY
def test_peers_have_the_neighbours_that_the_system_names(system: str, made: Any) -> None:
    done, run = made(system)
    links = {(row["source"], row["target"], row["kind"]) for row in rows(done, "links")}
    expected = set()
    for row in rows(done, "peers"):
        there = run.engine.peers.get(row["node"])
        roles = run.system.neighbours(there) if there else {}
        told = {other: [role for role in mine if role != "fan"] for other, mine in roles.items()}
        assert row["neighbours"] == sum(len(mine) > 0 for mine in told.values())
        assert row["roles"] == sum(map(len, told.values()))
        expected |= {(row["node"], other, role) for other, mine in roles.items() for role in mine}
        topics = set(run.workload.topics_of(row["node"]).tolist())
        assert row["subscriptions"] == len(topics)
        if run.system.has_friends and there:
            friends = [other for other, mine in roles.items() if "friend" in mine]
            covered = {topic for other in friends for topic in run.workload.topics_of(other).tolist()}
            assert row["covered"] == len(topics & covered)
            assert row["friends"] == len(friends)
            assert row["fans"] == sum("fan" in mine for mine in roles.values())
    assert links == {link for link in expected if link[2] in ("friend", "parent")}


@EVERY
def test_places_are_those_of_peers_that_are_there(system: str, made: Any) -> None:
    done, run = made(system)
    told = {(row.pop("topic"), row.pop("node")): row for row in rows(done, "places")}
    expected = {}
    for node in run.diary.online(run.clock.end_s):
        if node < run.workload.node_count:
            for place in run.system.places(run.engine.peers[node]):
                expected[place.topic, node] = {
                    name: value for name, value in place._asdict().items() if name != "topic"
                }
    assert told == expected
    if made is calm:
        for (topic, node), place in told.items():
            assert (place["parent"] is None) == (node == run.workload.publishers[topic])
            assert place["children"] == sum((t, p["parent"]) == (topic, node) for (t, _), p in told.items())


def test_heights_are_steps_to_the_publisher() -> None:
    """What a node knows is as old as the last answer to a ping: it needs some calm."""
    done, _ = watch("rappel", crossing(), clock_of(hours=0.5, publish_every_s=0), rejoin_s=10_000, **FAST["rappel"])
    parent = {(row["topic"], row["node"]): row["parent"] for row in rows(done, "places")}
    for row in rows(done, "places"):
        steps, node = 0, row["node"]
        while (node := parent[row["topic"], node]) is not None:
            steps += 1
        assert row["height"] == steps
    assert max(row["height"] for row in rows(done, "places")) > 1


def test_who_has_not_found_a_parent_yet_knows_no_height() -> None:
    late = Schedule(nodes(0, 1), {899: Change(joins=nodes(2))})
    three = workload_of({1: {0}, 2: {0}}, nodes=3, publishers=[0])
    done = simulate("rappel", three, clock=clock_of(), schedule=late, **FAST["rappel"])
    assert {row["node"]: (row["parent"], row["height"]) for row in rows(done, "places")} == {
        0: (None, 0),
        1: (0, 1),
        2: (None, None),
    }


@EVERY
def test_clusters_of_topics_are_the_parts_of_their_trees(system: str, made: Any) -> None:
    done, run = made(system)
    for row in rows(done, "topic_overlay"):
        graph: nx.Graph[int] = nx.Graph()
        inside = {p["node"]: p["parent"] for p in rows(done, "places") if p["topic"] == row["topic"]}
        graph.add_nodes_from(inside)
        graph.add_edges_from((node, up) for node, up in inside.items() if up in inside)
        wanting = run.diary.online(900) & set(run.workload.subscribers_of(row["topic"]).tolist())
        graph.add_nodes_from(wanting)  # who is not in the tree is alone
        parts = [size for part in nx.connected_components(graph) if (size := len(part & wanting))]
        assert (row["subscribers"], row["clusters"]) == (len(wanting), len(parts))
        assert row["largest_cluster"] == max(parts, default=0)
        assert (row["gateways"], row["diameter"]) == (0, None)
    assert len(rows(done, "topic_overlay")) == 5


@EVERY
def test_the_drawn_topic_is_the_tree_of_the_one_with_most_subscribers(system: str, made: Any) -> None:
    done, run = made(system)
    sizes = [len(run.workload.subscribers_of(topic)) for topic in range(5)]
    topic = sizes.index(max(sizes))
    inside = {row["node"]: row["parent"] for row in rows(done, "places") if row["topic"] == topic}
    drawn = {row["node"]: row for row in rows(done, "drawn_nodes")}
    assert set(drawn) == set(inside)
    wanting = set(run.workload.subscribers_of(topic).tolist())
    for node, row in drawn.items():
        publishes = node == run.workload.publishers[topic]
        assert row["topic"] == topic
        assert row["role"] == ("publisher" if publishes else "subscriber" if node in wanting else "relay")
        here, there = run.position_of(int(run.workload.publishers[topic])), run.position_of(node)
        if here and there:  # the direction in the first two coordinates, clockwise from the second one's axis
            x, y = there[0] - here[0], there[1] - here[1]
            turn, away = 2 * math.pi * row["position"], math.hypot(x, y)
            assert (away * math.sin(turn), away * math.cos(turn)) == pytest.approx((x, y), abs=1e-6)
        else:
            assert row["position"] == int(run.workload.node_ids[node]) / 2**64
    assert {(row["source"], row["target"]) for row in rows(done, "drawn_links")} == {
        (up, node) for node, up in inside.items() if up in inside
    }


@EVERY
def test_tables_have_their_schemas_and_headlines_are_theirs(system: str, made: Any) -> None:
    done, _ = made(system)
    assert set(done.tables) == {table.name for table in tables.SIMULATION_TABLES}
    for table in tables.SIMULATION_TABLES:
        assert done.tables[table.name].schema.equals(table.schema), table.name
        done.tables[table.name].validate(full=True)
    delays = [row["delay_ms"] for row in rows(done, "deliveries")]
    assert done.summary["delay_ms"] == pytest.approx(np.median(delays))
    assert done.summary["delay_ms_p95"] == pytest.approx(np.quantile(delays, 0.95))
    spent = [row for row in rows(done, "peers") if row["online_s"] > 0]
    rates = [(row["messages_in"] + row["messages_out"]) / row["online_s"] for row in spent]
    assert done.summary["messages_per_s"] == pytest.approx(np.median(rates))
    events = rows(done, "events")
    reached, wanted = (sum(row[name] for row in events) for name in ("reached", "subscribers"))
    assert done.summary["hit_ratio"] == pytest.approx(reached / wanted)
    assert rows(done, "repairs") == []


# What decides a run


@BOTH
def test_the_seed_decides_everything(system: str) -> None:
    first, again, other = (
        simulate(system, crossing(), clock=clock_of(**ROUGH), schedule=COMING_AND_GOING, seed=seed, **FAST[system])
        for seed in (1, 1, 2)
    )
    watched, _ = rough(system)
    for name, table in first.tables.items():
        assert table.equals(again.tables[name]), name
        assert table.equals(watched.tables[name]), name  # who watches changes nothing
    for name in ("events", "deliveries", "peers", "messages"):
        assert not first.tables[name].equals(other.tables[name]), name


def test_a_topic_publishes_once_in_every_period_until_the_quiet_at_the_end() -> None:
    _, run = watch("scribe", crossing(), clock_of(publish_every_s=50, quiet_s=130))
    for topic in range(5):
        times = [at for at, which in run.diary.published if which == topic]
        assert 200 <= times[0] < 250
        assert np.diff(times) == pytest.approx(50)
        assert 720 < times[-1] <= 770
    assert len({at for at, _ in run.diary.published[:5]}) == 5  # each at a moment of its own
    assert [len(m.payload) for _, _, _, m in run.diary.received[:1]] == [1_024]


@BOTH
def test_no_events_are_published_when_none_are_wanted(system: str) -> None:
    done = simulate(system, crossing(), clock=clock_of(hours=0.1, publish_every_s=0), **FAST[system])
    assert rows(done, "events") == rows(done, "deliveries") == []
    assert {row["hit_ratio"] for row in rows(done, "rounds")} == {None}
    assert done.summary["hit_ratio"] is done.summary["delay_ms"] is None
    assert len(rows(done, "places")) > 0


@BOTH
def test_events_may_be_published_as_soon_as_publishers_are_there(system: str) -> None:
    settings = clock_of(hours=0.05, warm_up_s=0, publish_from_s=0, publish_every_s=20)
    done = simulate(system, crossing(), clock=settings, **FAST[system])
    assert len(rows(done, "events")) == 5 * 6
    assert rows(done, "events")[0]["subscribers"] == 0


@BOTH
def test_a_measurement_that_begins_later_counts_less(system: str) -> None:
    whole, _ = calm(system)
    late = simulate(system, crossing(), clock=clock_of(measure_from_s=600), **FAST[system])
    assert late.tables["events"].equals(whole.tables["events"])
    assert late.tables["messages"].equals(whole.tables["messages"])
    for row, before in zip(rows(late, "peers"), rows(whole, "peers"), strict=True):
        assert row["online_s"] == pytest.approx(300)
        assert row["messages_out"] < before["messages_out"]
        assert row["events_in"] <= before["events_in"]
    assert late.nodes["wanted"].to_numpy().sum() < whole.nodes["wanted"].to_numpy().sum()


def test_a_subscriber_counts_once_it_has_been_there_for_the_grace_time() -> None:
    """Node 2 comes at 300 s; the topic publishes every 10 s."""
    late = Schedule(nodes(0, 1), {300: Change(joins=nodes(2))})
    pair = workload_of({1: {0}, 2: {0}}, nodes=3, publishers=[0])
    for grace in (0, 45):
        settings = clock_of(hours=0.1, grace_s=grace, publish_every_s=10, quiet_s=5)
        done, run = watch("scribe", pair, settings, schedule=late)
        told = {at: row["subscribers"] for (at, _), row in zip(run.diary.published, rows(done, "events"), strict=True)}
        assert told == {at: 2 if at >= 300 + grace else 1 for at in told}
        assert set(told.values()) == {1, 2}


def test_publishers_are_those_of_the_trace_or_else_a_subscriber() -> None:
    unknown = Workload.from_pairs([3, 4, 5], [1, 1, 2], node_count=6, topic_count=4, publishers=[5, -1, -1, -1])
    chosen = choose_publishers(unknown, 1)
    assert (chosen[0], chosen[2], chosen[3]) == (5, 5, 0)  # nobody wants the last
    assert {choose_publishers(unknown, seed)[1] for seed in range(20)} == {3, 4}


# What else can be asked of a run


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"observers": 27}, "observers=27: there are only 24 subscribers"),
        ({"latency": "recorded"}, "latency=recorded: no recorded latencies"),
        ({"loss": 1.0}, "loss=1.0: needs at most 0.99"),
        ({"duplication": -0.1}, "duplication=-0.1: needs at least 0"),
        ({"hours": 0}, "hours=0: needs at least 0.01"),
        ({"publish_from_s": 64}, "publish_from_s=64: publishers start after warm_up_s=65"),
        ({"latency": "guessed"}, "latency='guessed': choose one of as-links, recorded, coordinates, constant"),
    ],
)
def test_impossible_clocks_are_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate("scribe", crossing(), clock=clock_of(**settings))
    assert said in str(caught.value)


def test_recorded_latencies_are_the_delays_of_messages() -> None:
    """One hop: half the round trip between the sites of publisher and subscriber."""
    matrix = np.array([[[0, 80], [80, 0]]], np.float32)
    pair = workload_of({1: {0}}, nodes=2, publishers=[0])
    done = simulate("scribe", pair, clock=clock_of(latency="recorded", hours=0.1), latency=Latency(matrix))
    assert rows(done, "deliveries")
    for row in rows(done, "deliveries"):
        assert row["delay_ms"] == pytest.approx(40.0) == row["direct_ms"]


@BOTH
def test_messages_of_constant_latency_take_half_the_round_trip(system: str) -> None:
    done = simulate(system, crossing(), clock=clock_of(latency="constant", constant_rtt_ms=60), **FAST[system])
    for row in rows(done, "deliveries"):
        assert row["delay_ms"] == pytest.approx(30 * row["hops"], rel=1e-5)


def test_signed_updates_reach_everybody_as_unsigned_ones_do() -> None:
    """§4.1. Signatures decide nothing while all is well: both runs are the same."""
    feed = generate("rappel-feed", nodes=20)
    plain, signed = (
        watch("rappel", feed, clock_of(hours=0.12, grace_s=100), signed=signed, **FAST["rappel"])
        for signed in (False, True)
    )
    assert signed[0].summary["hit_ratio"] == 1.0
    assert signed[0].tables["deliveries"].equals(plain[0].tables["deliveries"])
    assert {len(m.signature) for _, _, _, m in signed[1].diary.received} == {64}
    assert {len(m.signature) for _, _, _, m in plain[1].diary.received} == {0}


def test_a_tenth_of_the_messages_is_lost_and_everybody_gets_everything() -> None:
    """§4.1: gaps in the sequence numbers are pulled."""
    feed = generate("rappel-feed", nodes=20)
    settings = clock_of(hours=0.4, loss=0.1, quiet_s=300, grace_s=150, publish_every_s=30)
    done = simulate("rappel", feed, clock=settings, **FAST["rappel"])
    assert done.summary["hit_ratio"] == 1.0
    assert sum(row["pulled"] for row in rows(done, "deliveries")) > 10
    without = simulate("rappel", feed, clock=settings, recover_gaps=False, **FAST["rappel"])
    assert without.summary["hit_ratio"] is not None and without.summary["hit_ratio"] < 1.0


@pytest.mark.parametrize("friends", [1, 2, 3])
def test_best_friends_cover_what_a_greedy_choice_with_full_knowledge_covers(friends: int) -> None:
    """Rappel Fig. 1: of subscribers with at least five feeds, how many are covered wholly?"""
    workload = generate("vitis-random", nodes=60, topics=14, subscriptions_per_node=6, seed=3)
    interests = [set(workload.topics_of(node).tolist()) for node in range(60)]
    able = [node for node in range(60) if len(interests[node]) >= 5]
    whole = [
        naive.covered_by_friends(interests, node, friends, partial(naive.draw, 1, 0, node))[-1] == len(interests[node])
        for node in able
    ]
    settings = ClockConfig(latency="constant", hours=0.01, publish_every_s=0, best_friends=friends)
    done = simulate("scribe", workload, clock=settings)
    assert done.summary["best_friends_cover"] == pytest.approx(sum(whole) / len(able))
    assert sum(whole) > 0 or friends == 1


def test_best_friends_of_nobody_who_has_enough_feeds_are_unknown() -> None:
    settings = ClockConfig(latency="constant", hours=0.01, publish_every_s=0, best_friends=6, filter_probes=200)
    done = simulate("scribe", crossing(), clock=settings, seed=5)
    assert done.summary["best_friends_cover"] is None
    for feeds in (50, 100, 200):
        expected = false_positive_rate(feeds, 200, name="feed 5")
        assert done.summary[f"false_positives_{feeds}"] == expected
    silent, _ = calm("scribe")
    assert silent.summary["best_friends_cover"] is silent.summary["false_positives_50"] is None


@BOTH
def test_a_mass_failure_is_seen_in_the_row_after_it(system: str) -> None:
    crash = mass_failure(26, share=0.5, round=400)
    done = simulate(system, crossing(), clock=clock_of(), schedule=crash, **FAST[system])
    gone = 13 - len({0, 1, 2, 3, 4} & set(crash.changes[400].crashes.tolist()))
    assert [(row["online"], row["left"]) for row in rows(done, "rounds")] == (
        [(26, 0), (26, 0), (26 - gone, gone)] + [(26 - gone, 0)] * 3
    )
