"""What others may say to a SpiderCast node: lies about themselves and about others, and more than anybody needs."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from grapevine.systems.contracts.peer import Address, Effects, Send
from grapevine.systems.gossip.interests import array_of, whole_profile
from grapevine.systems.gossip.messages import Ask
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.messages import (
    GREEDY_TASK,
    TASKS,
    Connect,
    ConnectOk,
    Descriptor,
    Found,
    Heartbeat,
    Notify,
    Redirect,
    Sample,
    Standing,
    WhoElse,
)
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup
from tests.systems.spidercast.peer_net import Net

TOPICS = range(6)
LIARS = range(20, 23)


class Liar(SpiderCastPeer):
    """Claims every topic, is a good neighbour otherwise, and keeps all events to itself."""

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        return [] if isinstance(message, Notify) else super().on_message(now, sender, message)


def with_liars(seed: int, random_coverage: int) -> set[tuple[Address, int]]:
    """Of sixteen nodes, who missed an event of which topic, where three liars claim all topics."""
    random = Random(seed)
    topics = {node: sorted(random.sample(TOPICS, 3)) for node in range(16)}
    net = Net(topics, seed=seed, random_coverage=random_coverage, round_s=0.5)
    for liar in LIARS:
        setup = Setup(me=liar, topics=TOPICS, contacts=[0, 1], random=Random(liar))
        net.engine.start(liar, Liar(setup, net.config))
    net.engine.run(15)
    missed = set()
    for topic in TOPICS:
        wanting = {node for node, mine in topics.items() if topic in mine}
        reached = net.publish(min(wanting), topic)
        missed |= {(node, topic) for node in wanting - reached - {min(wanting)}}
    return missed


def test_who_claims_every_topic_shuts_off_few_where_random_links_are_kept() -> None:
    """Of 48 subscriptions; greedy links alone are drawn to the liars. No number of links makes it none."""
    missed = {k: sum(len(with_liars(seed, k)) for seed in range(2)) for k in (0, 1)}
    assert missed[0] > 2 * missed[1] and missed[0] > 20


def test_a_lie_about_another_node_ends_with_what_that_node_says() -> None:
    """The liar says that node 1 has topic 7; a link is made for it, found useless, and given up."""
    net = Net({0: [7], 1: [8], 2: [8]}, contacts=(), greedy_coverage=1)
    liar = 99
    net.engine.do(1, net.peer(1).meet(0.0, 2))
    net.tell(0, liar, Sample((Descriptor(liar, 1, 0), Descriptor(1, 1 << 40, 1)), is_answer=True))
    net.engine.run(1.2)
    asked = [to for _, who, to, message in net.sent_log if who == 0 and isinstance(message, Ask)]
    assert liar in asked
    for part in whole_profile(1, 1 << 40, array_of([7])):
        net.tell(0, liar, part)
    assert net.peer(0).view.profiles.wants(1, 7)
    net.engine.run(15)
    assert not net.peer(0).view.profiles.wants(1, 7) and not net.peer(0).links.neighbours
    assert net.peer(1).links.neighbours == [2] and not net.disagreements()


def test_a_neighbour_that_never_says_what_it_wants_covers_nothing_for_long() -> None:
    peer = SpiderCastPeer(Setup(me=0, topics=[7], contacts=[], random=Random(1)), SpiderCastPeerConfig())
    peer.start(0.0)
    peer.on_message(0.0, 1, Sample((Descriptor(1, 1, 1), Descriptor(5, 1, 1)), is_answer=True))
    peer.on_timer(0.1, "round")  # asks 1 for both profiles
    for part in whole_profile(5, 1, array_of([7])):
        peer.on_message(0.2, 1, part)
    task, now = peer.tasks[GREEDY_TASK], 1.0
    effects = peer.on_timer(now, "round")
    assert [e.to for e in effects if isinstance(e, Send) and isinstance(e.message, Connect)] == [5]
    before = task.missing(now)
    peer.on_message(now, 5, ConnectOk(GREEDY_TASK, Descriptor(5, 1, 1), Standing(1, 1)))
    assert peer.view.is_believed(now, 5), "for a moment"
    assert before == task.missing(now) == 1, "K_g is 3"
    while now < 8:
        now += 1.0
        peer.on_message(now, 5, Heartbeat(Descriptor(5, 1, 1), (GREEDY_TASK,), (Standing(1, 1), Standing(0, 0))))
        peer.on_timer(now, "round")
    assert 5 in peer.links and not peer.view.is_believed(now, 5)
    assert not len(peer.view.near(now).shared[5])


def test_a_rare_topic_is_found_by_asking_and_not_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of sixty nodes have it, and a node remembers few others."""
    topics = {node: [100 + node % 2] for node in range(60)} | {17: [100, 7], 42: [101, 7]}
    how: dict[str, Any] = {"view_size": 4, "sample_size": 4, "greedy_coverage": 1, "margin": 9, "sample_rounds": 5}

    def found(asking: bool) -> list[bool]:
        outcome = []
        for seed in range(2):
            net = Net(topics, seed=seed, **how)
            if not asking:
                for peer in net.peers.values():
                    monkeypatch.setattr(peer._seeking, "questions", lambda *_: iter(()))
            net.engine.run(25)
            outcome.append(42 in net.peer(17).links and 7 in net.peer(42).interests.topics)
        return outcome

    assert all(found(asking=True))
    assert not all(found(asking=False))


