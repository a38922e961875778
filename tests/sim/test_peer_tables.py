"""Tables of runs in virtual time: every number, counted again from a diary of what happened."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

from grapevine import simulate
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.result import tables_of
from grapevine.systems.contracts.trees import messages_by_height
from tests.peer_world import (
    BOTH,
    EVERY,
    FAST,
    calm,
    clock_of,
    crossing,
    nodes,
    rough,
    rows,
    watch,
    workload_of,
)


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
        assert {row[name] for name in ("ring", "utility", "connected_topics", "diameter", "diameter_max")} == {None}
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


@EVERY
def test_peers_have_the_neighbours_that_the_system_names(system: str, made: Any) -> None:
    done, run = made(system)
    links = {(row["source"], row["target"], row["kind"]) for row in rows(done, "links")}
    known = {row.pop("node"): row for row in rows(done, "friends")} if system == "rappel" else {}
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
        if system == "rappel" and there:
            friends = [other for other, mine in roles.items() if "friend" in mine]
            covered = {topic for other in friends for topic in run.workload.topics_of(other).tolist()}
            assert known[row["node"]] == {
                "subscriptions": len(topics),
                "covered": len(topics & covered),
                "friends": len(friends),
                "fans": sum("fan" in mine for mine in roles.values()),
            }
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


def test_messages_are_told_by_the_least_height_of_a_node() -> None:
    """Rappel Fig. 11b: a node that is at heights 3 and 1 of two trees counts at 1; who was not there does not."""
    places = [(0, 0, 0), (0, 1, 1), (0, 2, 3), (1, 2, 1), (0, 3, None), (0, 4, 2)]
    peers = [(0, 10.0, 50, 10), (1, 10.0, 5, 5), (2, 10.0, 20, 10), (3, 10.0, 1, 1), (4, 0.0, 0, 0)]
    columns = ("topic", "node", "height"), ("node", "online_s", "messages_in", "messages_out")
    tables = (
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in content])
        for names, content in zip(columns, (places, peers), strict=True)
    )
    assert messages_by_height(*tables) == {"messages_per_s_at_height_0": 6.0, "messages_per_s_at_height_1": 2.0}


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


def clusters_in(run: Any, done: Any, topic: int) -> list[list[int]]:
    """Subscribers in the topic's tree that its edges connect without a relay, the largest cluster last."""
    inside = {row["node"]: row["parent"] for row in rows(done, "places") if row["topic"] == topic}
    wanting = set(run.workload.subscribers_of(topic).tolist())
    graph = nx.Graph([(node, up) for node, up in inside.items() if up in inside])
    graph.add_nodes_from(inside)
    parts = nx.connected_components(graph.subgraph(wanting | {run.publishers[topic]}))
    return sorted((sorted(part & wanting) for part in parts if part & wanting), key=len)


@EVERY
def test_the_drawn_topic_is_the_tree_of_one_with_a_few_clusters(system: str, made: Any) -> None:
    done, run = made(system)
    found = {topic: clusters_in(run, done, topic) for topic in range(5)}
    outside = {
        topic: sum(map(len, parts)) - len(parts[-1])
        for topic, parts in found.items()
        if 2 <= len(parts) <= 4 and 10 <= sum(map(len, parts)) <= 60
    }
    popular = max(found, key=lambda topic: sum(map(len, found[topic])))
    topic = max(outside, key=lambda topic: outside[topic], default=popular)
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
    parts = clusters_in(run, done, topic)
    numbers = {number: [n for n in drawn if drawn[n]["cluster"] == number] for number in range(len(parts))}
    assert sorted(map(sorted, numbers.values())) == sorted(parts)
    assert [len(numbers[number]) for number in sorted(numbers)] == sorted(map(len, parts), reverse=True)
    assert all(drawn[node]["cluster"] is None for node in inside if node not in wanting)
    for row in rows(done, "drawn_links"):
        assert row["kind"] == ("cluster" if {row["source"], row["target"]} <= wanting else "path")
    assert {(row["source"], row["target"]) for row in rows(done, "drawn_links")} == {
        (up, node) for node, up in inside.items() if up in inside
    }


@EVERY
def test_tables_have_their_schemas_and_headlines_are_theirs(system: str, made: Any) -> None:
    done, _ = made(system)
    assert set(done.tables) == {table.name for table in tables_of(system, "peers")}
    for table in tables_of(system, "peers"):
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
