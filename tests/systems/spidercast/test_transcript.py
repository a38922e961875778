"""Five nodes cover their topics: one is full, one is far away, one crashes; an event goes round before and after."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.messages import Ask, Profile, unpack
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Found,
    Heartbeat,
    Leave,
    Notify,
    Redirect,
    WhoElse,
)
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup
from tests.golden import Story, assert_golden

GOLDEN = Path(__file__).with_name("coverage.transcript")
HEADER = """
    SpiderCast: five nodes. 0 and 2 want topic 7; 1 wants 7, 8, 9 and 10, of which it is alone with the last; 3 wants 8,
    and 4 wants 9. Every topic is to be covered once, by the greedy task alone (K_g = 1, K_r = 0), and nobody accepts
    more than it may ask for (Margin = 0): so 0, 2, 3 and 4 have room for one neighbour each, and 1 for four. A message
    takes 50 ms and a round a second. Sections and figures are those of the SpiderCast paper.

    Samples are not shown, and heartbeats only where they are the first to name a link, or the first without it.
"""
TOPICS = {0: [7], 1: [7, 8, 9, 10], 2: [7], 3: [8], 4: [9]}


def shown(name: str, **fields: Any) -> Any:
    """A message with what a reader wants to know of it."""
    return msgspec.defstruct(name, list(fields))(**fields)


class Network:
    """The nodes, and what is told of them."""

    def __init__(self) -> None:
        kinds = {Connect, ConnectOk, Redirect, Disconnect, DisconnectOk, Leave, Heartbeat, WhoElse, Found}
        self.story = Story({*kinds, Ask, Profile, Notify}, self.tell)
        self.engine = Events(lambda now, a, b: 0.05, observer=self.story, watch_sends=True)
        self._named: dict[tuple[Address, Address], tuple[int, ...]] = {}

    def start(self, node: Address, *contacts: Address) -> None:
        setup = Setup(me=node, topics=TOPICS[node], contacts=contacts, random=Random(node))
        config = SpiderCastPeerConfig(greedy_coverage=1, margin=0, view_size=3, sample_size=2)
        self.engine.start(node, SpiderCastPeer(setup, config))

    def publish(self, node: Address, topic: int) -> None:
        self.engine.do(node, self.engine.peers[node].publish(self.engine.now, topic, b"news"))

    def tell(self, sender: Address, to: Address, message: Any) -> Any | None:
        name = type(message).__name__
        match message:
            case Connect() | ConnectOk():
                return shown(name, degree=message.standing.degree, target=message.standing.target)
            case Redirect():
                return shown(name, to=message.node)
            case Heartbeat():
                before = self._named.get((sender, to), ())
                self._named[sender, to] = message.tasks
                standing = message.standings[0]
                same = before == message.tasks
                return None if same else shown(name, degree=standing.degree, target=standing.target)
            case WhoElse():
                return shown(name, has=message.topics, wonders=message.seeker.node, hops=message.hops)
            case Found():
                return shown(name, topics=message.topics, at=tuple(found.node for found in message.descriptors))
            case Ask():
                return shown(name, profiles_of=tuple(want.node for want in message.wants))
            case Profile():
                return shown(name, of=message.node, topics=tuple(unpack(message.added).tolist()))
            case Leave() | Disconnect() | DisconnectOk():
                return shown(name)
        return message


def test_topics_are_covered_and_covered_again() -> None:
    net = Network()
    story, engine = net.story, net.engine
    story.chapter("0 and 1 meet, and cover topic 7 for each other (Figs. 2 and 4). Nobody has 8 or 9 yet, so 1 asks.")
    net.start(0)
    net.start(1, 0)
    engine.run(4)
    story.chapter("2 comes. 0 has no room, and names 1, which has not reached its target (Redirect, §2.3.1).")
    net.start(2, 0)
    engine.run(10)
    story.chapter("3 comes, and 4, which knows nobody but 3. It finds 1 by asking who else has topic 9.")
    net.start(3, 1)
    engine.run(14)
    net.start(4, 3)
    engine.run(30)
    story.chapter("An event of topic 7 goes along the links between its subscribers.")
    net.publish(2, 7)
    engine.run(31)
    story.chapter("""
        1 crashes (§2.4). Five seconds later its neighbours miss it; 0 and 2 cover topic 7 for each other. 3 and 4 find
        nobody but the dead: what is hearsay is believed for a while.
    """)
    engine.crash(1)
    engine.run(38)
    story.chapter("The next event takes the new link. Then 2 leaves in good order.")
    net.publish(2, 7)
    engine.run(39)
    engine.leave(2)
    engine.run(40)
    assert_golden(GOLDEN, HEADER, story)
