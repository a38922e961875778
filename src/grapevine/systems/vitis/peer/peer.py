"""A Vitis node: one turn a round of sampling, exchange, heartbeats and elections; events whenever they come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np

from grapevine.systems.contracts.peer import (
    Address,
    Deliver,
    Effect,
    Effects,
    Finished,
    LinkDown,
    LinkUp,
    Message,
    Peer,
    Send,
    SetTimer,
)
from grapevine.systems.vitis.peer.agreement import Agreement
from grapevine.systems.vitis.peer.asking import Asking
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.elections import Elections
from grapevine.systems.vitis.peer.interests import Interests, check_topic
from grapevine.systems.vitis.peer.messages import (
    TOPICS_A_PART,
    Ask,
    Descriptor,
    Exchange,
    Goodbye,
    Heartbeat,
    Notify,
    Profile,
    Relay,
    Sample,
    Topics,
    pack,
    parts,
    unpack,
)
from grapevine.systems.vitis.peer.overlay import Overlay
from grapevine.systems.vitis.peer.profiles import Shelf
from grapevine.systems.vitis.peer.relays import Relays
from grapevine.systems.vitis.peer.window import Windows

_CONTACTS = 20  # that are remembered
_MOST_ROUTES = 10_000


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node keeps between two sessions."""

    version: int
    topics: tuple[int, ...]
    contacts: tuple[Address, ...] = ()
    sequences: dict[int, int] = field(default_factory=dict)
    seen: Windows = field(default_factory=Windows)


class Proposal(NamedTuple):
    """Whom a node proposes as the gateway of a topic."""

    gateway: Address
    parent: Address
    hops: int


