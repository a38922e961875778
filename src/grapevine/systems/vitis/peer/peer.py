"""A Vitis node: puts the parts together, drives them once a round, and passes events on whenever they come.

A round of a node lasts `round_s`, give or take a tenth, so that nodes do not act in step. In it the node drops who was
silent, chooses its table anew, gossips with two others, elects gateways, sends heartbeats to all neighbours, renews the
relay paths of topics whose gateway it is, and asks for profiles that it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from grapevine.model.errors import UsageError
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
from grapevine.systems.gossip.asking import Asking
from grapevine.systems.gossip.interests import Interests, check_topic
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.gossip.messages import MOST_TOPICS, Ask, Profile, Topics
from grapevine.systems.gossip.profiles import KnownProfiles
from grapevine.systems.gossip.window import Windows
from grapevine.systems.vitis.peer.agreement import Agreement
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.elections import Elections
from grapevine.systems.vitis.peer.messages import Descriptor, Exchange, Goodbye, Heartbeat, Notify, Relay, Sample
from grapevine.systems.vitis.peer.overlay import Overlay
from grapevine.systems.vitis.peer.paths import Paths
from grapevine.systems.vitis.peer.rates import TopicRates
from grapevine.systems.vitis.peer.setup import Setup

_CONTACTS = 20  # that are remembered
_MOST_CARRIERS = 10_000  # topics whose carriers are remembered


class Proposal(NamedTuple):
    """Whom a node proposes as the gateway of a topic."""

    gateway: Address
    parent: Address  # the neighbour that proposed it; the node itself if it proposes itself
    hops: int  # to the gateway


class VitisPeer(Peer):
    """One session of a node; `Setup` says who it is. What remains of it for the next one is in `memory()`."""

    def __init__(self, setup: Setup, config: VitisPeerConfig) -> None:
        memory, random = setup.memory, setup.random
        self.me, self.config = setup.me, config
        self._ring_id, self._topic_id, self._random = setup.ring_id, setup.topic_id, random
        version = memory.version + 1 if memory else 1
        topics = tuple(memory.topics if memory else setup.topics)
        self.rates = TopicRates(config.rates, config.rate_horizon_s, setup.rate_of)
        weights = {topic: self.rates.first_weight(topic) for topic in topics} if self.rates.is_weighed else None
        self.interests = Interests(topics, version, config.most_topics, weights)
        self._contacts = tuple(memory.contacts if memory and memory.contacts else setup.contacts)
        self._sequences = dict(memory.sequences) if memory else {}
        self._seen = memory.seen if memory else Windows()
        self._started = 0.0
        self._rounds = 0
        self.profiles = KnownProfiles(config.most_topics, weighed=self.rates.is_weighed)
        me = self._descriptor(0.0)
        self.overlay = Overlay(me, config, random, self._overlap, setup.ring_id_of, setup.tie_seed)
        self._asking = Asking(self.overlay.book, self.profiles, self.interests, config)
        self.elections = Elections(setup.me, setup.ring_id, config.gateway_reach)
        session = random.getrandbits(53)
        self.agreement = Agreement(self.elections, self.interests, self.profiles, self._ring_ids, session)
        self.paths = Paths(self.overlay, self.elections, config, self._ring_ids)
        self._carriers: dict[int, list[Address]] = {}  # of topics that were asked about, until something changes
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
        self.rates.start(now)
        self._renew(now)
        self._call_contacts()
        self._out.append(SetTimer("round", self._random.random() * self.config.round_s))
        return self._take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler = self._handlers.get(type(message))
        if handler is not None:
            self.overlay.book.hear_from(sender, now)
            if isinstance(message, (Profile, Relay)):
                self._carriers.clear()
            handler(now, sender, message)
        return self._take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        if timer == "round":
            self._round(now)
        return self._take()

    def meet(self, now: float, node: Address) -> Effects:
        if node != self.me:
            self._contacts = (*self._contacts, node)[-_CONTACTS:]
            self._send(node, Sample((self.overlay.book.me,), is_answer=False))
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
        if topic in self.topics:
            self.rates.see(now, topic)
        self._pass_on(now, event, None)
        return self._take()

    def subscribe(self, now: float, topic: int) -> Effects:
        if topic not in self.topics:
            self.rates.want(now, topic)
        self.interests.add(topic, self.rates.first_weight(topic))
        self._renew(now)
        return self._take()

    def declare_rate(self, now: float, topic: int, rate: float) -> Effects:
        check_topic(topic)
        if not 0 <= rate < math.inf:
            raise UsageError(f"rate {rate}: rates are numbers from 0 on")
        if (weight := self.rates.declare(topic, rate)) is not None:
            self.interests.weigh(topic, weight)
            self._renew(now)
        return self._take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        self.rates.forget(topic)
        self.interests.remove(topic)
        self._renew(now)
        return self._take()

    def leave(self, now: float) -> Effects:
        for node in self.overlay.neighbours():
            self._send(node, Goodbye())
        self._out.append(Finished())
        return self._take()

    def carried(self, now: float) -> Collection[int]:
        return self.interests.topics | set(self.paths.topics(now))

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
        """The topics that the application subscribes to."""
        return self.interests.topics

    @property
    def table(self) -> list[Address]:
        """The routing table: successor, predecessor, long links, friends; NOBODY: free."""
        return self.overlay.table

    @property
    def reverse(self) -> Collection[Address]:
        """Nodes that have this one in their tables, as they said in the last rounds."""
        return self.overlay.reverse

    @property
    def proposals(self) -> dict[int, Proposal]:
        """By topic, whom this node proposes as the gateway."""
        return {
            topic: Proposal(gateway, parent, hops)
            for topic, gateway, _, parent, hops in self.elections.proposals.tolist()
        }

    def neighbours(self, now: float) -> list[Address]:
        """Nodes in the table, and those that have this node in theirs."""
        return self.overlay.neighbours()

    # A round

    def _descriptor(self, now: float) -> Descriptor:
        """This node, as others shall know it."""
        interests = self.interests
        return Descriptor(self.me, self._ring_id, interests.version, len(interests.topics), now - self._started)

    def _overlap(self, node: Address) -> tuple[int, int]:
        """What the topics weigh that this node and another have in common, and all of the other's (Eq. 1)."""
        return self.profiles.own if node == self.me else self.profiles.overlap(node)

    def _renew(self, now: float) -> None:
        """Topics, or the time, have changed: so has the descriptor, and events may go other ways."""
        self.overlay.book.me = self._descriptor(now)
        self._carriers.clear()

    def _send(self, to: Address, message: Message) -> None:
        self._out.append(Send(to, message))

    def _take(self) -> Effects:
        taken, self._out = self._out, []
        return taken

    def _call_contacts(self) -> None:
        for node in self._contacts:
            self._send(node, Sample((self.overlay.book.me,), is_answer=False))

    def _round(self, now: float) -> None:
        config, overlay = self.config, self.overlay
        self._rounds += 1
        said = ((topic, self.interests.weight(topic)) for topic in self.interests.array().tolist())
        for topic, weight in self.rates.changed(now, said):
            self.interests.weigh(topic, weight)
        self._renew(now)
        self.profiles.compare_with(self.interests.array(), self.interests.weights())
        overlay.forget_silent(now)
        self.paths.expire(now)
        overlay.select(now)
        self._asking.forget_unknown(now)
        self.profiles.meet(overlay.neighbours())
        if not overlay.book.known:
            self._call_contacts()  # nobody answered: a contact may be there again
        if self._rounds % config.sample_rounds == 0 and (partner := overlay.sample_partner()) is not None:
            self._send(partner, Sample(overlay.sample(now), is_answer=False))
        if (partner := overlay.exchange_partner(self._rounds)) is not None:
            self._send(partner, Exchange(overlay.view(now), is_answer=False))
        known = overlay.book.known
        self.agreement.elect({node: known[node].ring_id for node in overlay.neighbours()})
        for node in overlay.neighbours():
            for heartbeat in self.agreement.heartbeats(node, overlay.book.me, node in self.table):
                self._send(node, heartbeat)
        if self._rounds % config.relay_rounds == 0:
            for hop, request in self.paths.renew(now):
                self._send(hop, request)
        for node, question in self._asking.questions(now, set(overlay.neighbours())):
            self._send(node, question)
        for node in overlay.doubted:
            self._send(node, self._asking.sign_of_life(now, node))
        self._announce_links()
        self._out.append(SetTimer("round", config.round_s * self._random.uniform(0.9, 1.1)))

    def _announce_links(self) -> None:
        linked = set(self.overlay.neighbours())
        self._out += [LinkDown(node) for node in sorted(self._linked - linked)]
        self._out += [LinkUp(node) for node in sorted(linked - self._linked)]
        self._linked = linked

    # Gossip

    def _on_sample(self, now: float, sender: Address, message: Sample) -> None:
        if not message.is_answer:
            self._send(sender, Sample(self.overlay.sample(now), is_answer=True))
        self.overlay.merge_sample(now, sender, message.descriptors)

    def _on_exchange(self, now: float, sender: Address, message: Exchange) -> None:
        if not message.is_answer:
            self._send(sender, Exchange(self.overlay.view(now), is_answer=True))
        self.overlay.merge_view(now, sender, message.descriptors)

    def _on_ask(self, now: float, sender: Address, message: Ask) -> None:
        for answer in self._asking.answers(sender, message):
            self._send(sender, answer)

    def _on_profile(self, now: float, sender: Address, message: Profile) -> None:
        self.excesses += message.topic_count > MOST_TOPICS
        self.surplus += self.config.most_topics < message.topic_count <= MOST_TOPICS
        update = self._asking.take(sender, message)
        if update is not None:
            self.agreement.repeat_for(update.node, update.added)

    def _on_goodbye(self, now: float, sender: Address, message: Goodbye) -> None:
        self._forget(now, sender)

    def _forget(self, now: float, node: Address) -> None:
        """The node is gone, and what is known of it counts no more."""
        self.overlay.forget(now, node)
        self.profiles.forget(node)
        self.paths.drop(node)
        self.agreement.forget(node)
        self._carriers.clear()

    def _on_heartbeat(self, now: float, sender: Address, message: Heartbeat) -> None:
        if message.sender.node != sender or not message.sender.is_sound():
            return
        self.overlay.learn(now, sender, (message.sender,))
        if self.overlay.link(now, sender, message.is_link):
            self._carriers.clear()
        if sender in self.overlay.reverse or sender in self.table:
            self.agreement.on_heartbeat(sender, message)

    # Relay paths

    def _ring_ids(self, topics: Topics) -> Topics:
        """Where on the ring the rendezvous of these topics are."""
        return np.fromiter(map(self._topic_id, topics.tolist()), np.uint64, len(topics))

    def _on_relay(self, now: float, sender: Address, message: Relay) -> None:
        if sender in self.overlay.book.known:
            requests, is_surplus = self.paths.on_relay(now, sender, message)
            self.surplus += is_surplus
            for hop, request in requests:
                self._send(hop, request)

    def carriers(self, now: float, topic: int) -> list[Address]:
        """With whom events of the topic are exchanged: neighbours who want it, if this node does, and relay paths."""
        if topic not in self._carriers:
            if len(self._carriers) >= _MOST_CARRIERS:
                self._carriers.clear()
            wanting = []
            if topic in self.topics:
                wanting = [node for node in self.overlay.neighbours() if self.profiles.wants(node, topic)]
            self._carriers[topic] = list(dict.fromkeys([*wanting, *self.paths.of(now, topic)]))
        return self._carriers[topic]

    # Events

    def _on_notify(self, now: float, sender: Address, event: Notify) -> None:
        if not event.is_sound() or not self._seen.add(event.publisher, event.topic, event.sequence):
            return
        if event.topic in self.topics:
            self.rates.see(now, event.topic)
            self._out.append(Deliver(event.topic, event.sequence, event.payload, sender))
        self._pass_on(now, event, sender)

    def _pass_on(self, now: float, event: Notify, sender: Address | None) -> None:
        """Flood the cluster and the relay paths; who is on neither hands the event towards the rendezvous."""
        others = self.carriers(now, event.topic)
        on_path = bool(others)
        if not on_path:
            others = self.paths.towards(now, event.topic)
        for node in others:
            if node != sender:
                self._send(node, Notify(event.topic, event.sequence, event.publisher, event.payload, not on_path))
