"""Drives a sans-IO peer on a real clock and real connections; nothing that it does, or is sent, stops the node."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from grapevine.model.errors import PeerError
from grapevine.net.conduct import EXCESS
from grapevine.net.connections import Connections
from grapevine.systems.contracts.live import LiveSystem
from grapevine.systems.contracts.peer import (
    FROM_BEHIND,
    Address,
    Effects,
    Finished,
    LinkDown,
    LinkUp,
    Message,
    Peer,
    Send,
    SetTimer,
)

_AGAIN_S = 1.0  # until a timer whose handler failed fires once more
_log = logging.getLogger(__name__)


class Host:
    """One session of a peer: from `start` to `stop`. Before and after, nothing reaches the peer.

    `Deliver` is not needed here: a node delivers what its store has taken (`arrivals`).
    """

    peer: Peer

    def __init__(self, system: LiveSystem, connections: Connections) -> None:
        self.failures: Counter[str] = Counter()  # mistakes of ours that a message or a timer brought to light
        self.finished = asyncio.Event()  # the peer has left in good order
        self.is_running = False
        self._system, self._connections = system, connections
        self._loop = asyncio.get_running_loop()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def now(self) -> float:
        """The clock of peers: seconds, and it never goes back."""
        return self._loop.time()

    def start(self, topics: Collection[int], session: int) -> None:
        """Make the peer, with these subscriptions and those who are connected as its first contacts."""
        self.peer = self._system.peer(topics, self._connections.connected, session)
        self.is_running = True
        self.call(self.peer.start)

    def stop(self) -> None:
        """The session is over: nothing reaches the peer any more, and no timer of it fires."""
        self.is_running = False
        for handle in self._timers:
            handle.cancel()
        self._timers.clear()

    def call(self, action: Callable[[float], Effects]) -> bool:
        """Let the peer act, and do what it wants; False if it failed, or there is none."""
        if not self.is_running:
            return False
        try:
            effects = action(self.now)
        except Exception as error:
            self.failures[type(error).__name__] += 1
            _log.exception("the peer failed")
            return False
        self._do(effects)
        return True

    # What the node tells the peer

    def subscribe(self, topic_id: int) -> None:
        """The application wants the topic from now on."""
        self.call(lambda now: self.peer.subscribe(now, topic_id))

    def declare_rate(self, topic_id: int, rate: float) -> None:
        """The application says how often events are published in the topic."""
        self.call(lambda now: self.peer.declare_rate(now, topic_id, rate))

    def unsubscribe(self, topic_id: int) -> None:
        """Nobody on this node wants the topic, or publishes in it, any more."""
        self.call(lambda now: self.peer.unsubscribe(now, topic_id))

    def join(self, topic_id: int) -> None:
        """This node publishes in the topic: others are to exchange its events with it."""
        self.call(lambda now: self._system.join(self.peer, now, topic_id))

    def publish(self, topic_id: int, envelope: bytes, sequence: int) -> bool:
        """Hand an event to the overlay; False if the peer failed."""
        return self.call(lambda now: self.peer.publish(now, topic_id, envelope, sequence))

    def meet(self, node: Address) -> None:
        """Somebody of the network was found, or is remembered."""
        self.call(lambda now: self.peer.meet(now, node))

    def on_message(self, sender: Address, message: Message) -> None:
        """A message for the peer came; one that asks too much of it is held against its sender."""
        before, surplus = self.peer.excesses, self.peer.surplus
        self.call(lambda now: self.peer.on_message(now, sender, message))
        connection = self._connections.connection(sender)
        if self.peer.surplus > surplus:
            self._connections.count("surplus")
        if self.peer.excesses > before and connection is not None:
            error = PeerError(f"a {type(message).__name__} asks for more than a peer gives anybody")
            self._connections.blame(connection, "excess", EXCESS, error)

    def on_unreachable(self, node: Address) -> None:
        """A connection broke, or none could be made: whoever is there is no link any more."""
        if self.is_running:
            self._connections.pinned.discard(node)
            self.call(lambda now: self.peer.on_unreachable(now, node))

    # What the node asks the peer

    def partners(self, topic_id: int) -> Collection[Address]:
        """With whom the peer exchanges events of a topic."""
        return self.peer.partners(self.now, topic_id)

    def carried(self) -> Collection[int]:
        """Topics that it wants or carries for others."""
        return self.peer.carried(self.now)

    def has_path(self, topic_id: int) -> bool:
        """Whether an event that is published now would reach anybody."""
        return self.peer.has_path(self.now, topic_id)

    def chosen(self) -> Collection[Address]:
        """Links that this node has chosen itself, whatever the other ends think of them."""
        if not self.is_running:
            return ()
        return {node for node, roles in self.peer.roles().items() if not set(roles) <= set(FROM_BEHIND)}

    def _do(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._connections.send(effect.to, effect.message)
            elif isinstance(effect, SetTimer):
                self._set(effect.timer, effect.after_s)
            elif isinstance(effect, LinkUp):
                self._connections.pinned.add(effect.peer)
            elif isinstance(effect, LinkDown):
                self._connections.pinned.discard(effect.peer)
            elif isinstance(effect, Finished):
                self.finished.set()

    def _set(self, timer: Any, after_s: float) -> None:
        def fire() -> None:
            self._timers.discard(handle)
            if not self.call(lambda now: self.peer.on_timer(now, timer)) and self.is_running:
                self._set(timer, _AGAIN_S)  # or whatever it drives would stop for good

        handle = self._loop.call_later(after_s, fire)
        self._timers.add(handle)
