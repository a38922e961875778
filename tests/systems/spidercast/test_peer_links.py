"""Links of SpiderCast's peers: agreed by both ends and bounded, whatever happens to messages and nodes."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.contracts.peer import Address, Effects, Send
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.links import Links
from grapevine.systems.spidercast.peer.messages import (
    GREEDY_TASK,
    RANDOM_TASK,
    TASKS,
    Connect,
    ConnectOk,
    Descriptor,
    Disconnect,
    Heartbeat,
    Leave,
    Redirect,
    Standing,
)
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup
from tests.effort import examples
from tests.systems.spidercast.peer_net import Net, Wire

FULL = Standing(3, 3)
QUIET_S = 20.0  # without losses: silence of the dead, a heartbeat, an answer and the grace


def all_but_one(nodes: int, topics: int) -> dict[Address, list[int]]:
    return {node: [topic for topic in range(topics) if (node + topic) % 3] for node in range(nodes)}


# One node and what it is told


def alone(*topics: int, **parameters: Any) -> SpiderCastPeer:
    peer = SpiderCastPeer(Setup(me=0, topics=topics, contacts=[], random=Random(1)), SpiderCastPeerConfig(**parameters))
    peer.start(0.0)
    return peer


def me(node: Address) -> Descriptor:
    return Descriptor(node, 1, 1)


def sent(effects: Effects, kind: type) -> list[Send]:
    return [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def test_who_has_room_accepts_and_who_has_not_names_a_neighbour_that_has() -> None:
    peer = alone(7, greedy_coverage=1, margin=1)  # L^max = 1, and one beyond
    for node in (1, 2):
        assert sent(peer.on_message(0.1, node, Connect(GREEDY_TASK, me(node), Standing(0, 2))), ConnectOk)
    (answer,) = sent(peer.on_message(0.2, 3, Connect(GREEDY_TASK, me(3), FULL)), Redirect)
    assert answer.to == 3 and answer.message.node in (1, 2)
    assert peer.links.of(GREEDY_TASK) == [1, 2]


def test_who_is_full_of_neighbours_that_are_full_is_silent() -> None:
    peer = alone(7, greedy_coverage=1, margin=0)
    peer.on_message(0.1, 1, Connect(GREEDY_TASK, me(1), FULL))
    assert not [e for e in peer.on_message(0.2, 2, Connect(GREEDY_TASK, me(2), FULL)) if isinstance(e, Send)]


def test_an_acceptance_that_nobody_asked_for_is_declined() -> None:
    peer = alone(7)
    (answer,) = sent(peer.on_message(0.1, 1, ConnectOk(GREEDY_TASK, me(1), FULL)), Leave)
    assert answer.message == Leave((GREEDY_TASK,)) and not peer.links.neighbours


def test_a_heartbeat_of_a_link_that_is_not_held_is_answered_and_does_not_make_one() -> None:
    peer = alone(7)
    beat = Heartbeat(me(1), (GREEDY_TASK, RANDOM_TASK), (FULL, FULL))
    left = {task for send in sent(peer.on_message(0.1, 1, beat), Leave) for task in send.message.tasks}
    assert left == set(TASKS) and not peer.links.neighbours


def test_a_redirect_that_answers_nothing_is_not_followed() -> None:
    peer = alone(7)
    peer.on_message(0.1, 1, Redirect(GREEDY_TASK, 99))
    assert peer.tasks[GREEDY_TASK].redirect is None


def test_what_a_heartbeat_does_not_name_is_over_unless_it_is_new() -> None:
    links = Links(grace_s=2.0)
    links.add(10.0, 1, GREEDY_TASK, FULL)
    assert links.compare(11.0, 1, (), (FULL, FULL)) == ([], [])
    assert links.compare(12.5, 1, (RANDOM_TASK, 7), (FULL, FULL)) == ([RANDOM_TASK], [GREEDY_TASK])


def test_two_neighbours_that_cover_the_same_are_not_both_let_go() -> None:
    """It has asked the one to disconnect, and is asked by the other before there is an answer."""
    net = Net({0: [7, 8], 1: [7, 8], 2: [7, 8]}, greedy_coverage=1, margin=5)  # L^max = 2
    net.engine.run(3)
    peer, now = net.peer(0), net.engine.now
    for node in (1, 2):
        net.tell(0, node, Connect(GREEDY_TASK, net.peer(node).view.me, Standing(5, 1)))
    assert set(peer.links.of(GREEDY_TASK)) == {1, 2}
    asked = sent(peer.on_timer(now, "round"), Disconnect)
    assert len(asked) == 1
    (other,) = {1, 2} - {asked[0].to}
    peer.on_message(now, other, Disconnect(GREEDY_TASK))
    assert other in peer.links.of(GREEDY_TASK)


# Many nodes


@examples(0.4)
@given(
    seed=st.integers(0, 2**20),
    loss=st.floats(0, 0.4),
    duplication=st.floats(0, 0.4),
    slowest=st.floats(0.01, 1.5),
    crashes=st.lists(st.tuples(st.integers(0, 7), st.floats(0.5, 12), st.booleans()), max_size=6),
    margin=st.integers(0, 3),
)
def test_both_ends_agree_after_any_trouble_and_no_bound_is_broken_in_it(
    seed: int, loss: float, duplication: float, slowest: float, crashes: list[tuple[int, float, bool]], margin: int
) -> None:
    net = Net(
        all_but_one(8, 4), delay_s=(0.001, slowest), seed=seed, loss=loss, duplication=duplication,
        greedy_coverage=1, random_coverage=1, margin=margin, quarantine_rounds=2,
    )  # fmt: skip
    for node, when, comes_back in crashes:
        net.engine.at(when, partial(net.engine.crash, node))
        if comes_back:
            net.engine.at(when + 1, partial(net.come_back, node))
    while net.engine.now < 15:
        net.engine.run(net.engine.now + 0.5)
        assert not net.above_bound()
    net.engine.disturb()
    net.engine.run(15 + QUIET_S)
    # What is on its way now may be a link that begins or ends; after a moment it is agreed on.
    agreed = [not net.disagreements() for _ in range(20) if net.engine.run(net.engine.now + 0.4) is None]
    assert sum(agreed) >= 10 and not net.above_bound()
    gone = set(range(8)) - set(net.engine.peers)
    assert not [node for node, peer in net.peers.items() if gone & set(peer.links.neighbours)]


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_those_who_ask_each_other_at_once_have_one_link(loss: float) -> None:
    net = Net({0: [7], 1: [7]}, loss=loss, greedy_coverage=1)
    net.engine.run(2)
    for node in (0, 1):
        net.engine.do(node, net.peer(node).on_timer(net.engine.now, "round"))
    net.engine.run(20)
    assert net.peer(0).links.of(GREEDY_TASK) == [1] and net.peer(1).links.of(GREEDY_TASK) == [0]
    assert not net.disagreements()


def test_a_node_that_is_back_before_it_is_missed_is_no_neighbour_by_its_old_links() -> None:
    net = Net(all_but_one(6, 3), greedy_coverage=1)
    net.engine.run(15)
    net.engine.crash(2)
    net.start(2)
    assert net.disagreements()
    net.engine.run(net.engine.now + 2.5)
    assert not net.disagreements(), "their first heartbeats are answered"


def test_link_effects_alternate() -> None:
    wire, peer, now = Wire(), alone(7, 8, greedy_coverage=1, random_coverage=1), 0.0
    random = Random(5)
    for _ in range(600):
        now += 0.1
        node, task = random.randint(1, 5), random.choice(list(TASKS))
        message = random.choice(
            [
                Connect(task, me(node), FULL),
                Leave((task,)),
                Heartbeat(me(node), (task,), (FULL, FULL)),
                Disconnect(task),
            ]
        )
        wire.take(peer.on_message(now, node, message))
        if random.random() < 0.1:
            wire.take(peer.on_timer(now, "round"))
        assert wire.up == set(peer.links.neighbours)
