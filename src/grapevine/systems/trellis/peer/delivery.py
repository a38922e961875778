"""Events of one node: which it has had, whom they are delivered and passed on to, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from grapevine.blocks.lazy_push import Actions, LazyPush, Name
from grapevine.systems.contracts.peer import Address, Deliver, Message
from grapevine.systems.gossip.window import Windows
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import MOST_COUNT, Event, Graft, Id, IHave, Prune

_OVERHEAD = 100  # bytes that an event takes beside its payload
_MOST_IDS = 256  # in a message
_MOST_STEPS = 60  # of an event on its way to the rendezvous


class Delivery:
    """What one node does with events. `paths` say over which edges those of a topic go, and where to without any."""

    def __init__(
        self,
        me: Address,
        config: TrellisPeerConfig,
        seen: Windows,
        paths: tuple[Callable[[int], Mapping[Address, bool]], Callable[[int], Address | None]],
        send: Callable[[Address, Message], None],
        deliver: Callable[[Deliver], None],
    ) -> None:
        self._me, self.seen = me, seen
        self._edges, self._stray = paths
        self._send, self._deliver = send, deliver
        self._push: LazyPush[Event] = LazyPush(
            self._edges, ids_s=config.ids_s, graft_s=config.graft_s, shortcut_hops=config.shortcut_hops
        )

    def eager(self, topic: int) -> list[Address]:
        """To whom payloads of a topic go."""
        return [node for node, in_tree in self._edges(topic).items() if self._push.is_eager(topic, node, in_tree)]

    def publish(self, now: float, event: Event) -> None:
        """This node publishes an event."""
        self.seen.add(self._me, event.topic, event.sequence)
        self._pass_on(self._push.publish(now, _name(event), event, _size(event)), event)

    def on_event(self, now: float, sender: Address, event: Event, wanted: Collection[int]) -> None:
        """An event came: deliver it if it is `wanted` and new, and pass it on."""
        if not event.is_sound():
            return
        if not self.seen.add(event.publisher, event.topic, event.sequence):
            if not event.lookup:
                self._do(self._push.again(_name(event), sender))
            return
        if event.topic in wanted:
            self._deliver(Deliver(event.topic, event.sequence, event.payload, sender))
        hops = event.hops + 1
        further = Event(event.topic, event.sequence, event.publisher, event.payload, hops)
        self._pass_on(self._push.take(now, _name(event), further, hops, _size(event), sender), further)

    def _pass_on(self, actions: Actions[Event], event: Event) -> None:
        self._do(actions)
        if not self._edges(event.topic) and event.hops < _MOST_STEPS:
            node = self._stray(event.topic)
            if node is not None:
                message = Event(event.topic, event.sequence, event.publisher, event.payload, event.hops, lookup=True)
                self._send(node, message)

    def on_ids(self, now: float, sender: Address, message: IHave) -> None:
        """A neighbour has these events."""
        ids = [(_name(told), told.hops) for told in message.ids[:_MOST_IDS] if told.is_sound()]
        self._do(self._push.on_ids(now, sender, ids, self._had))

    def _had(self, name: Name) -> bool:
        return self.seen.has(name.publisher, name.topic, name.sequence)

    def on_prune(self, sender: Address, message: Prune) -> None:
        """A neighbour gets the events of these topics from somebody else."""
        self._push.on_prune(message.topics, sender)

    def on_graft(self, sender: Address, message: Graft) -> None:
        """A neighbour lacks events, or wants to have those of some topics from here."""
        names = [_name(told) for told in message.ids[:_MOST_IDS] if told.is_sound()]
        self._do(self._push.on_graft(names, message.topics, sender))

    def forget(self, node: Address) -> None:
        """The node is no neighbour any more."""
        self._push.forget(node)

    def due(self) -> float | None:
        """When `expire` has something to do; None: never."""
        return self._push.due()

    def expire(self, now: float) -> None:
        """Tell ids that were gathered, and ask for what has not come."""
        self._do(self._push.expire(now))

    def _do(self, actions: Actions[Event]) -> None:
        for node, event in actions.events:
            self._send(node, event)
        for node, topics in actions.prunes.items():
            self._send(node, Prune(tuple(sorted(topics))))
        for node in dict.fromkeys([*actions.grafts, *actions.joins]):
            names = actions.grafts.get(node, ())
            self._send(node, Graft(_ids((name, 0) for name in names), tuple(sorted(actions.joins.get(node, ())))))
        for node, ids in actions.ids.items():
            for first in range(0, len(ids), _MOST_IDS):
                self._send(node, IHave(_ids(ids[first : first + _MOST_IDS])))


def _ids(names: Iterable[tuple[Name, int]]) -> tuple[Id, ...]:
    return tuple(Id(name.topic, name.publisher, name.sequence, min(hops, MOST_COUNT - 1)) for name, hops in names)


def _name(event: Event | Id) -> Name:
    return Name(event.topic, event.publisher, event.sequence)


def _size(event: Event) -> int:
    return len(event.payload) + _OVERHEAD
