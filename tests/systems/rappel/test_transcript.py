"""Five nodes join one feed, one of them leaves: every message of the tree, as a person would read it.

To write the file anew after a wanted change: GRAPEVINE_REWRITE=1 pytest tests/systems/rappel/test_transcript.py
"""

from __future__ import annotations

import math
import os
from functools import partial
from pathlib import Path
from random import Random

from grapevine.sim.events import Events
from grapevine.sim.transcript import Transcript
from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.peer import RappelPeer

GOLDEN = Path(__file__).with_name("join.transcript")
TREE = ["Join", "JoinOk", "JoinForward", "JoinDeny", "ChangeParent", "Adopt", "LeaveTree", "Pull", "Update"]
POINTS = {0: (0.0, 0.0), 1: (30.0, 0.0), 2: (0.0, 40.0), 3: (50.0, 0.0), 4: (10.0, 0.0)}  # ms


def run() -> str:
    transcript = Transcript(only=TREE)
    engine = Events(lambda now, a, b: math.dist(POINTS[a], POINTS[b]) / 1_000, observer=transcript, watch_sends=True)
    peers = {node: peer(node) for node in POINTS}
    for node in POINTS:  # 3 is sent to 1 (Fig. 4c), 4 evicts 2 (Fig. 4d)
        engine.at(1.0 + node, partial(engine.start, node, peers[node]))
    for time in (6.0, 7.012, 8.0):
        engine.at(time, lambda: engine.do(0, peers[0].publish(engine.now, 0, b"news")))
    engine.at(7.0, lambda: engine.leave(4))
    engine.run(until=10.0)
    return transcript.text()


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
    if os.environ.get("GRAPEVINE_REWRITE"):
        GOLDEN.write_text(run(), encoding="utf-8")
    assert run() == GOLDEN.read_text(encoding="utf-8")
