"""What every system of peers owes: the same for all that are registered, so a new one is tested at once."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine import Workload, simulate
from grapevine.model.errors import UsageError
from grapevine.sim.churn import Change, Schedule, flash_crowd
from grapevine.sim.events import Events
from grapevine.sim.peers import PeerRun
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.contracts.peer import Address, Deliver, Message, World
from grapevine.systems.registry import system_named, systems_with
from tests.effort import examples
from tests.peer_world import clock_of, workload_of

FLOODS = {"spidercast", "vitis"}  # by links between subscribers, so some copies are second ones
PRUNES = {"trellis"}
SLOW = {"vitis"}  # gossips every few seconds, where trees are pinged twice a minute
EVERY = pytest.mark.parametrize(
    "system", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(systems_with("peers"))]
)
# Fewer landmarks measure as well at this size, and cost less; so do longer rounds.
FAST: dict[str, dict[str, Any]] = {
    "rappel": {"landmarks": 5, "landmark_rounds": 2},
    "spidercast": {"round_s": 2.0},
    "vitis": {"round_s": 4.0, "table_size": 10},
    "trellis": {"most_links": 8},
}
# How many links a peer may have, those aside that others have to it without asking.
BOUNDS: dict[str, Callable[[Any], int]] = {
    "spidercast": lambda peer: sum(task.limit + peer.config.margin for task in peer.tasks),  # L^max + Margin
    "trellis": lambda peer: peer.config.most_links,
    "vitis": lambda peer: peer.config.table_size,
}
SIGNED = {"rappel": {"signed": True}}
NODES = 40


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=NODES, topics=12, subscriptions_per_node=4, buckets=3, seed=2)


class Running:
    """A system on a workload whose events are published by hand."""

    def __init__(self, system: str, workload: Workload, *, schedule: Schedule | None = None, **settings: Any) -> None:
        config = make_config(system, FAST.get(system, {}), "peers")
        clock = clock_of(publish_every_s=0, **settings)
        self.run = PeerRun(system, workload, config, clock, seed=1, schedule=schedule)
        self.engine, self.workload, self.publishers = self.run.engine, workload, self.run.publishers
        self.engine._observer = self
        self.got: Counter[tuple[Address, int, int]] = Counter()
        self._sequence: Counter[int] = Counter()

    def sent(self, *_: Any) -> None: ...

    def received(self, *_: Any) -> None: ...

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        self.got[node, event.topic, event.sequence] += 1

    def until(self, time: float) -> None:
        self.engine.run(time)

    def publish(self, topic: int, payload: bytes = b"news") -> set[Address]:
        """Who has it half a minute later, the publisher aside."""
        publisher = self.publishers[topic]
        self._sequence[topic] += 1
        self.engine.do(publisher, self.engine.peers[publisher].publish(self.engine.now, topic, payload))
        self.until(self.engine.now + 30)
        return {n for n, *event in self.got if event == [topic, self._sequence[topic]]} - {publisher}

    def there(self, topic: int) -> set[Address]:
        """Subscribers that are there, the publisher aside."""
        return (set(self.workload.subscribers_of(topic).tolist()) & set(self.engine.peers)) - {self.publishers[topic]}

    def everybody_is_reached(self) -> None:
        for topic in range(self.workload.topic_count):
            assert self.publish(topic) == self.there(topic), f"topic {topic}"
        assert set(self.got.values()) == {1}, "nothing is delivered twice"


# What it says of itself


@EVERY
def test_a_system_says_where_it_comes_from(system: str) -> None:
    known = system_named(system)
    assert known.name == system
    assert len(known.paper) > 10 and len(known.summary) > 10
    kind = known.peer_facet()
    for field in dataclasses.fields(kind.config_type):
        assert field.metadata["source"] and field.metadata["help"], field.name
    assert kind.servers(kind.config_type()) >= 0


# What it owes


@EVERY
def test_every_subscriber_is_reached_when_nobody_leaves(system: str, workload: Workload) -> None:
    done = simulate(system, workload, driver="peers", clock=clock_of(publish_from_s=400), **FAST.get(system, {}))
    assert done.summary["hit_ratio"] == done.summary["connected_topics"] == 1.0
    if system in PRUNES:  # a topic's first event finds out which links are not needed
        last = {row["topic"]: row["duplicate"] for row in done.events.to_pylist()}
        assert set(last.values()) == {0}
    elif system not in FLOODS:
        assert done.events["duplicate"].to_numpy().sum() == 0


@EVERY
def test_it_heals_within_three_minutes_after_a_third_of_the_nodes_crashed(system: str, workload: Workload) -> None:
    unlucky = np.arange(0, NODES, 3, dtype=np.int32)
    crash = Schedule(np.arange(NODES, dtype=np.int32), {400: Change(crashes=unlucky)})
    running = Running(system, workload, schedule=crash)
    running.until(400 + 180)
    gone = set(unlucky.tolist()) - set(running.publishers)
    assert len(gone) >= 8 and not gone & set(running.engine.peers)
    running.everybody_is_reached()
    for node, peer in running.engine.peers.items():
        if node < NODES:
            assert not gone & set(running.run.system.neighbours(peer)), f"node {node} still knows the dead"


@EVERY
def test_a_crowd_is_taken_in(system: str, workload: Workload) -> None:
    running = Running(system, workload, schedule=flash_crowd(NODES, share=0.5, round=300))
    running.until(299)
    assert len(running.engine.peers) < NODES
    running.until(300 + 240)
    assert set(range(NODES)) <= set(running.engine.peers)
    running.everybody_is_reached()


@pytest.mark.parametrize("system", sorted(BOUNDS))
def test_nobody_has_more_links_than_it_may_while_a_crowd_comes(system: str, workload: Workload) -> None:
    running = Running(system, workload, schedule=flash_crowd(NODES, share=0.5, round=60), loss=0.1, duplication=0.1)
    while running.engine.now < 60 + 40:
        running.until(running.engine.now + 0.5)
        for node, peer in running.engine.peers.items():
            chosen = [roles for roles in running.run.system.neighbours(peer).values() if set(roles) - {"reverse"}]
            assert len(chosen) <= BOUNDS[system](peer), f"node {node} at {running.engine.now:.1f} s"


@EVERY
def test_who_leaves_in_good_order_is_missed_by_nobody(system: str, workload: Workload) -> None:
    """Half a minute later the others get everything, and half a minute after that, as always."""
    leaving = np.arange(1, NODES, 4, dtype=np.int32)
    leave = Schedule(np.arange(NODES, dtype=np.int32), {400: Change(leaves=leaving)})
    running = Running(system, workload, schedule=leave)
    running.until(400 + 120)
    assert not (set(leaving.tolist()) - set(running.publishers)) & set(running.engine.peers)
    running.everybody_is_reached()


@EVERY
def test_interests_may_change_while_it_runs(system: str, workload: Workload) -> None:
    running, topic = Running(system, workload), 7
    running.until(300)
    members = running.there(topic)
    newcomer = min(set(range(NODES)) - members - {running.publishers[topic]})
    leaver = min(members)
    assert running.publish(topic) == members
    peers, now = running.engine.peers, running.engine.now
    running.engine.do(newcomer, peers[newcomer].subscribe(now, topic))
    running.engine.do(leaver, peers[leaver].unsubscribe(now, topic))
    running.until(now + 120)
    assert running.publish(topic) == (members | {newcomer}) - {leaver}
    now = running.engine.now
    running.engine.do(newcomer, peers[newcomer].unsubscribe(now, topic))
    running.engine.do(leaver, peers[leaver].subscribe(now, topic))
    running.until(now + 120)
    assert running.publish(topic) == members


@EVERY
def test_the_seed_decides(system: str, workload: Workload) -> None:
    clock, parameters = clock_of(hours=0.12), FAST.get(system, {})
    one, again, other = (
        simulate(system, workload, driver="peers", clock=clock, seed=seed, **parameters) for seed in (9, 9, 10)
    )
    for name, table in one.tables.items():
        assert table.equals(again.tables[name]), name
    assert not one.tables["deliveries"].equals(other.tables["deliveries"])


# What it survives


@EVERY
@pytest.mark.parametrize(
    ("pairs", "nodes", "publishers"),
    [
        ([(1, 0)], 3, [0, 0]),  # nobody wants the second topic, and node 2 nothing
        ([(0, 0), (1, 0)], 2, [0]),  # the publisher wants its own
        ([(0, 0)], 2, [0]),  # nobody else does
        ([(0, 0)], 1, [0]),  # nor is there anybody else
        ([(0, 0), (0, 1), (1, 0), (1, 1)], 2, [0, 1]),  # two that publish for each other
        ([(1, 0)], 2, [-1]),  # nobody but the subscriber may publish
    ],
)
def test_odd_workloads_are_survived(
    system: str, pairs: list[tuple[int, int]], nodes: int, publishers: list[int]
) -> None:
    who, what = zip(*pairs, strict=True)
    odd = Workload.from_pairs(who, what, node_count=nodes, topic_count=len(publishers), publishers=publishers)
    done = simulate(system, odd, driver="peers", clock=clock_of(hours=0.12), **FAST.get(system, {}))
    assert done.topics.num_rows == len(publishers)
    assert done.events.num_rows >= 2 * len(publishers)
    assert done.summary["hit_ratio"] in (None, 1.0)
    for row in done.events.to_pylist():
        counted = {node for node, topic in pairs if topic == row["topic"]} - {row["publisher"]}
        assert row["subscribers"] == row["reached"] == len(counted)


@EVERY
def test_what_cannot_be_simulated_is_said_in_a_sentence(system: str, workload: Workload) -> None:
    with pytest.raises(UsageError, match=f"{system} has no parameter freinds; it has .*"):
        simulate(system, workload, driver="peers", freinds=3)
    with pytest.raises(UsageError, match="nobody subscribes to anything"):
        simulate(system, Workload.from_pairs([], [], node_count=50, topic_count=3), driver="peers")


class Unheard(Message, frozen=True):
    """No system knows this one."""

    topic: int = 0
    sequence: int = 1


def messages_of(system: str) -> list[type[Message]]:
    """The system's own kinds of messages: those of its package."""
    home = system_named(system).peer_facet().__module__.rpartition(".")[0]
    kinds = {
        value
        for name, module in list(sys.modules.items())
        if name == home or name.startswith(f"{home}.")
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    }
    return sorted(kinds, key=lambda kind: kind.__name__)


