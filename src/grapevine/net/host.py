"""Drives a sans-IO peer on a real clock and real connections; nothing that it does, or is sent, stops the node."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from grapevine.model.errors import PeerError
from grapevine.net.conduct import EXCESS
from grapevine.net.links import Links
from grapevine.systems.contracts.peer import (
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
    """One session of a peer. `Deliver` is not needed here: a node delivers what its store has taken (`Node`)."""

    def __init__(self, peer: Peer, links: Links) -> None:
        self.peer, self._links = peer, links
        self.failures: Counter[str] = Counter()  # mistakes of ours that a message or a timer brought to light
        self.finished = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._timers: set[asyncio.TimerHandle] = set()
        self._stopped = False

    @property
    def now(self) -> float:
        """The clock of peers: it never goes back."""
        return self._loop.time()

    def call(self, action: Callable[[float], Effects]) -> bool:
        """Let the peer act, and do what it wants; False if it failed."""
        if self._stopped:
            return False
        try:
            effects = action(self.now)
        except Exception as error:
            self.failures[type(error).__name__] += 1
            _log.exception("the peer failed")
            return False
        self._do(effects)
        return True

    def on_message(self, sender: Address, message: Message) -> None:
        """A message for the peer came; one that asks too much of it is held against its sender."""
        before = self.peer.excesses
        self.call(lambda now: self.peer.on_message(now, sender, message))
        connection = self._links.connection(sender)
        if self.peer.excesses > before and connection is not None:
            error = PeerError(f"a {type(message).__name__} asks for more than a peer gives anybody")
            self._links.blame(connection, "excess", EXCESS, error)

    def on_unreachable(self, node: Address) -> None:
        """A connection broke, or none could be made."""
        self._links.pinned.discard(node)
        self.call(lambda now: self.peer.on_unreachable(now, node))

    def partners(self, topic: int) -> Collection[Address]:
        """With whom the peer exchanges events of a topic."""
        return self.peer.partners(self.now, topic)

    def carried(self) -> Collection[int]:
        """Topics that it wants or carries."""
        return self.peer.carried(self.now)

    def has_path(self, topic: int) -> bool:
        """Whether an event would go anywhere now."""
        return self.peer.has_path(self.now, topic)

    def stop(self) -> None:
        """Nothing happens any more."""
        self._stopped = True
        for handle in self._timers:
            handle.cancel()
        self._timers.clear()

    def _do(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._links.send(effect.to, effect.message)
            elif isinstance(effect, SetTimer):
                self._set(effect.timer, effect.after_s)
            elif isinstance(effect, LinkUp):
                self._links.pinned.add(effect.peer)
            elif isinstance(effect, LinkDown):
                self._links.pinned.discard(effect.peer)
            elif isinstance(effect, Finished):
                self.finished.set()

    def _set(self, timer: Any, after_s: float) -> None:
        def fire() -> None:
            self._timers.discard(handle)
            if not self.call(lambda now: self.peer.on_timer(now, timer)) and not self._stopped:
                self._set(timer, _AGAIN_S)  # or whatever it drives would stop for good

        handle = self._loop.call_later(after_s, fire)
        self._timers.add(handle)
