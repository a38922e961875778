"""A Trellis node: puts the parts together, and drives them by two timers of its own.

The *alarm* fires when something is due: an update that was held back to gather more, a sign of life, a repetition, the
end of what was silent, ids of events. *Turns* are for all that looks for something better: gossip, wishes for links,
probes. They come every `turn_s` at first and whenever something changes (a link, a root, an interest), and half as
often again and again while nothing does (Trickle, RFC 6206), down to every `most_turn_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import (
    Address,
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
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.gossip.window import Windows
from grapevine.systems.trellis.peer import messages as m
from grapevine.systems.trellis.peer.acquaintances import Acquaintances
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.delivery import Delivery
from grapevine.systems.trellis.peer.links import Links
from grapevine.systems.trellis.peer.lookahead import Lookahead
from grapevine.systems.trellis.peer.probes import Probes
from grapevine.systems.trellis.peer.setup import Setup
from grapevine.systems.trellis.peer.talk import Talk
from grapevine.systems.trellis.peer.topics import Topics
from grapevine.systems.trellis.peer.turns import Turns
from grapevine.systems.trellis.peer.wishes import Wishes

_CONTACTS = 20  # that are remembered
_LEAST_S = 0.01  # until an alarm: what is due earlier is done together


class TrellisPeer(Peer):
    """One session of a node; `Setup` says who it is. What remains of it for the next one is in `memory()`."""

    def __init__(self, setup: Setup, config: TrellisPeerConfig) -> None:
        memory, random = setup.memory, setup.random
        self.me, self.config, self._random, self._topic_id = setup.me, config, random, setup.topic_id
        self._contacts = tuple(memory.contacts if memory and memory.contacts else setup.contacts)
        self._first_topics = tuple(memory.topics if memory else setup.topics)
        self._sequences = dict(memory.sequences) if memory else {}
        self._out: list[Effect] = []
        self._alarm_at: float | None = None
        self._alarms = self._turn_timers = 0  # numbers of the timers that count
        self.links = Links(setup.me, config, random, self._send, self._on_opened, self._on_closed)
        self.lookahead = Lookahead(setup.me, setup.ring_id_of)
        self.probes = Probes(setup.me, config)
        self.others = Acquaintances(setup.me, config, random, setup.ring_id_of)
        self.topics = Topics(setup.me, config, self.links, self._next_hop, self.probes, self._on_change)
        seen = memory.seen if memory else Windows()
        paths = self.topics.edges, self._stray
        self.delivery = Delivery(setup.me, config, seen, paths, self._send, self._out.append)
        wishes = Wishes(config, self.links, self.others, setup.ring_id_of)
        parts = self.links, self.others, self.topics, self.probes, wishes
        self.turns = Turns(setup.me, config, random, parts, memory.version + 1 if memory else 1, self._send)
        self.talk = Talk(config, self.links, self.topics, self.lookahead, self._send)
        self._handlers = self._make_handlers()

    def _make_handlers(self) -> dict[type, Callable[[float, Address, Any], None]]:
        links, turns, delivery = self.links, self.turns, self.delivery
        return {
            m.Update: self.talk.on_update,
            m.Connect: turns.on_connect,
            m.Accept: turns.on_accept,
            m.Refuse: turns.on_refuse,
            m.Disconnect: lambda now, sender, message: links.take_disconnect(now, sender, message.link),
            m.Disconnected: lambda now, sender, message: links.take_disconnected(now, sender, message.link),
            m.Sample: turns.on_sample,
            m.Ask: turns.on_ask,
            m.Cards: lambda now, sender, message: self.others.take(now, sender, message.cards),
            m.Probe: turns.on_probe,
            m.Found: turns.on_found,
            m.Event: lambda now, sender, event: delivery.on_event(now, sender, event, self.topics.own),
            m.IHave: delivery.on_ids,
            m.Prune: lambda now, sender, message: delivery.on_prune(sender, message),
            m.Graft: lambda now, sender, message: delivery.on_graft(sender, message),
        }

    # What the host calls

    def start(self, now: float) -> Effects:
        self.links.start(now)
        self.turns.start(now)
        for topic in self._first_topics:
            self.topics.want(now, topic)
        for node in self._contacts:
            if node != self.me:
                self.turns.greet(now, node)
        self._set_turn(now, self._random.random() * self.config.turn_s)
        return self._take(now)

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        handler = self._handlers.get(type(message))
        self.talk.is_busy = type(message) is not m.Update
        if handler is not None and sender != self.me and 0 <= sender < m.WORDS:
            handler(now, sender, message)
            self.excesses = self.talk.excesses
        return self._take(now) if self.talk.is_busy or self._out else ()

    def on_timer(self, now: float, timer: Any) -> Effects:
        if timer == ("alarm", self._alarms):
            self._alarm_at = None
            self._ring(now)
            return self._taken()
        if timer == ("turn", self._turn_timers):
            self.turns.turn(now, self._contacts)
            self._set_turn(now, self.turns.turn_s * self._random.uniform(0.9, 1.1))
        return self._take(now)

    def meet(self, now: float, node: Address) -> Effects:
        if node != self.me:
            self._contacts = (*(known for known in self._contacts if known != node), node)[-_CONTACTS:]
            self.turns.greet(now, node)
        return self._take(now)

    def on_unreachable(self, now: float, node: Address) -> Effects:
        self.links.lose(now, node)
        self.others.forget(node, now)
        return self._take(now)

    def publish(self, now: float, topic: int, payload: bytes, sequence: int | None = None) -> Effects:
        _check_topic(topic)
        self._sequences[topic] = self._sequences.get(topic, 0) + 1 if sequence is None else sequence
        self.delivery.publish(now, m.Event(topic, self._sequences[topic], self.me, payload))
        return self._take(now)

    def subscribe(self, now: float, topic: int) -> Effects:
        _check_topic(topic)
        if topic not in self.topics.own and len(self.topics.own) >= self.config.most_topics:
            raise UsageError(
                f"topic {topic}: there are {len(self.topics.own):,} subscriptions already; raise most_topics"
            )
        self.topics.want(now, topic)
        self._on_change(now)
        return self._take(now)

    def unsubscribe(self, now: float, topic: int) -> Effects:
        self.topics.drop(now, topic)
        self._on_change(now)
        return self._take(now)

    def leave(self, now: float) -> Effects:
        for node, link in self.links.slots.items():
            self._send(node, m.Disconnect(link.number))
        self._out.append(Finished())
        return self._take(now)

    def carried(self, now: float) -> Collection[int]:
        return self.topics.carried()

    def partners(self, now: float, topic: int) -> Collection[Address]:
        return list(self.topics.edges(topic))

    def has_path(self, now: float, topic: int) -> bool:
        """With a link there is a next hop, or this node is the rendezvous, where the event belongs."""
        return bool(self.links.neighbours)

    def roles(self) -> dict[Address, list[str]]:
        ring, found = self.turns.wishes.ring_links(), {}
        for node in self.links.neighbours:
            kinds = [kind for kind, link in zip(("successor", "predecessor"), ring, strict=True) if link == node]
            found[node] = kinds or ["friend"]
        return found

    def memory(self) -> Memory:
        """What the node remembers of this session in the next one."""
        contacts = dict.fromkeys([*self.links.neighbours, *self.others.newscast.cache, *self._contacts])
        topics = tuple(sorted(self.topics.own))
        return Memory(self.turns.version, topics, tuple(contacts)[:_CONTACTS], self._sequences, self.delivery.seen)

    # Links, as they come and go

    def _on_opened(self, now: float, node: Address) -> None:
        self._out.append(LinkUp(node))
        self.turns.wishes.note_link(node)
        self.others.see(node, now)
        self.topics.meet()
        self.talk.greet(now, node)
        self._on_change(now)

    def _on_closed(self, now: float, node: Address, silent: bool) -> None:
        self._out.append(LinkDown(node))
        if silent:
            self.turns.wishes.shocked = now
            self.others.forget(node, now)
        self.delivery.forget(node)
        self.topics.lose(node)
        self.talk.lose()
        self._on_change(now)

    # Ways of events

    def _next_hop(self, topic: int, avoided: Collection[Address]) -> Address | None:
        self.talk.look()
        return self.lookahead.next_hop(self._topic_id(topic), avoided)

    def _stray(self, topic: int) -> Address | None:
        """Where an event goes that this node has nothing to do with: to a subscriber, or towards the rendezvous."""
        wanting = self.topics.member_beside(topic)
        return self._next_hop(topic, ()) if wanting is None else wanting

    # Timers and effects

    def _on_change(self, now: float) -> None:
        """Something is another now: turns come as often as at first."""
        self.turns.changed = now
        if self.turns.turn_s > self.config.turn_s:
            self.turns.turn_s = self.config.turn_s
            self._set_turn(now, self._random.random() * self.config.turn_s)

    def _set_turn(self, now: float, after_s: float) -> None:
        self._turn_timers += 1
        self._out.append(SetTimer(("turn", self._turn_timers), after_s))

    def _ring(self, now: float) -> None:
        """The alarm: whatever is due."""
        for node in self.links.expire(now):
            self.others.forget(node, now)
        self.delivery.expire(now)
        self.talk.flush(now)
        due = min(self.links.due(now), self.talk.due(now), self.topics.due())
        if (due_delivery := self.delivery.due()) is not None:
            due = min(due, due_delivery)
        self._set_alarm(now, due)

    def _set_alarm(self, now: float, due: float) -> None:
        """The alarm is to fire by this time. `_ring` works out when; whatever else happens has it look a gap later."""
        due = max(due, now + _LEAST_S)
        if self._alarm_at is None or due < self._alarm_at:
            self._alarms += 1
            self._alarm_at = due
            self._out.append(SetTimer(("alarm", self._alarms), due - now))

    def _send(self, to: Address, message: Message) -> None:
        self._out.append(Send(to, message))

    def _take(self, now: float) -> Effects:
        self.talk.version = self.turns.version
        self._set_alarm(now, now + self.config.gap_s)
        return self._taken()

    def _taken(self) -> Effects:
        taken = self._out.copy()
        self._out.clear()
        return taken


def _check_topic(topic: int) -> None:
    if not 0 <= topic < m.WORDS:
        raise UsageError(f"topic {topic}: topics are numbers from 0 to 2**64 - 1")
