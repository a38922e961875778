"""Two subscribers that must not be linked are joined by a node between them, which crashes; another takes its place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, World
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import (
    FRIEND,
    Accept,
    Carried,
    Carry,
    Choice,
    Connect,
    Disconnect,
    Event,
    Gone,
    Graft,
    IHave,
    Label,
    Message,
    Offer,
    Prune,
    Update,
)
from grapevine.systems.trellis.peer.peer import TrellisPeer
from grapevine.systems.trellis.peer.wishes import Verdict
from grapevine.systems.trellis.peers import TrellisPeers
from tests.golden import Story, assert_golden
from tests.peer_world import workload_of

GOLDEN = Path(__file__).with_name("bridge.transcript")
HEADER = """
    Trellis: nodes 0 and 3 want topic 0, and are not linked; 1 and 2 are linked to both, and do not want it. Only links
    that the story makes are made: nobody looks for others, as turns are far apart. A message takes 50 ms. Shown are
    requests for links, the facts in updates, and events; not updates that merely confirm or say that somebody is there.
"""
NEVER_S = 10_000.0


class Facts(Message, frozen=True):
    """An update as the story tells it: what has changed."""

    facts: tuple[Any, ...]


def tell(sender: Address, to: Address, message: Any) -> Any | None:
    """Of an update the facts, unless there are none; of a request for a link who asks."""
    if isinstance(message, Update):
        kinds = (Label, Offer, Choice, Carry, Carried, Gone)
        facts = tuple(fact for fact in message.facts if isinstance(fact, kinds))
        return Facts(facts) if facts else None
    if isinstance(message, Connect):
        return Connect(0, message.kind, 0)
    if isinstance(message, Accept):
        return Accept(0, 0, 0, 0)
    return Disconnect(0) if isinstance(message, Disconnect) else message


def test_two_clusters_are_bridged_as_written_down() -> None:
    world = World(workload_of({0: [0], 3: [0]}, nodes=4, publishers=[0]), [0], lambda a, b: 0.05, 1)
    config = TrellisPeerConfig(turn_s=NEVER_S, most_turn_s=NEVER_S, most_links=5)
    system = TrellisPeers(config, world)
    story = Story({Connect, Accept, Disconnect, Update, Event, IHave, Prune, Graft}, tell)
    engine = Events(lambda now, a, b: 0.05, observer=story, watch_sends=True)

    def connect(node: Address, to: Address) -> None:
        peer = engine.peers[node]
        assert isinstance(peer, TrellisPeer)
        peer.links.ask(engine.now, to, Connect(node * 10 + to + 1, FRIEND, peer.links.stamp(engine.now), 1.0))
        engine.do(node, peer.on_timer(engine.now, None))

    def publish(node: Address) -> None:
        engine.do(node, engine.peers[node].publish(engine.now, 0, b"news"))

    for node in range(4):
        peer = system.peer(node, None)
        peer.turns.wishes.judge = agree  # type: ignore[method-assign]
        engine.start(node, peer)
    for node, to in ((1, 0), (1, 3), (2, 0), (2, 3)):
        engine.at(0.1 * node, partial(connect, node, to))
    story.chapter("""
        Links begin: a request, an answer, and with the first update the link is open at both ends. Members tell their
        labels; 1 and 2 see two of them and offer the higher one a bridge. Its root chooses the offer with the lowest
        hash and asks that node to carry the topic, which asks the member of lower rank, and answers. Roots without a
        bridge look for a way themselves after a grace: so the lower one looks the rendezvous up.
    """)
    engine.run(8.0)
    story.chapter("An event goes from 3 to 0 over the bridge.")
    publish(3)
    engine.run(10.0)
    bridge = next(node for node in (1, 2) if engine.peers[node].roles() and _carries(engine.peers[node]))
    story.chapter(f"The bridge, {bridge}, crashes. Silence tells; the other offer is the best now.")
    engine.crash(bridge)
    engine.run(24.0)
    story.chapter("And events go over it.")
    publish(3)
    engine.run(26.0)
    assert_golden(GOLDEN, HEADER, story)


def agree(*_: Any) -> Any:
    """Whoever asks for a link in this story gets it: it is about what follows."""
    return Verdict(True)


def _carries(peer: Any) -> bool:
    return len(peer.partners(0.0, 0)) > 1