NUMBERS = st.integers(-2, 12) | st.integers()


def anything(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Values of the type that a field declares, as they might come off the wire."""
    match kind:
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return NUMBERS
        case msgspec.inspect.FloatType():
            return st.floats()
        case msgspec.inspect.BytesType():
            return st.binary(max_size=200)
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.UnionType():
            return st.one_of([anything(part) for part in kind.types])
        case msgspec.inspect.TupleType():
            return st.tuples(*[anything(part) for part in kind.item_types])
        case msgspec.inspect.VarTupleType():
            return st.lists(anything(kind.item_type), max_size=6).map(tuple)
        case msgspec.inspect.StructType():
            return st.builds(kind.cls, **{field.name: anything(field.type) for field in kind.fields})
    raise AssertionError(f"{kind}: say here what may come of this type")


def garbage(system: str) -> st.SearchStrategy[Any]:
    """Messages of any kind with any content."""
    made = [anything(msgspec.inspect.type_info(kind)) for kind in messages_of(system)]
    return st.one_of([*made, st.just(Unheard())])


class Few:
    """Six nodes and their servers after some minutes, in a network that takes messages to anybody."""

    def __init__(self, system: str) -> None:
        wanted = {node: {node % 3, node % 2} for node in range(6)}
        workload = workload_of(wanted, nodes=6, publishers=[0, 1, 5])
        kind = system_named(system).peer_facet()
        config = make_config(system, {**FAST.get(system, {}), **SIGNED.get(system, {})}, "peers")
        self.system = kind(config, World(workload, [0, 1, 5], lambda a, b: 0.05, 1))
        self.engine = Events(lambda now, a, b: 0.05)
        for number in range(kind.servers(config)):
            self.engine.start(6 + number, self.system.server(number))
        self.engine.run(20)
        for node in range(6):
            self.engine.start(node, self.system.peer(node, None))
        self.engine.run(60)

    def tell(self, node: Address, sender: Address, message: Any) -> None:
        if node in self.engine.peers:
            self.engine.do(node, self.engine.peers[node].on_message(self.engine.now, sender, message))


@EVERY
@examples(0.6)
@given(data=st.data())
def test_garbage_is_survived(system: str, data: st.DataObject) -> None:
    """Anybody tells peers and servers anything, and they go on: newcomers, members of trees and those that leave."""
    few = Few(system)
    few.engine.crash(2)
    few.engine.start(2, few.system.peer(2, None))  # a newcomer among them
    targets = st.sampled_from(sorted(few.engine.peers))
    told = data.draw(st.lists(st.tuples(targets, NUMBERS, garbage(system)), min_size=1, max_size=30))
    for i, (node, sender, message) in enumerate(told):
        few.tell(node, sender, message)
        if i % 5 == 4:
            few.engine.run(few.engine.now + 1)
    few.engine.leave(3)
    few.engine.run(few.engine.now + 90)
    for node, sender, message in told:
        few.tell(node, sender, message)
    few.engine.run(few.engine.now + 60)
    assert set(few.engine.peers) >= {0, 1, 2, 4, 5}


@EVERY
def test_timers_that_nobody_set_are_ignored(system: str) -> None:
    few = Few(system)
    for node, peer in list(few.engine.peers.items()):
        for timer in ("garbage", ("garbage", 3), ("join", 99, 1), None, 7, Unheard()):
            few.engine.do(node, peer.on_timer(few.engine.now, timer))
    few.engine.run(200)
    assert set(few.engine.peers) >= set(range(6))
