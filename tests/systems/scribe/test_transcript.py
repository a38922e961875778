"""A tree of Pastry's routes grows, carries an event, loses a forwarder and grows around it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from grapevine.model.workload import Workload
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, World
from grapevine.systems.scribe.config import ScribeConfig
from grapevine.systems.scribe.messages import Accept, Ack, Event, Heartbeat, Leave, Subscribe
from grapevine.systems.scribe.peers import Scribe
from tests.golden import Story, assert_golden

GOLDEN = Path(__file__).with_name("forwarder.transcript")
HEADER = """
    Scribe: six nodes, one topic. Node 1 publishes it and is the tree's root (Rappel §6.4); 0, 2, 4 and 5 subscribe;
    3 does not, and yet it forwards. Sections are those of Castro et al., IEEE JSAC 20(8), 2002. Ids have digits
    of one bit and leaf sets of two nodes, so that six nodes need routes of two hops; a message takes 50 ms.
"""
PUBLISHER, FORWARDER = 1, 3
SUBSCRIBERS = [0, 2, 4, 5]


def test_a_tree_grows_and_mends_as_written_down() -> None:
    workload = Workload.from_pairs(
        SUBSCRIBERS, [0] * len(SUBSCRIBERS), node_count=6, topic_count=1, publishers=[PUBLISHER]
    )
    world = World(workload, [PUBLISHER], lambda a, b: 0.05, seed=1)
    system = Scribe(ScribeConfig(digit_bits=1, leaf_size=2), world)
    story = Story({Subscribe, Accept, Heartbeat, Ack, Leave, Event})
    engine = Events(lambda now, a, b: 0.05, observer=story, watch_sends=True)

    def publish() -> None:
        engine.do(PUBLISHER, engine.peers[PUBLISHER].publish(engine.now, 0, b"news"))

    def start(node: Address) -> None:
        engine.start(node, system.peer(node, None))

    for node in range(6):
        engine.at(0.2 * node, partial(start, node))
    story.chapter(
        "Joining (§III): a subscription goes one hop along Pastry's route to the root. Who gets it takes the sender "
        "as a child and, if it is not in the tree yet, subscribes in turn: 3 becomes a forwarder of a topic that it "
        "does not want. A second after its start a node subscribes."
    )
    engine.run(5.0)

    story.chapter("Publishing (§III): the event goes down the tree, from the root to children and theirs.")
    publish()
    engine.run(10.0)

    story.chapter(
        "Node 3 crashes at 10 s, and nobody knows. An event is published at 20 s: what was to pass 3 is lost, and "
        "nobody will ask for it again, since Scribe is best effort."
    )
    engine.crash(FORWARDER)
    engine.run(20.0)
    publish()
    engine.run(25.0)

    story.chapter(
        "Repair (§III-D): parents send heartbeats every 30 s, and an event is one, too. 45 s after they last heard of "
        "3, its children 2, 4 and 5 and its parent 1 part from it; the children subscribe along a route without it."
    )
    engine.run(55.0)

    story.chapter("The mended tree carries the next event to every subscriber.")
    publish()
    engine.run(66.0)
    assert_golden(GOLDEN, HEADER, story)
