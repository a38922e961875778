"""Rappel among nodes that send what they like: coordinates that are none, and updates that nobody signed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import World
from grapevine.systems.rappel.config import RappelPeersConfig
from grapevine.systems.rappel.messages import HereIAm, Join, JoinOk, Update, WhereAreYou
from grapevine.systems.rappel.peer import RappelPeer
from grapevine.systems.rappel.peers import Rappel
from grapevine.systems.rappel.position import Landmark
from tests.peer_world import workload_of

CONFIG = RappelPeersConfig(landmarks=3, landmark_rounds=1, signed=True)
NOWHERE = [(), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0)]


def network() -> Events:
    """Node 1 subscribes to the feed of node 0; 2, 3 and 4 are landmarks."""
    made = Rappel(CONFIG, World(workload_of({1: {0}}, nodes=2, publishers=[0]), [0], lambda a, b: 0.05, 1))
    engine = Events(lambda now, a, b: 0.01 * (a + b))
    for number in range(3):
        engine.start(2 + number, made.server(number))
    engine.run(65)
    for node in range(2):
        engine.start(node, made.peer(node, None))
    return engine


def peer(engine: Events, node: int) -> RappelPeer:
    found = engine.peers[node]
    assert isinstance(found, RappelPeer)
    return found


@pytest.mark.parametrize("position", NOWHERE)
def test_who_is_nowhere_is_nobodys_child(position: Any) -> None:
    engine = network()
    engine.run(100)
    assert peer(engine, 0).on_message(100, 9, Join(0, position, 1, 0)) == []
    assert set(peer(engine, 0).feeds[0].children) == {1}


@pytest.mark.parametrize("position", NOWHERE)
def test_who_is_nowhere_is_nobodys_parent(position: Any) -> None:
    """Whenever it answers, also while the node waits for this very answer."""
    engine = network()
    for step in range(1, 3_000):
        engine.run(65 + step / 100)
        node = peer(engine, 1)
        if node.feeds and node.feeds[0].parent is None:
            engine.do(1, node.on_message(engine.now, 0, JoinOk(0, 1, (), (0.0, 0.0, 0.0), 0, 1, None, position)))
            assert node.feeds[0].parent is None
    assert peer(engine, 1).feeds[0].parent is not None


@pytest.mark.parametrize(("sender", "position"), [(9, (5.0, 5.0, 5.0)), *((3, position) for position in NOWHERE)])
def test_landmarks_are_moved_by_landmarks_alone(sender: int, position: Any) -> None:
    landmark = Landmark(2, CONFIG, [2, 3, 4], Random(1))
    landmark.start(0.0)
    before = landmark.position
    landmark.on_message(0.1, sender, HereIAm(1, position, 0.5))
    assert landmark.position == before
    landmark.on_message(0.1, 3, HereIAm(1, (5.0, 5.0, 5.0), math.nan))
    assert landmark.position == before
    landmark.on_message(0.1, 3, HereIAm(1, (5.0, 5.0, 5.0), 0.5))
    assert landmark.position != before
    assert len(landmark.on_message(0.1, 9, WhereAreYou(1))) == 1  # anybody may ask


def test_a_newcomer_measures_its_distance_to_landmarks_alone() -> None:
    """Strangers that answer for them change nothing."""
    disturbed, calm = network(), network()
    for stranger in (0, 9):
        peer(disturbed, 1).on_message(65.0, stranger, HereIAm(0, (900.0, 0.0, 0.0), 0.01))
    for engine in (disturbed, calm):
        engine.run(70)
    assert peer(disturbed, 1).position == peer(calm, 1).position != ()


@pytest.mark.parametrize("sequence", [1, -1, 2**64])
def test_updates_that_the_publisher_did_not_sign_are_counted_and_go_no_further(sequence: int) -> None:
    """§4.1."""
    engine = network()
    engine.run(100)
    assert peer(engine, 1).on_message(100, 0, Update(0, sequence, b"news", bytes(64))) == []
    assert peer(engine, 1).updates.refused == 1
    assert not peer(engine, 1).feeds[0].cache
