"""What topics weigh: rates travel with profiles, two nodes find the same utility, and ties fall as by rounds."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grapevine.blocks.views import FRIEND_TIES
from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload
from grapevine.sim.peers import PeerRun
from grapevine.sim.simulate import make_config
from grapevine.systems.gossip import interests, messages, profiles
from grapevine.systems.gossip.interests import Interests, array_of
from grapevine.systems.gossip.messages import Profile
from grapevine.systems.gossip.profiles import KnownProfiles, PendingProfiles
from grapevine.systems.gossip.weights import MOST_RATE, ONE, pack_weights, unpack_weights, weight_of, weights_of
from grapevine.systems.vitis.config import VitisRules
from grapevine.systems.vitis.live import LiveVitis
from grapevine.systems.vitis.peer.book import VitisBook
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peer.rates import Estimates
from grapevine.systems.vitis.peer.setup import Setup
from tests.naive import draw
from tests.peer_world import clock_of

RATES = st.floats(0, MOST_RATE)
TOPICS = st.dictionaries(st.integers(0, 9) | st.integers(0, 2**64 - 1), RATES.map(weight_of), max_size=12)
ADDRESSES = st.integers(2**63, 2**64 - 1)  # as live ones may be; smaller ones would make the draw compile again
OTHER = 7


@pytest.fixture(autouse=True)
def parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (messages, interests, profiles):
        monkeypatch.setattr(module, "TOPICS_A_PART", 3)


def told(known: KnownProfiles, sender: Interests) -> KnownProfiles:
    """After the other has answered a question for its profile."""
    pending = PendingProfiles(known, 1_000)
    pending.ask(0.0, OTHER, OTHER)
    *_, update = [pending.take(OTHER, part) for part in sender.profile_for(OTHER, known.version(OTHER))]
    assert update is not None
    known.put(OTHER, update.version, update.topics, first_hand=True, weights=update.weights)
    return known


# On the wire


@given(st.lists(RATES))
def test_weights_travel_without_loss(rates: list[float]) -> None:
    weights = weights_of(rates)
    came = unpack_weights(pack_weights(weights), len(rates))
    assert came is not None and came.tolist() == weights.tolist()


@pytest.mark.parametrize("wrong", [[-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0], [2 * MOST_RATE, 1.0], [1.0]])
def test_what_cannot_be_rates_makes_no_profile(wrong: list[float]) -> None:
    content = np.array(wrong, np.float32).tobytes()
    assert unpack_weights(content, 2) is None
    (profile,) = Interests([1, 2], 1, 9, {}).profile_for(OTHER, 0)
    pending = PendingProfiles(KnownProfiles(9, weighed=True), 9)
    pending.ask(0.0, OTHER, OTHER)
    assert pending.take(OTHER, msgspec.structs.replace(profile, rates=content)) is None
    assert pending.take(OTHER, profile) is not None, "the right one is still taken"


def test_nodes_without_rates_understand_those_that_have_them_and_the_other_way_round() -> None:
    """Fields that one of them does not know stand at the end."""
    decoder = msgspec.msgpack.Decoder(LiveVitis.messages)
    (profile,) = Interests([1, 2], 1, 9, {1: 5 * ONE}).profile_for(OTHER, 0)
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(profile))[:-2]  # as it was before there were rates
    assert decoder.decode(msgspec.msgpack.encode(plain)) == msgspec.structs.replace(profile, rates=b"")
    sent: Profile
    (sent,) = Interests([1, 2], 1, 9).profile_for(OTHER, 0)
    assert sent.rates == sent.rated == b"", "where all weigh alike nothing is said"
    told(weighed := KnownProfiles(9, weighed=True), Interests([1, 2], 1, 9)).compare_with(
        array_of([1]), weights_of([1])
    )
    assert weighed.overlap(OTHER) == (2 * ONE, 4 * ONE)
    told(plain_node := KnownProfiles(9), Interests([1, 2], 1, 9, {1: 5 * ONE})).compare_with(array_of([1]))
    assert plain_node.overlap(OTHER) == (1, 2)


@given(TOPICS, st.lists(st.tuples(st.sampled_from("awr"), st.integers(0, 12), RATES.map(weight_of)), max_size=30))
def test_whoever_follows_the_changes_has_the_weights(first: dict[int, int], steps: list[tuple[str, int, int]]) -> None:
    own, known = Interests(first, 1, 100, first), KnownProfiles(1_000, weighed=True)
    told(known, own)
    for i, (what, topic, weight) in enumerate(steps):
        if what == "r":
            own.remove(topic)
        else:
            (own.add if what == "a" else own.weigh)(topic, weight)
        if i % 3 == 2:
            told(known, own)
    profile, weights = told(known, own)[OTHER], own.weights()
    assert profile is not None and profile.weights is not None and weights is not None
    assert (profile.topics.tolist(), profile.weights.tolist()) == (own.array().tolist(), weights.tolist())


def test_another_weight_says_no_more_than_that_and_leaves_elections_alone() -> None:
    own = Interests(range(1_000), 1, 2_000, {})
    before, version = own.array(), own.version
    own.weigh(5, 3 * ONE)
    own.weigh(5, 3 * ONE)
    own.weigh(5_000, 3 * ONE)
    assert own.version == version + 1 and own.array() is before
    (change,) = own.profile_for(OTHER, version)
    assert len(change.rated) == 8 and len(change.rates) == 4 and not change.added and not change.removed
    changes = own.changes_since(version)
    assert changes is not None and not any(map(len, changes)), "no topic came or went"


# The utility


def test_two_nodes_find_the_same_utility_though_they_disagree_about_rates() -> None:
    """Eq. 1 with the mean of what both say: (2 + 1) of 2 + 1 + 4 + 6."""
    mine = Interests([1, 2, 3], 1, 9, {1: ONE, 2: ONE, 3: 4 * ONE})
    yours = Interests([1, 2, 4], 1, 9, {1: 3 * ONE, 2: ONE, 4: 6 * ONE})
    for one, other in ((mine, yours), (yours, mine)):
        known = told(KnownProfiles(99, weighed=True), other)
        known.compare_with(one.array(), one.weights())
        common, mass = known.overlap(OTHER)
        assert common / (known.own[1] + mass - common) == 3 / 13


@example({10614881414480078933, 10649823556065539297, 2**63, 10699200305208787952}, 13787848793156543920, 0)
@given(st.sets(ADDRESSES, min_size=1, max_size=30), ADDRESSES, st.integers(0, 99))
def test_of_equally_good_friends_the_hash_of_the_two_addresses_decides(others: set[int], me: int, seed: int) -> None:
    """The same draw as by rounds; so neither the session nor the order in which nodes were heard of matters."""
    others -= {me}
    chosen = []
    for session in (1, 2):
        book = VitisBook(Descriptor(me, 0, 1, 1, 50.0), session, seed)
        heard = sorted(others, reverse=session == 2)
        book.learn(0.0, [Descriptor(node, node, 1, 1, 50.0) for node in heard])
        table, _ = book.select(0.0, VitisRules(table_size=6, ring_and_long_links=2), 0.0, heard, [], lambda _: (1, 1))
        chosen.append(table)
    left = others - set(chosen[0][:2])
    ties = {node: draw(seed, FRIEND_TIES, me, node) for node in left}
    expected = sorted(left, key=lambda node: ties[node], reverse=True)[:4]
    assert chosen[0] == chosen[1] and [node for node in chosen[0][2:] if node >= 0] == expected


# Where rates come from


def peer_of(rates: str, **more: Any) -> VitisPeer:
    setup = Setup(me=1, ring_id=1, topics=[1, 2], topic_id=lambda topic: topic, contacts=[], random=Random(1), **more)
    peer = VitisPeer(setup, VitisPeerConfig(rates=rates, rate_horizon_s=100.0))
    peer.start(0.0)
    return peer


def weights(peer: VitisPeer) -> dict[int, float]:
    return {topic: peer.interests.weight(topic) / ONE for topic in sorted(peer.topics)}


def test_declared_rates_are_those_of_the_setup_until_the_application_says_others() -> None:
    peer = peer_of("declared", rate_of=lambda topic: float(topic))
    assert weights(peer) == {1: 1.0, 2: 2.0}
    version = peer.interests.version
    peer.declare_rate(1.0, 2, 0.5)
    peer.declare_rate(1.0, 3, 8.0)  # before it subscribes
    assert peer.interests.version == peer.overlay.book.me.version == version + 1
    peer.subscribe(2.0, 3)
    peer.subscribe(2.0, 4)
    assert weights(peer) == {1: 1.0, 2: 0.5, 3: 8.0, 4: 4.0}
    with pytest.raises(UsageError):
        peer.declare_rate(3.0, 2, math.nan)


@pytest.mark.parametrize("rates", ["equal", "estimated"])
def test_where_rates_are_not_declared_a_declaration_changes_nothing(rates: str) -> None:
    peer = peer_of(rates, rate_of=lambda topic: float(topic))
    version = peer.interests.version
    peer.declare_rate(1.0, 2, 5.0)
    assert weights(peer) == {1: 1.0, 2: 1.0} and peer.interests.version == version


def test_estimates_follow_what_is_seen_and_fade() -> None:
    seen = Estimates(0.0, 100.0)
    assert seen.rate(0.0, 1) == 1.0
    for second in range(0, 1_000, 10):
        seen.see(float(second), 1)
    assert seen.rate(1_000.0, 1) == pytest.approx((10 + 1) / 2, rel=0.1)
    assert seen.rate(1_000.0, 2) == pytest.approx(1 / 2, rel=0.01), "a silent topic"
    seen.want(1_000.0, 3)
    assert seen.rate(1_000.0, 3) == 1.0, "a new one"
    assert seen.rate(2_000.0, 1) == pytest.approx(1 / 2, rel=0.01)
    seen.forget(1)
    seen.want(2_000.0, 1)
    assert seen.rate(2_000.0, 1) == 1.0


def test_a_node_announces_an_estimate_when_it_is_another_by_half() -> None:
    peer = peer_of("estimated")
    for second in range(200):
        peer.publish(float(second), 1, b"news")
        peer.on_timer(float(second), "round")
    assert weights(peer)[1] == pytest.approx(peer.rates.estimates.rate(200.0, 1), rel=0.5)  # type: ignore[union-attr]
    assert weights(peer)[1] > 20 > 1 > weights(peer)[2]
    assert peer.interests.version < 20, "it was not told every second"


# What rates change

BUSY, GROUPS, NODES, QUIET = 5, 5, 50, 4


@pytest.fixture(scope="module")
def busy_and_quiet() -> Workload:
    """Everybody wants one of five busy topics and all four quiet ones of one of five groups; the two are unrelated."""
    pairs = [(p, p % BUSY) for p in range(NODES)]
    pairs += [(p, BUSY + (p // BUSY) % GROUPS * QUIET + i) for p in range(NODES) for i in range(QUIET)]
    nodes, topics = np.array(sorted(pairs)).T
    rates = np.repeat([50.0, 1.0], [BUSY, GROUPS * QUIET])
    return Workload.from_pairs(nodes, topics, node_count=NODES, topic_count=len(rates), rates=rates)


def clusters(workload: Workload, rates: str) -> list[int]:
    """In how many parts the subscribers of each topic are after 14 rounds with two friends each."""
    config = make_config("vitis", {"round_s": 8.0, "table_size": 5, "rates": rates}, "peers")
    run = PeerRun("vitis", workload, config, clock_of(hours=0.1, warm_up_s=0, start_s=10), seed=1)
    run.engine.run(120)
    graph = nx.Graph((node, other) for node, peer in run.engine.peers.items() for other in run.system.neighbours(peer))
    parts = (graph.subgraph(workload.subscribers_of(topic).tolist()) for topic in range(workload.topic_count))
    return [nx.number_connected_components(part) for part in parts]


def test_who_weighs_rates_keeps_busy_topics_together_and_lets_quiet_ones_fall_apart(busy_and_quiet: Workload) -> None:
    """Eq. 1: four quiet topics are more in common than a busy one, unless a busy one weighs fifty times as much."""
    equal, declared = (clusters(busy_and_quiet, rates) for rates in ("equal", "declared"))
    assert sum(equal[:BUSY]) > BUSY == sum(declared[:BUSY])
    assert sum(equal[BUSY:]) == GROUPS * QUIET < sum(declared[BUSY:])
