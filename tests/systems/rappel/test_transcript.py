"""A feed's tree message by message, as a person would read it: five nodes join it and one leaves; a parent crashes."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import (
    Ack,
    Adopt,
    ChangeParent,
    Join,
    JoinDeny,
    JoinForward,
    JoinOk,
    LeaveTree,
    Ping,
    Pull,
    Update,
)
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.peer import RappelPeer
from tests.golden import Story, assert_golden

TREE = {Join, JoinOk, JoinForward, JoinDeny, ChangeParent, Adopt, LeaveTree, Pull, Update}
POINTS = {0: (0.0, 0.0), 1: (30.0, 0.0), 2: (0.0, 40.0), 3: (50.0, 0.0), 4: (10.0, 0.0)}  # ms
PLACES = """
    Node 0 publishes it. A node takes two children at most (β = 2) and knows its coordinates from the start: 0 at
    (0, 0), 1 at (30, 0), 2 at (0, 40), 3 at (50, 0), 4 at (10, 0). A message takes as many ms as its ends are apart.
    Sections and figures are those of the Rappel paper.
"""


class Feed:
    """Nodes that join a feed, a second apart."""

    def __init__(self, nodes: int, story: Story) -> None:
        self.engine = Events(
            lambda now, a, b: math.dist(POINTS[a], POINTS[b]) / 1_000, observer=story, watch_sends=True
        )
        for node in range(nodes):
            self.engine.at(1.0 + node, partial(self.engine.start, node, peer(node)))

    def publish(self) -> None:
        self.engine.do(0, self.engine.peers[0].publish(self.engine.now, 0, b"news"))


def peer(node: Address) -> RappelPeer:
    """A node that knows its place."""
    setup = Setup(
        me=node,
        subscriptions=[0] if node else [],
        published=[] if node else [0],
        publisher_of=lambda topic: 0,
        landmarks=[],
        random=Random(node),
        memory=Memory(position=POINTS[node]),
    )
    return RappelPeer(setup, RappelConfig(children=2, dimensions=2))


def test_nodes_join_and_leave_a_feed_as_written_down() -> None:
    story = Story(TREE)
    feed = Feed(5, story)
    story.chapter(
        "Joining (§4.2, Algorithm 2): 1 and 2 become children of the publisher. Then it is full, and sends 3 on to "
        "1, which is nearer to it (Fig. 4c); 4 is nearer to the publisher than 2 and takes its place, so 2 is told "
        "to ask 4 (Fig. 4d)."
    )
    feed.engine.run(until=5.9)
    story.chapter("An update goes down the tree (§4.1).")
    feed.engine.at(6.0, feed.publish)
    feed.engine.run(until=6.9)
    story.chapter(
        "A proper leave (§4.4): 4 asks the publisher to adopt its child 2, and serves 2 until 2 says that it has "
        "another parent. The update at 7.012 reaches 2 on both ways, and is delivered once."
    )
    feed.engine.at(7.0, lambda: feed.engine.leave(4))
    feed.engine.at(7.012, feed.publish)
    feed.engine.run(until=7.9)
    story.chapter("The next update goes down the tree without 4.")
    feed.engine.at(8.0, feed.publish)
    feed.engine.run(until=10.0)
    header = f"Rappel: five nodes join one feed, and one of them leaves in good order. {PLACES}"
    assert_golden(Path(__file__).with_name("join.transcript"), header, story)


def test_a_child_of_a_failed_parent_joins_again_and_pulls_what_it_missed_as_written_down() -> None:
    def tell(sender: Address, to: Address, message: Any) -> Any | None:
        """Pings are told of the nodes at the break: the parent that fails, and its child."""
        return message if not isinstance(message, (Ping, Ack)) or {sender, to} == {1, 3} else None

    story = Story(TREE | {Ping, Ack}, tell)
    feed = Feed(4, story)
    story.chapter("Joining (§4.2): 1 and 2 are children of the publisher, and 3 is a child of 1.")
    feed.engine.run(until=9.0)
    story.chapter("An update goes down the tree (§4.1); then children ping their parents, which they do every 30 s.")
    feed.publish()
    feed.engine.run(until=39.0)
    story.chapter("1 crashes at 39 s. Two updates reach 2 alone.")
    feed.engine.crash(1)
    for time in (40.0, 41.0):
        feed.engine.at(time, feed.publish)
    feed.engine.run(until=41.1)
    story.chapter(
        "Failure (§4.1): 3 pings 1, and after 15 s without an answer joins again, at its grandparent, which it knows "
        "from the chain of its ancestors. The answer says that update 3 is the last: 3 pulls what it has not seen."
    )
    feed.engine.run(until=90.0)
    story.chapter("The next update comes by itself.")
    feed.publish()
    feed.engine.run(until=91.0)
    header = f"""
        Rappel: four nodes in one feed; the parent of one of them fails. {PLACES}

        Of pings and their answers those between 1 and 3 are shown.
    """
    assert_golden(Path(__file__).with_name("failure.transcript"), header, story)
