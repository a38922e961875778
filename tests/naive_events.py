"""A slow, obvious engine of virtual time, the oracle of `sim/events`.

What is going to happen is a list of actions, of which the earliest is looked for every time; a session is a number; and
everything is counted where it happens. On a rough network (loss, doubling or a cut, whatever it is) two numbers are
drawn for a message that is not cut off, the second one only if it is not lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from grapevine.sim.events import Delay, Observer
from grapevine.systems.contracts.peer import Address, Deliver, Effects, Finished, Message, Peer, Send, SetTimer


class NaiveEvents:
    """Does what `Events` does, and has the same methods."""

    def __init__(self, delay: Delay, *, seed: int, observer: Observer, watch_sends: bool) -> None:
        self.now = 0.0
        self.peers: dict[Address, Peer] = {}
        self.counts: Counter[type[Message]] = Counter()
        self.sent: Counter[Address] = Counter()
        self.got: Counter[Address] = Counter()
        self.events_sent: Counter[Address] = Counter()
        self._delay, self._observer, self._watch_sends = delay, observer, watch_sends
        self._random = Random(f"network {seed}")
        self._loss = self._duplication = 0.0
        self._groups: list[list[Address]] = []
        self._session: dict[Address, int] = {}
        self._sessions = self._planned = 0
        self._plans: list[tuple[float, int, Callable[[], None]]] = []

    def start(self, node: Address, peer: Peer) -> None:
        self._sessions += 1
        self.peers[node], self._session[node] = peer, self._sessions
        self.do(node, peer.start(self.now))

    def crash(self, node: Address) -> None:
        if node in self.peers:
            del self.peers[node], self._session[node]

    def leave(self, node: Address) -> None:
        if node in self.peers:
            self.do(node, self.peers[node].leave(self.now))

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._planned += 1
        self._plans.append((max(time, self.now), self._planned, action))

    def part(self, groups: Sequence[Sequence[Address]]) -> None:
        self._groups = [list(group) for group in groups]

    def heal(self) -> None:
        self._groups = []

    def disturb(self, *, loss: float = 0.0, duplication: float = 0.0) -> None:
        self._loss, self._duplication = loss, duplication

    def restart_load(self) -> None:
        for counts in (self.sent, self.got, self.events_sent):
            counts.clear()

    def run(self, until: float) -> None:
        while plans := [plan for plan in self._plans if plan[0] <= until]:
            plan = min(plans, key=lambda plan: plan[:2])
            self._plans.remove(plan)
            self.now, _, action = plan
            action()
        self.now = max(self.now, until)

    def do(self, node: Address, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.at(self.now + effect.after_s, partial(self._fire, self._session.get(node), node, effect.timer))
            elif isinstance(effect, Send):
                self._send(node, effect.to, effect.message)
            elif isinstance(effect, Deliver):
                self._observer.delivered(self.now, node, effect)
            elif isinstance(effect, Finished):
                self.crash(node)

    def _send(self, node: Address, to: Address, message: Any) -> None:
        self.sent[node] += 1
        self.counts[type(message)] += 1
        if message.carries_event:
            self.events_sent[node] += 1
        arrives = None
        for _ in range(self._copies(node, to)):
            arrives = self.now + self._delay(self.now, node, to)
            self.at(arrives, partial(self._arrive, self._session.get(to), to, node, message))
        if self._watch_sends:
            self._observer.sent(self.now, node, to, message, arrives)

    def _copies(self, node: Address, to: Address) -> int:
        if [node in group for group in self._groups] != [to in group for group in self._groups]:
            return 0
        if not (self._loss or self._duplication or self._groups):
            return 1
        if self._random.random() < self._loss:
            return 0
        return 2 if self._random.random() < self._duplication else 1

    def _fire(self, session: int | None, node: Address, timer: Any) -> None:
        if session is not None and self._session.get(node) == session:
            self.do(node, self.peers[node].on_timer(self.now, timer))

    def _arrive(self, session: int | None, node: Address, sender: Address, message: Any) -> None:
        if session is not None and self._session.get(node) == session:
            self.got[node] += 1
            if message.carries_event:
                self._observer.received(self.now, node, sender, message)
            self.do(node, self.peers[node].on_message(self.now, sender, message))
