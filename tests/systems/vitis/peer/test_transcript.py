"""Two clusters of a topic meet at its rendezvous, an event goes from one to the other, and a gateway is replaced."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from grapevine.model.ids import RING_SIZE
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.messages import Ask, Profile, unpack
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Exchange, Heartbeat, Notify, Relay, Sample, unpack_proposals
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peer.setup import Setup
from tests.golden import Story, assert_golden

GOLDEN = Path(__file__).with_name("gateway.transcript")
HEADER = """
    Vitis: eight nodes, at 0, 1/8, ... 7/8 of the ring, and three topics. 0, 1 and 2 want topics 0 and 1; 4 wants 0 and
    2; 3 and 5 want 1; 6 and 7 want 2. Topic 0, whose story this is, has its place next to node 6. A table has four
    links: successor, predecessor and two friends (§III-A). With fewer nodes everybody would be linked to everybody. A
    message takes 50 ms and a round a second. Sections and algorithms are those of the Vitis paper.

    Gossip and profiles are shown for the first second; of heartbeats those that propose another gateway for topic 0
    than before; of requests to relay the first of every hop before and after the crash, as gateways renew them.
"""
TOPICS = {0: [0, 1], 1: [0, 1], 2: [0, 1], 3: [1], 4: [0, 2], 5: [1], 6: [2], 7: [2]}
STORY = 0  # the topic
KEY = 6 * RING_SIZE // 8 + 1
MET_S, ALONE_S = 1.0, 4.0  # until when 0 and 1 meet, and are alone


def ring_id(node: Address) -> int:
    return node * RING_SIZE // len(TOPICS)


def shown(name: str, **fields: Any) -> Any:
    """A message with what is in its bytes."""
    return msgspec.defstruct(name, list(fields))(**fields)


class Network:
    """Nodes that know node 0, or, the first, nobody; and what is told of them."""

    def __init__(self) -> None:
        self.story = Story({Sample, Exchange, Ask, Profile, Heartbeat, Relay, Notify}, self.tell)
        self.engine = Events(lambda now, a, b: 0.05, observer=self.story, watch_sends=True)
        self._said: dict[tuple[Address, Address, str], object] = {}

    def start(self, node: Address) -> None:
        setup = Setup(
            me=node,
            ring_id=ring_id(node),
            topics=TOPICS[node],
            topic_id=lambda topic: KEY if topic == STORY else topic,
            contacts=[0] if node else [],
            random=Random(node),
        )
        self.engine.start(node, VitisPeer(setup, VitisPeerConfig(table_size=4, ring_and_long_links=2)))

    def publish(self, node: Address) -> None:
        self.engine.do(node, self.engine.peers[node].publish(self.engine.now, STORY, b"news"))

    def tell(self, sender: Address, to: Address, message: Any) -> Any | None:
        match message:
            case Sample() | Exchange():
                told = tuple(about.node for about in message.descriptors)
                return shown(type(message).__name__, of=told, answer=message.is_answer) if self._meeting else None
            case Ask():
                return shown("Ask", profiles_of=tuple(want.node for want in message.wants)) if self._meeting else None
            case Profile():
                topics = tuple(unpack(message.added).tolist())
                return shown("Profile", of=message.node, topics=topics) if self._meeting else None
            case Heartbeat():
                for topic, gateway, _, parent, hops in unpack_proposals(message.proposals).tolist():
                    if topic == STORY and self._is_new(sender, to, "gateway", (gateway, parent, hops)):
                        return shown("Heartbeat", gateway=gateway, parent=parent, hops=hops)
                return None
            case Relay():
                carries = STORY in unpack(message.topics) and self._is_new(sender, to, "relay", None)
                return shown("Relay", topics=(STORY,)) if carries else None
        return message

    def tell_relays_again(self) -> None:
        """From now on the first request of every hop is one to be shown."""
        self._said = {key: said for key, said in self._said.items() if "relay" not in key}

    @property
    def _meeting(self) -> bool:
        return self.engine.now < MET_S

    def _is_new(self, sender: Address, to: Address, what: str, said: object) -> bool:
        before, self._said[sender, to, what] = self._said.get((sender, to, what), self), said
        return before != said


def test_clusters_meet_and_a_gateway_is_replaced_as_written_down() -> None:
    network = Network()
    engine, story = network.engine, network.story
    story.chapter(
        "Two nodes meet (§III-A, Algorithms 1 – 3): 1 calls 0, which it was told of. In their turns they exchange "
        "samples and views, and ask for each other's profile. Each proposes itself as the gateway of the topic that "
        "they share (Algorithm 5, line 3), then both the one that is nearer to the topic: 0."
    )
    network.start(0)
    network.start(1)
    engine.run(ALONE_S)

    story.chapter(
        "The others come. In the end 4 has no neighbour that wants topic 0, and is a gateway, too: the topic has two "
        "clusters. Gateways look the topic's place up, and every hop on the way carries the topic from then on "
        "(§III-B, Algorithm 5, lines 20 – 22). Both lookups end at node 6, the rendezvous. As long as the ring is not "
        "complete, others may be taken for it; their paths end, since nobody renews them."
    )
    for node in range(2, 8):
        engine.at(ALONE_S + 0.1 * node, partial(network.start, node))
    engine.run(24.0)

    story.chapter(
        "An event (§III-C, Fig. 3): published by 1, it floods the cluster; gateway 0 passes it along the relay path "
        "to the rendezvous, and that to the other cluster. Nodes 6 and 7 do not want it."
    )
    network.publish(1)
    engine.run(25.0)

    story.chapter(
        "Gateway 0 crashes at 25 s (§III-D). After five silent rounds 1 and 2 drop it. For a moment 2 believes what 1 "
        "said of it before; then 1 is the gateway, and looks the topic's place up over its new neighbour on the ring. "
        "Friend selection fills the free place, too: 2 takes 4, so that the clusters become one, and agree on 4, the "
        "nearest."
    )
    network.tell_relays_again()
    engine.crash(0)
    engine.run(44.0)

    story.chapter(
        "The next event floods the one cluster, and goes over its gateway to the rendezvous. The path of 1, which has "
        "not been renewed, is gone."
    )
    network.publish(1)
    engine.run(45.0)
    assert_golden(GOLDEN, HEADER, story)
