"""The systems that run live: how their peers are made, and what their topics are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from functools import cache, reduce
from operator import or_
from random import Random
from typing import Any, ClassVar, get_args

from grapevine.model.config import Config
from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.model.ids import ring_id
from grapevine.model.settings import make
from grapevine.net import messages as host_messages
from grapevine.net.wire import messages_in
from grapevine.systems.peer import Address, Effects, Peer, Send
from grapevine.systems.rappel import Memory as RappelMemory
from grapevine.systems.rappel import RappelConfig, RappelPeer
from grapevine.systems.rappel import messages as rappel_messages
from grapevine.systems.rappel.messages import HereIAm, Submit, Submitted
from grapevine.systems.rappel.outbox import Outbox
from grapevine.systems.rappel.position import Locating
from grapevine.systems.vitis_peers import Memory, VitisPeer, VitisPeerConfig
from grapevine.systems.vitis_peers import messages as vitis_messages


class LiveSystem(ABC):
    """Makes the peer of a node."""

    name: ClassVar[str]
    config_type: ClassVar[type[Config]]
    messages: ClassVar[Any]  # all that may come over a connection
    needs_contacts: ClassVar[bool] = False  # before a peer can be made
    live_values: ClassVar[dict[str, Any]] = {}  # of parameters that differ from those of simulations

    def __init__(self, config: Any, me: PeerId) -> None:
        self.config, self.me = config, me

    def topic(self, name: str) -> int:
        """The number of a topic; UsageError if the system knows no such topics."""
        return ring_id(f"topic:{name}")

    def may_publish(self, topic: int, publisher: PeerId) -> bool:
        """Whether events of this topic may come from this publisher."""
        return True

    @abstractmethod
    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> Peer:
        """A new session; `topics` are those of the last one."""

    def join(self, peer: Any, now: float, topic: int) -> Effects:
        """The node publishes in this topic from now on, so that others exchange its events with it."""
        effects: Effects = peer.subscribe(now, topic)
        return effects

    @classmethod
    def warm_up(cls) -> None:
        """Compile what peers call, before anybody waits for it; once in a process."""
        return


class LiveVitis(LiveSystem):
    """Vitis: anybody publishes in any topic. A node's place on the ring is its address, a hash of its key."""

    name = "vitis"
    config_type = VitisPeerConfig
    live_values: ClassVar[dict[str, Any]] = {"sample_rounds": 5}  # ours: a sample needs a connection to a stranger
    messages = messages_in(vitis_messages) | messages_in(host_messages)

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> VitisPeer:
        return VitisPeer(
            self.me.address,
            self.config,
            ring_id=self.me.address,
            topics=topics,
            topic_id=_itself,
            contacts=contacts,
            random=Random(f"{self.me} {session}"),
            memory=Memory(session, tuple(topics)),  # versions of the profile go on where the last session ended
            ring_id_of=_itself,
        )

    @classmethod
    @cache
    def warm_up(cls) -> None:
        """Two nodes meet, and take some turns."""
        config = VitisPeerConfig()
        peers = [
            VitisPeer(me, config, ring_id=me, topics=[2**63], topic_id=_itself, contacts=[1 - me], random=Random(me))
            for me in (0, 1)
        ]
        sent = [(me, effect) for me, peer in enumerate(peers) for effect in peer.start(0.0)]
        for now in (1.0, 2.0, 3.0, 4.0):
            answers = [
                (effect.to, answer)
                for me, effect in sent
                if isinstance(effect, Send)
                for answer in peers[effect.to].on_message(now, me, effect.message)
            ]
            sent = answers + [(me, made) for me, peer in enumerate(peers) for made in peer.on_timer(now, "turn")]


class LiveRappel(LiveSystem):
    """Rappel: a topic is somebody's feed, `<peer id>/<name>`, and only that peer publishes in it.

    So there are no submissions by others (§2): who took one would pass on what it did not seal, and be shut out for it.

    Contacts serve as landmarks; the first node of a network is where it is.
    """

    name = "rappel"
    config_type = RappelConfig
    messages = messages_in(host_messages) | reduce(
        or_, [kind for kind in get_args(messages_in(rappel_messages)) if kind not in (Submit, Submitted)]
    )
    needs_contacts = True

    def __init__(self, config: Any, me: PeerId) -> None:
        super().__init__(config, me)
        self._publishers: dict[int, PeerId] = {}

    def topic(self, name: str) -> int:
        owner, slash, feed = name.partition("/")
        if not slash or not feed:
            raise UsageError(f"{name!r} is no feed; with rappel, topics are called PEER_ID/NAME after their publisher")
        topic = super().topic(name)
        self._publishers[topic] = PeerId.parse(owner)
        return topic

    def may_publish(self, topic: int, publisher: PeerId) -> bool:
        return self._publishers.get(topic) == publisher

    def peer(self, topics: Collection[int], contacts: Collection[Address], session: int) -> RappelPeer:
        return RappelPeer(
            self.me.address,
            self.config,
            subscriptions=topics,
            published=[topic for topic, publisher in self._publishers.items() if publisher == self.me],
            publisher_of=lambda topic: self._publishers[topic].address,
            key_of=str,
            landmarks=list(contacts),
            random=Random(f"{self.me} {session}"),
            memory=RappelMemory(session=session, position=() if contacts else (0.0,) * self.config.dimensions),
        )

    def join(self, peer: RappelPeer, now: float, topic: int) -> Effects:
        return peer.found(topic)

    @classmethod
    @cache
    def warm_up(cls) -> None:
        """A newcomer finds its place beside one landmark."""
        config = RappelConfig()
        locating = Locating(config, [1], Random(0), Outbox())
        for number in range(config.landmark_rounds + 1):
            locating.ask(float(number))
            locating.hear(number + 0.01, 1, HereIAm(number, (0.0,) * config.dimensions, 1.0))


def _itself(topic: int) -> int:
    """A topic's number is a hash already: its place on the ring."""
    return topic


LIVE_SYSTEMS: dict[str, type[LiveSystem]] = {system.name: system for system in (LiveVitis, LiveRappel)}


def live_system(name: str, settings: Iterable[tuple[str, Any]], me: PeerId) -> LiveSystem:
    """The system of this name with these parameters; UsageError if there is none."""
    kind = LIVE_SYSTEMS.get(name)
    if kind is None:
        raise UsageError(f"system={name!r}: {', '.join(LIVE_SYSTEMS)} run live; choose one of these")
    return kind(make(kind.config_type, kind.live_values | dict(settings), owner=name), me)