def test_what_strangers_say_takes_bounded_room() -> None:
    config = SpiderCastPeerConfig(view_size=30, sample_size=5, round_s=1.0)
    peer = SpiderCastPeer(Setup(me=0, topics=[7, 8], contacts=[], random=Random(1)), config)
    peer.start(0.0)
    random, now, sent = Random(2), 0.0, 0
    for i in range(160):
        now += 0.05
        crowd = tuple(Descriptor(random.getrandbits(64), 1, 1) for _ in range(40))
        who = crowd[0].node
        topics = tuple(random.getrandbits(64) for _ in range(16))
        standing = Standing(1, 1)
        for message in (
            Sample(crowd, is_answer=True),
            WhoElse(crowd[0], topics, 16),
            Found((7, 8), crowd),
            Connect(i % 2, crowd[0], standing),
            Redirect(i % 2, random.getrandbits(64)),
            Heartbeat(crowd[0], tuple(TASKS), (standing, standing)),
            Notify(topics[0], i, who, b""),
        ):
            sent += sum(isinstance(effect, Send) for effect in peer.on_message(now, who, message))
        if i % 20 == 19:
            peer.on_timer(now, "round")
    most = 2 * config.view_size + sum(task.limit + config.margin for task in peer.tasks) + 64 + len(crowd)
    assert len(peer.view.book.known) <= most and len(peer.links.neighbours) <= 2 * (6 + config.margin)
    assert len(peer._seeking._seekers) <= 20 * 16 * 64, "questions of a round are bounded, and so are seekers"
    assert len(peer.flooding.seen) == 0, "of topics that it does not want it notes nothing"
    assert sent < 160 * 8


def test_a_question_for_more_topics_than_anybody_is_told_is_an_excess() -> None:
    peer = SpiderCastPeer(Setup(me=0, topics=[7], contacts=[], random=Random(1)), SpiderCastPeerConfig())
    peer.start(0.0)
    effects = peer.on_message(0.1, 1, WhoElse(Descriptor(1, 1, 1), tuple(range(17)), 4))
    assert not effects and peer.excesses == 1


def test_a_node_tells_who_seeks_the_same_and_itself() -> None:
    peer = SpiderCastPeer(Setup(me=0, topics=[7], contacts=[], random=Random(1)), SpiderCastPeerConfig())
    peer.start(0.0)
    (first,) = [e for e in peer.on_message(0.1, 5, WhoElse(Descriptor(5, 1, 1), (7, 9), 1)) if isinstance(e, Send)]
    assert first.to == 5 and first.message.topics == (7,)
    assert [found.node for found in first.message.descriptors] == [0]
    answers = [e for e in peer.on_message(0.2, 6, WhoElse(Descriptor(6, 1, 1), (9,), 1)) if isinstance(e, Send)]
    assert [found.node for found in answers[0].message.descriptors] == [5]
