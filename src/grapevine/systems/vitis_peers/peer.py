"""A Vitis node: one turn a round of sampling, exchange, heartbeats and elections; events whenever they come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from grapevine.blocks.views import GATEWAY_TIES, NOBODY
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch
from grapevine.model.ids import distance
from grapevine.systems.peer import (
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
from grapevine.systems.vitis import Proposals, choose_gateway
from grapevine.systems.vitis_peers.book import Book, by_freshness
from grapevine.systems.vitis_peers.config import VitisPeerConfig
from grapevine.systems.vitis_peers.messages import (
    Descriptor,
    Exchange,
    Goodbye,
    Heartbeat,
    Notify,
    Profile,
    Proposal,
    Relay,
    Sample,
    WhoAreYou,
)

_KEPT_CONTACTS = 20
_KEPT_EVENTS = 1_000  # of a publisher and topic, to know a copy when it comes


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node keeps between two sessions."""

    version: int
    topics: tuple[int, ...]
    contacts: tuple[Address, ...]
    sequences: dict[int, int]
    seen: dict[tuple[Address, int], set[int]]


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
    ) -> None:
        self.me, self.config = me, config
        self.topics = set(memory.topics if memory else topics)
        self._ring_id, self._topic_id, self._random = ring_id, topic_id, random
        self._version = memory.version + 1 if memory else 1
        self._contacts = tuple(memory.contacts if memory and memory.contacts else contacts)
        self._sequences = dict(memory.sequences) if memory else {}
        self._seen = dict(memory.seen) if memory else {}
        self._started = 0.0
        self._turns = 0
        self.book = Book(self._about(0.0), random.getrandbits(32))
        self.cache: dict[Address, float] = {}  # Newscast: whom, and when somebody last heard of it
        self.table: list[Address] = []  # successor, predecessor, long links, friends; NOBODY: free
        self.backups: list[Address] = []
        self.reverse: dict[Address, float] = {}  # who has this node in its table, and when it last said so
        self.proposals: dict[int, Proposal] = {}  # by topic
        self._told: dict[Address, dict[int, Proposal]] = {}  # what neighbours propose
        self.relays: dict[int, dict[Address, float]] = {}  # by topic: to whom it is carried, until when
        self._offered: set[Address] = set()  # candidates since the last turn
        self._linked: set[Address] = set()
        self._out: list[Effect] = []
        self._handlers: dict[type, Callable[[float, Address, Any], None]] = {
            Sample: self._on_sample,
            Exchange: self._on_exchange,
            Heartbeat: self._on_heartbeat,
            WhoAreYou: self._on_who_are_you,
            Profile: self._on_profile,
            Relay: self._on_relay,
            Notify: self._on_notify,
            Goodbye: self._on_goodbye,
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        self._started = now
        self._renew(now)
        for node in self._contacts:
            self._send(node, Sample((self.book.me,), answer=False))
        self._out.append(SetTimer("turn", self._random.random() * self.config.round_s))
        return self._take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler = self._handlers.get(type(message))
        if handler is not None:
            self.book.hear(sender, now)
            handler(now, sender, message)
        return self._take()

    def on_timer(self, now: float, timer: Any) -> Effects:
        if timer == "turn":
            self._turn(now)
        return self._take()

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        self._sequences[topic] = self._sequences.get(topic, 0) + 1 if sequence is None else sequence
        event = Notify(topic, self._sequences[topic], self.me, payload)
        self._is_new(event)
        self._pass_on(now, event, None)
        return self._take()

    def subscribe(self, now: float, topic: int) -> Effects:
        if topic not in self.topics:
            self.topics.add(topic)
            self._version += 1
            self._renew(now)
        return self._take()

    def unsubscribe(self, now: float, topic: int) -> Effects:
        if topic in self.topics:
            self.topics.discard(topic)
            self.proposals.pop(topic, None)
            self._version += 1
            self._renew(now)
        return self._take()

    def leave(self, now: float) -> Effects:
        for node in self.neighbours(now):
            self._send(node, Goodbye())
        self._out.append(Finished())
        return self._take()

    @classmethod
    def warm_up(cls, config: VitisPeerConfig) -> None:
        """Compile the rules: two nodes meet and take a turn."""
        peers = [
            cls(me, config, ring_id=me << 60, topics=[1], topic_id=int, contacts=[1 - me], random=Random(me))
            for me in range(2)
        ]
        told = [(node, effect) for node, peer in enumerate(peers) for effect in peer.start(0.0)]
        for turn in range(1, 4):
            answers = [
                (effect.to, answer)
                for node, effect in told
                if isinstance(effect, Send) and effect.to in (0, 1)
                for answer in peers[effect.to].on_message(float(turn), node, effect.message)
            ]
            told = answers + [(node, made) for node, peer in enumerate(peers) for made in peer.on_timer(turn, "turn")]

    def meet(self, now: float, node: Address) -> Effects:
        if node != self.me:
            self._contacts = (*self._contacts, node)[-_KEPT_CONTACTS:]
            self._send(node, Sample((self.book.me,), answer=False))
        return self._take()

    def on_unreachable(self, now: float, node: Address) -> Effects:
        self._on_goodbye(now, node, Goodbye())
        self._announce_links(now)
        return self._take()

    def carried(self, now: float) -> Collection[int]:
        return self.topics | {t for t, c in self.relays.items() if any(end > now for end in c.values())}

    def partners(self, now: float, topic: int) -> Collection[Address]:
        return self.carriers(now, topic)

    def has_path(self, now: float, topic: int) -> bool:
        return bool(self.partners(now, topic)) or self._next_hop(now, topic) is not None

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

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        contacts = tuple(
            dict.fromkeys([*(node for node in self.table if node != NOBODY), *self.cache, *self._contacts])
        )
        return Memory(self._version, tuple(sorted(self.topics)), contacts[:20], self._sequences, self._seen)

    def neighbours(self, now: float) -> list[Address]:
        """Links, both ways."""
        return list(dict.fromkeys([*(node for node in self.table if node != NOBODY), *self.reverse]))

    def _about(self, now: float) -> Descriptor:
        return Descriptor(self.me, self._ring_id, self._version, tuple(sorted(self.topics)), now - self._started)

    def _renew(self, now: float) -> None:
        self.book.me = self._about(now)

    def _send(self, to: Address, message: Message) -> None:
        self._out.append(Send(to, message))

    def _take(self) -> Effects:
        taken, self._out = self._out, []
        return taken

    # A turn

    def _turn(self, now: float) -> None:
        config, oldest = self.config, now - self.config.silence_s
        self._turns += 1
        self._renew(now)
        self._forget_silent(oldest)
        self._select(now)
        if not self.book.known:
            for node in self._contacts:  # nobody answered: a contact may be there again
                self._send(node, Sample((self.book.me,), answer=False))
        self._sample(now)
        self._exchange(now)
        self._elect()
        for node in self.neighbours(now):
            self._send(node, Heartbeat(self._version, node in self.table, self._proposals_for(node)))
        if self._turns % config.relay_rounds == 0:
            self._look_up(now)
        self._announce_links(now)
        self._out.append(SetTimer("turn", config.round_s * self._random.uniform(0.9, 1.1)))

    def _forget_silent(self, oldest: float) -> None:
        """Algorithm 7: links that were silent for too long are dropped; so is what is only hearsay of old."""
        self.reverse = {node: heard for node, heard in self.reverse.items() if heard >= oldest}
        self.book.forget_older(oldest)
        known = self.book.known
        self.cache = {node: heard for node, heard in self.cache.items() if node in known}
        self.table = [node if node in known else NOBODY for node in self.table]
        self.backups = [node for node in self.backups if node in known]
        self._told = {node: told for node, told in self._told.items() if node in known}

    def _sample(self, now: float) -> None:
        """Newscast: exchange caches with a random member of it."""
        if self.cache:
            partner = self._random.choice(sorted(self.cache))
            self._send(partner, Sample((self.book.me, *self.book.told(now, self.cache)), answer=False))

    def _on_sample(self, now: float, sender: Address, message: Sample) -> None:
        if not message.answer:
            self._send(sender, Sample((self.book.me, *self.book.told(now, self.cache)), answer=True))
        self._learn(now, message.known)
        heard = self.book.heard
        known = {told.node for told in message.known if told.node in heard} | {n for n in self.cache if n in heard}
        self.cache = {node: heard[node] for node in by_freshness({n: heard[n] for n in known}, self.config.sample_size)}

    def _exchange(self, now: float) -> None:
        """T-Man with a neighbour, every other turn with one of the ring; without any, with a sample."""
        links = [node for node in self.table if node != NOBODY]
        ring = [node for node in self.table[:2] if node != NOBODY]
        partners = (ring if self._turns % 2 and ring else links) or sorted(self.cache)
        if partners:
            self._send(self._random.choice(partners), Exchange(self._view(now), answer=False))

    def _view(self, now: float) -> tuple[Descriptor, ...]:
        nodes = dict.fromkeys([*self.table, *self.cache, *self.backups])
        return self.book.me, *self.book.told(now, nodes)

    def _on_exchange(self, now: float, sender: Address, message: Exchange) -> None:
        if not message.answer:
            self._send(sender, Exchange(self._view(now), answer=True))
        self._learn(now, message.known)
        self._offered |= {told.node for told in message.known}

    def _learn(self, now: float, news: Iterable[Descriptor]) -> None:
        self.book.learn(now, [told for told in news if told.is_sound() and told.age_s < self.config.silence_s])

    def _select(self, now: float) -> None:
        """Algorithm 4, once a turn, from all that came in since the last."""
        candidates = dict.fromkeys([*self.table, *self.cache, *sorted(self._offered)])
        self._offered = set()
        settle_s = self.config.settle_rounds * self.config.round_s
        if now - self._started < settle_s:
            settle_s = 0.0  # while all are new, as at the start of a network, anybody is better than nobody
        self.table, self.backups = self.book.select(now, self.config, settle_s, candidates, self.backups)

    # Heartbeats and elections

    def _on_heartbeat(self, now: float, sender: Address, message: Heartbeat) -> None:
        known = self.book.known.get(sender)
        if known is None or known.version < message.version:
            self._send(sender, WhoAreYou())
        if message.link and sender >= 0:
            self.reverse[sender] = now
        else:
            self.reverse.pop(sender, None)
        self._told[sender] = {proposal.topic: proposal for proposal in message.proposals if proposal.is_sound()}

    def _on_who_are_you(self, now: float, sender: Address, message: WhoAreYou) -> None:
        self._renew(now)
        self._send(sender, Profile(self.book.me))

    def _on_profile(self, now: float, sender: Address, message: Profile) -> None:
        if message.me.node == sender:
            self._learn(now, (message.me,))

    def _on_goodbye(self, now: float, sender: Address, message: Goodbye) -> None:
        self.reverse.pop(sender, None)
        self.book.forget(sender)
        self._forget_silent(-np.inf)
        for carried in self.relays.values():
            carried.pop(sender, None)

    def _shares(self, node: Address, topic: int) -> bool:
        known = self.book.known.get(node)
        return known is not None and topic in known.topics

    def _proposals_for(self, node: Address) -> tuple[Proposal, ...]:
        return tuple(proposal for topic, proposal in self.proposals.items() if self._shares(node, topic))

    def _elect(self) -> None:
        """Algorithm 5 for every topic, from what neighbours who share it proposed last."""
        neighbours = self.neighbours(0.0)
        self.proposals = {
            topic: self._choose(topic, [node for node in neighbours if self._shares(node, topic)])
            for topic in sorted(self.topics)
        }

    def _choose(self, topic: int, members: list[Address]) -> Proposal:
        told = {node: self._told[node][topic] for node in members if topic in self._told.get(node, {})}
        place = {self.me: 0}
        ids = [self._ring_id]
        for node, proposal in told.items():
            for other, ring_id in ((node, self.book.known[node].ring_id), (proposal.gateway, proposal.gateway_id)):
                if other not in place:
                    place[other] = len(ids)
                    ids.append(ring_id)
            place.setdefault(proposal.parent, len(place))
            ids += [0] * (len(place) - len(ids))
        key, count = self._topic_id(topic), len(place)
        made = Proposals(*(np.full(count, NOBODY, np.int32) for _ in range(3)))
        for node, proposal in told.items():
            at = place[node]
            made.gateway[at], made.parent[at], made.hops[at] = (
                place[proposal.gateway],
                place[proposal.parent],
                proposal.hops,
            )
        edges = np.array([place[node] for node in told], np.int32)
        graph = Scratch(np.empty(0, np.int32), np.array([0, len(edges)], np.int64), edges)
        away = np.array([distance(ring_id, key) for ring_id in ids], np.uint64)
        ties = np.uint64(
            absorb(np.uint64(stream(self._ring_id & 0x7FFFFFFF, topic & 0x7FFF_FFFF_FFFF_FFFF, 0)), GATEWAY_TIES)
        )
        seen = np.full(count, NOBODY, np.int32)
        gateway, parent, hops = choose_gateway(0, self.config.gateway_reach, away, made, graph, seen, ties)
        node_of = {at: node for node, at in place.items()}
        return Proposal(topic, node_of[gateway], ids[gateway], node_of[parent], hops)

    # Relay paths

    def _next_hop(self, now: float, topic: int) -> Address | None:
        settle_s = self.config.settle_rounds * self.config.round_s
        fresh = now - 2 * self.config.round_s
        return self.book.next_hop(now, settle_s, self._topic_id(topic), self.table, fresh)

    def _look_up(self, now: float) -> None:
        """As a gateway: renew the path to the rendezvous of the topic."""
        for topic, proposal in self.proposals.items():
            if proposal.gateway == self.me:
                self._relay(now, topic)

    def _relay(self, now: float, topic: int) -> None:
        hop = self._next_hop(now, topic)
        if hop is not None:
            self._carry(now, topic, hop)
            self._send(hop, Relay(topic))

    def _on_relay(self, now: float, sender: Address, message: Relay) -> None:
        """Join the path, and extend it, unless that was done a moment ago for another gateway."""
        carried = self.relays.get(message.topic, {})
        until = now + self.config.relay_s
        renewed = any(end > until - self.config.round_s for node, end in carried.items() if node != sender)
        self._carry(now, message.topic, sender)
        if not renewed:
            self._relay(now, message.topic)

    def _carry(self, now: float, topic: int, node: Address) -> None:
        self.relays.setdefault(topic, {})[node] = now + self.config.relay_s

    def carriers(self, now: float, topic: int) -> list[Address]:
        """With whom events of the topic are exchanged: neighbours who want it, if this node does, and relay paths."""
        carried = {node: end for node, end in self.relays.get(topic, {}).items() if end > now}
        if topic in self.relays:
            self.relays[topic] = carried
        wanting = [n for n in self.neighbours(now) if self._shares(n, topic)] if topic in self.topics else []
        return list(dict.fromkeys([*wanting, *carried]))

    # Events

    def _is_new(self, event: Notify) -> bool:
        seen = self._seen.setdefault((event.publisher, event.topic), set())
        if event.sequence in seen:
            return False
        seen.add(event.sequence)
        if len(seen) > _KEPT_EVENTS:
            seen.discard(min(seen))
        return True

    def _on_notify(self, now: float, sender: Address, event: Notify) -> None:
        if not self._is_new(event):
            return
        if event.topic in self.topics:
            self._out.append(Deliver(event.topic, event.sequence, event.payload, sender))
        self._pass_on(now, event, sender)

    def _pass_on(self, now: float, event: Notify, sender: Address | None) -> None:
        """Flood the cluster and the relay paths; who is on neither hands the event towards the rendezvous."""
        others = self.carriers(now, event.topic)
        on_path = bool(others)
        if not on_path:
            hop = self._next_hop(now, event.topic)
            others = [hop] if hop is not None else []
        for node in others:
            if node != sender:
                self._send(node, Notify(event.topic, event.sequence, event.publisher, event.payload, not on_path))

    def _announce_links(self, now: float) -> None:
        linked = set(self.neighbours(now))
        self._out += [LinkDown(node) for node in sorted(self._linked - linked)]
        self._out += [LinkUp(node) for node in sorted(linked - self._linked)]
        self._linked = linked
