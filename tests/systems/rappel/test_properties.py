"""What holds in a Rappel network whatever happens to it: no noise, nothing lost or twice, trees without cycles.

Every node's edges and bounds are checked whenever it has done something, trees every few seconds (`rappel_world`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine.sim.events import Observer
from grapevine.sim.transcript import Transcript
from grapevine.systems.contracts.peer import Address
from tests.effort import examples
from tests.rappel_world import RappelWorld

TOPICS = 3  # published by the nodes 0, 1 and 2
NODES = 20
QUIET_S = 300.0


@dataclass(frozen=True)
class Step:
    """Something happens, to a node or a feed, and then nothing for a while."""

    what: str
    node: Address
    topic: int
    wait_s: float


@dataclass(frozen=True)
class Network:
    """Everything by which two networks may differ."""

    seed: int
    children: int
    friends: int
    loss: float
    duplication: float
    jitter_s: float

    def build(self, watch: Observer | None = None) -> RappelWorld:
        random = Random(f"interests {self.seed}")
        interests = [[topic for topic in range(TOPICS) if random.random() < 0.6] for _ in range(NODES)]
        return RappelWorld(
            interests,
            publishers=range(TOPICS),
            seed=self.seed,
            jitter_s=self.jitter_s,
            watch=watch,
            children=self.children,
            friends=self.friends,
        )


networks = st.builds(
    Network,
    seed=st.integers(0, 1_000),
    children=st.integers(1, 5),
    friends=st.sampled_from([1, 2, 6]),
    loss=st.sampled_from([0.0, 0.0, 0.05, 0.2]),
    duplication=st.sampled_from([0.0, 0.2]),
    jitter_s=st.sampled_from([0.0, 0.02, 1.0]),
)
steps = st.builds(
    Step,
    what=st.sampled_from(["crash", "leave", "subscribe", "unsubscribe", "part", "heal"] + ["start", "publish"] * 3),
    node=st.integers(0, NODES - 1),
    topic=st.integers(0, TOPICS - 1),
    wait_s=st.sampled_from([0.0, 0.05, 1.0, 10.0, 40.0]),
)
histories = st.lists(steps, min_size=5, max_size=40)


def live_through(world: RappelWorld, network: Network, history: Sequence[Step]) -> None:
    """Everybody starts, then these steps."""
    world.start()
    world.engine.disturb(loss=network.loss, duplication=network.duplication)
    for step in history:
        happen(world, step)
        world.run(step.wait_s, step_s=2.0)


def calm_down(world: RappelWorld) -> None:
    """The network is whole, publishers are there, and it is quiet."""
    world.engine.heal()
    world.engine.disturb()
    world.run(60.0)  # whoever leaves has left by then
    for publisher in world.publishers:
        if not world.is_there(publisher):
            world.start(publisher)
    world.run(QUIET_S)


def happen(world: RappelWorld, step: Step) -> None:
    """The step, if it is possible."""
    node, topic = step.node, step.topic
    stays = world.is_there(node) and not world.peer(node).is_leaving
    away = [other for other in world.nodes if not world.is_there(other)]
    match step.what:
        case "start" if away:
            world.start(away[node % len(away)])
        case "crash":
            world.engine.crash(node)
        case "leave" if stays:
            world.engine.leave(node)
        case "subscribe" if stays:
            world.subscribe(node, topic)
        case "unsubscribe" if stays:
            world.unsubscribe(node, topic)
        case "publish":
            world.publish(topic)
        case "part":
            world.engine.part([[other for other in world.nodes if other * (node + 2) % 7 < 3]])
        case "heal":
            world.engine.heal()


def check(network: Network, history: Sequence[Step]) -> None:
    world = network.build()
    live_through(world, network, history)
    calm_down(world)
    assert world.witness.noise == []
    deliveries = Counter((node, event.topic, event.sequence) for _, node, event in world.witness.deliveries)
    assert [delivery for delivery, count in deliveries.items() if count > 1] == []
    for topic in range(TOPICS):
        assert {node: sorted(world.feed(node, topic).cache) for node in world.subscribers(topic)} == {
            node: world.recent(topic) for node in world.subscribers(topic)
        }


@examples(0.4)
@given(networks, histories)
def test_no_noise_nothing_lost_nothing_twice_no_cycles(network: Network, history: list[Step]) -> None:
    """§1.1 (ii), §4.1, §4.2, footnote 2."""
    check(network, history)


@pytest.mark.slow
@settings(max_examples=200)
@given(networks, st.lists(steps, min_size=5, max_size=120))
def test_the_same_in_many_and_longer_histories(network: Network, history: list[Step]) -> None:
    check(network, history)


def transcript_of(seed: int) -> str:
    random, transcript = Random("history"), Transcript()
    network = Network(seed, children=2, friends=2, loss=0.1, duplication=0.1, jitter_s=0.05)
    whats = ["crash", "start", "leave", "subscribe", "unsubscribe", "publish", "part", "heal"]
    history = [Step(random.choice(whats), random.randrange(NODES), random.randrange(TOPICS), 3.0) for _ in range(40)]
    live_through(network.build(transcript), network, history)
    return transcript.text()


def test_a_run_is_a_function_of_its_seed() -> None:
    assert transcript_of(1) == transcript_of(1)
    assert transcript_of(1) != transcript_of(2)