class VitisPeer(Peer):
    """One session of a node."""

    def __init__(
        self,
        me: Address,
        config: VitisPeerConfig,
        *,
        ring_id: int,
        topics: Iterable[int],
        topic_id: Callable[[int], int],
        contacts: Iterable[Address],
        random: Random,
        memory: Memory | None = None,
        ring_id_of: Callable[[Address], int] | None = None,  # where it follows from the address, nobody can choose it
    ) -> None:
        self.me, self.config = me, config
        self._ring_id, self._topic_id, self._random = ring_id, topic_id, random
        version = memory.version + 1 if memory else 1
        self.interests = Interests(memory.topics if memory else topics, version, config.most_topics)
        self._contacts = tuple(memory.contacts if memory and memory.contacts else contacts)
        self._sequences = dict(memory.sequences) if memory else {}
        self._seen = memory.seen if memory else Windows()
        self._started = 0.0
        self._turns = 0
        self.shelf = Shelf(config.most_topics)
        self.overlay = Overlay(self._about(0.0), config, random, self.shelf.overlap, ring_id_of)
        self._asking = Asking(self.overlay.book, self.shelf, self.interests, config)
        self.elections = Elections(me, ring_id, config.gateway_reach)
        session = random.getrandbits(53)
        self.agreement = Agreement(self.elections, self.interests, self.shelf, self._keys, session)
        self.relays = Relays(self._keys, config.most_relays)
        self._routes: dict[int, list[Address]] = {}  # `carriers` of topics, until something changes
        self._linked: set[Address] = set()
        self._out: list[Effect] = []
        self._handlers: dict[type, Callable[[float, Address, Any], None]] = {
            Sample: self._on_sample,
            Exchange: self._on_exchange,
            Heartbeat: self._on_heartbeat,
            Ask: self._on_ask,
            Profile: self._on_profile,
            Relay: self._on_relay,
            Goodbye: self._on_goodbye,
            Notify: self._on_notify,
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        self._started = now
        self._renew(now)
        self._call_contacts()
        self._out.append(SetTimer("turn", self._random.random() * self.config.round_s))
        return self._take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler = self._handlers.get(type(message))
        if handler is not None:
            self.overlay.book.hear(sender, now)
            if isinstance(message, (Profile, Relay)):
                self._routes.clear()
            handler(now, sender, message)
        return self._take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        if timer == "turn":
            self._turn(now)
        return self._take()

    def meet(self, now: float, node: Address) -> Effects:
        if node != self.me:
            self._contacts = (*self._contacts, node)[-_CONTACTS:]
            self._send(node, Sample((self.overlay.book.me,), answer=False))
        return self._take()

    def on_unreachable(self, now: float, node: Address) -> Effects:
        self._forget(now, node)
        self._announce_links()
        return self._take()

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        check_topic(topic)
        self._sequences[topic] = self._sequences.get(topic, 0) + 1 if sequence is None else sequence
        event = Notify(topic, self._sequences[topic], self.me, payload)
        self._seen.add(self.me, topic, event.sequence)
        self._pass_on(now, event, None)
        return self._take()

    def subscribe(self, now: float, topic: int) -> Effects:
        self.interests.add(topic)
        self._renew(now)
        return self._take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        self.interests.remove(topic)
        self._renew(now)
        return self._take()

    def leave(self, now: float) -> Effects:
        for node in self.overlay.neighbours():
            self._send(node, Goodbye())
        self._out.append(Finished())
        return self._take()

    def carried(self, now: float) -> Collection[int]:
        return self.interests.topics | self.relays.topics(now)

    def partners(self, now: float, topic: int) -> Collection[Address]:
        return self.carriers(now, topic)

    def has_path(self, now: float, topic: int) -> bool:
        """With a link there is a next hop, or this node is the rendezvous, where the event belongs."""
        return bool(self.carriers(now, topic) or self.overlay.usable_links(now))

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        contacts = tuple(dict.fromkeys([*self.neighbours(0.0), *self.overlay.cache, *self._contacts]))
        topics = tuple(sorted(self.topics))
        return Memory(self.interests.version, topics, contacts[:_CONTACTS], self._sequences, self._seen)

    def roles(self) -> dict[Address, list[str]]:
        kinds = ["successor", "predecessor"]
        kinds += ["long"] * (self.config.ring_and_long_links - len(kinds))
        roles: dict[Address, list[str]] = {}
        for at, node in enumerate(self.table):
            if node >= 0:
                roles.setdefault(node, []).append(kinds[at] if at < len(kinds) else "friend")
        for node in self.reverse:
            roles.setdefault(node, []).append("reverse")
        return roles

    # What a measurement looks at

    @property
    def topics(self) -> set[int]:
        """What the node wants."""
        return self.interests.topics

    @property
    def table(self) -> list[Address]:
        """Successor, predecessor, long links, friends; NOBODY: free."""
        return self.overlay.table

    @property
    def reverse(self) -> Collection[Address]:
        """Who has this node in its table."""
        return self.overlay.reverse

    @property
    def proposals(self) -> dict[int, Proposal]:
        """Gateways by topic."""
        return {
            topic: Proposal(gateway, parent, hops)
            for topic, gateway, _, parent, hops in self.elections.proposals.tolist()
        }

    def neighbours(self, now: float) -> list[Address]:
        """Links, both ways."""
        return self.overlay.neighbours()

    # A turn

    def _about(self, now: float) -> Descriptor:
        interests = self.interests
        return Descriptor(self.me, self._ring_id, interests.version, len(interests.topics), now - self._started)

    def _renew(self, now: float) -> None:
        self.overlay.book.me = self._about(now)
        self._routes.clear()

    def _send(self, to: Address, message: Message) -> None:
        self._out.append(Send(to, message))

    def _take(self) -> Effects:
        taken, self._out = self._out, []
        return taken

    def _call_contacts(self) -> None:
        for node in self._contacts:
            self._send(node, Sample((self.overlay.book.me,), answer=False))

    def _turn(self, now: float) -> None:
        config, overlay = self.config, self.overlay
        self._turns += 1
        self._renew(now)
        self.shelf.measure_by(self.interests.array())
        overlay.forget_silent(now)
        self.relays.expire(now)
        overlay.select(now)
        self._asking.forget_unknown(now)
        self.shelf.meet(overlay.neighbours())
        if not overlay.book.known:
            self._call_contacts()  # nobody answered: a contact may be there again
        if self._turns % config.sample_rounds == 0 and (partner := overlay.sample_partner()) is not None:
            self._send(partner, Sample(overlay.sample(now), answer=False))
        if (partner := overlay.exchange_partner(self._turns)) is not None:
            self._send(partner, Exchange(overlay.view(now), answer=False))
        known = overlay.book.known
        self.agreement.elect({node: known[node].ring_id for node in overlay.neighbours()})
        for node in overlay.neighbours():
            for heartbeat in self.agreement.heartbeats(node, overlay.book.me, node in self.table):
                self._send(node, heartbeat)
        if self._turns % config.relay_rounds == 0:
            mine = self.elections.gateway_of()  # Algorithm 5, lines 20-22
            self._extend(now, self.elections.topics[mine], self.elections.keys[mine])
        for node, question in self._asking.questions(now, set(overlay.neighbours())):
            self._send(node, question)
        self._announce_links()
        self._out.append(SetTimer("turn", config.round_s * self._random.uniform(0.9, 1.1)))

    def _announce_links(self) -> None:
        linked = set(self.overlay.neighbours())
        self._out += [LinkDown(node) for node in sorted(self._linked - linked)]
        self._out += [LinkUp(node) for node in sorted(linked - self._linked)]
        self._linked = linked

    # Gossip

    def _on_sample(self, now: float, sender: Address, message: Sample) -> None:
        if not message.answer:
            self._send(sender, Sample(self.overlay.sample(now), answer=True))
        self.overlay.merge_sample(now, sender, message.known)

    def _on_exchange(self, now: float, sender: Address, message: Exchange) -> None:
        if not message.answer:
            self._send(sender, Exchange(self.overlay.view(now), answer=True))
        self.overlay.merge_view(now, sender, message.known)

    def _on_ask(self, now: float, sender: Address, message: Ask) -> None:
        for answer in self._asking.answers(sender, message):
            self._send(sender, answer)

    def _on_profile(self, now: float, sender: Address, message: Profile) -> None:
        self.excesses += message.count > self.config.most_topics
        update = self._asking.take(sender, message)
        if update is not None:
            self.agreement.tell_again(update.node, update.added)

    def _on_goodbye(self, now: float, sender: Address, message: Goodbye) -> None:
        self._forget(now, sender)

    def _forget(self, now: float, node: Address) -> None:
        self.overlay.forget(now, node)
        self.shelf.forget(node)
        self.relays.drop(node)
        self.agreement.forget(node)
        self._routes.clear()

    def _on_heartbeat(self, now: float, sender: Address, message: Heartbeat) -> None:
        if message.me.node != sender or not message.me.is_sound():
            return
        self.overlay.learn(now, sender, (message.me,))
        if self.overlay.link(now, sender, message.link):
            self._routes.clear()
        if sender in self.overlay.reverse or sender in self.table:
            self.agreement.hear(sender, message)

    # Relay paths

    def _keys(self, topics: Topics) -> Topics:
        return np.fromiter(map(self._topic_id, topics.tolist()), np.uint64, len(topics))

    def _extend(self, now: float, topics: Topics, keys: Topics) -> None:
        """Take the paths of these topics one step nearer to their rendezvous."""
        until = now + self.config.relay_s
        for hop, which in self.overlay.next_hops(now, keys):
            self.relays.carry(hop, topics[which], until, keys[which])
            for some in parts(topics[which], TOPICS_A_PART):
                self._send(hop, Relay(pack(some)))

    def _on_relay(self, now: float, sender: Address, message: Relay) -> None:
        """Join the paths, and extend them, unless that was done a moment ago for another gateway."""
        if sender in self.overlay.book.known:
            until = now + self.config.relay_s
            asked = unpack(message.topics)
            self.excesses += self.relays.exceeds(sender, asked)
            topics, keys = self.relays.join(sender, asked, until, until - self.config.round_s)
            self._extend(now, topics, keys)

    def carriers(self, now: float, topic: int) -> list[Address]:
        """With whom events of the topic are exchanged: neighbours who want it, if this node does, and relay paths."""
        if topic not in self._routes:
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            wanting = []
            if topic in self.topics:
                wanting = [node for node in self.overlay.neighbours() if self.shelf.wants(node, topic)]
            self._routes[topic] = list(dict.fromkeys([*wanting, *self.relays.of(now, topic)]))
        return self._routes[topic]

    # Events

    def _on_notify(self, now: float, sender: Address, event: Notify) -> None:
        if not event.is_sound() or not self._seen.add(event.publisher, event.topic, event.sequence):
            return
        if event.topic in self.topics:
            self._out.append(Deliver(event.topic, event.sequence, event.payload, sender))
        self._pass_on(now, event, sender)

    def _pass_on(self, now: float, event: Notify, sender: Address | None) -> None:
        """Flood the cluster and the relay paths; who is on neither hands the event towards the rendezvous."""
        others = self.carriers(now, event.topic)
        on_path = bool(others)
        if not on_path:
            key = np.array([self._topic_id(event.topic)], np.uint64)
            others = [hop for hop, _ in self.overlay.next_hops(now, key)]
        for node in others:
            if node != sender:
                self._send(node, Notify(event.topic, event.sequence, event.publisher, event.payload, not on_path))
