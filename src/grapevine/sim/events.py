"""The event engine: peers in virtual time, messages that take time and may be lost, doubled or cut off.

    engine = Events(delay, seed=1)
    engine.start(0, peer)
    engine.at(60.0, lambda: engine.crash(0))
    engine.run(until=3_600.0)

Theory. A queue holds what is going to happen: a message that arrives, a timer that fires, an action that the caller
planned. The earliest is taken out, the clock jumps to it, the peer concerned is told, and its effects are carried out,
which may put more into the queue. Nothing else moves the clock, and peers have no other way to notice the world.

Invariants:
1. Everything happens in the order of time, then of cause (what was put into the queue earlier), so a run is a function
   of peers, delays and seed.
2. A node has one session at a time, which is one `Peer`. Messages and timers belong to the session that they were meant
   for: like bytes in a connection they are lost when it ends, even if the node is back before they would have arrived.
3. Messages between the same two nodes may overtake each other, if delays change; peers have to bear it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Address, Deliver, Effects, Finished, Peer, Send, SetTimer

Delay = Callable[[float, Address, Address], float]  # (now, sender, receiver) → seconds until a message arrives
_NOBODY, _TIMER, _ACTION = -1, -2, -3  # no node; in the place of a sender: it is a timer, it is a planned action


class Observer(Protocol):
    """Who watches a run. It may count and write down, but nothing that it does changes the run."""

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None, /) -> None:
        """A message left, and will arrive at the time `arrives`; None: it is lost on the way. Only with `watch_sends`.

        Of a doubled message, `arrives` is when the second copy does.
        """

    def received(self, now: float, node: Address, sender: Address, message: Any, /) -> None:
        """A message that carries an event arrived at a node that is online; called before the peer is told."""

    def delivered(self, now: float, node: Address, event: Deliver, /) -> None:
        """A peer handed an event to its application."""


class Observers:
    """Several observers that pass for one: each is told everything, in the order in which they were given."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        """Tell all of them that a message left."""
        for observer in self._observers:
            observer.sent(now, sender, to, message, arrives)

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
        """Tell all of them that a message with an event arrived."""
        for observer in self._observers:
            observer.received(now, node, sender, message)

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        """Tell all of them that an application got an event."""
        for observer in self._observers:
            observer.delivered(now, node, event)


class Events:
    """A network of peers and its clock, in seconds from 0.

    `delay` says how long a message takes, `loss` and `duplication` which shares of all messages are lost and arrive
    twice. The `observer` is told of events; of every message that is sent, only with `watch_sends`, because that costs
    time.
    """

    def __init__(
        self,
        delay: Delay,
        *,
        seed: int = 1,
        loss: float = 0.0,
        duplication: float = 0.0,
        observer: Observer | None = None,
        watch_sends: bool = False,
    ) -> None:
        self.now = 0.0
        self.peers: dict[Address, Peer] = {}  # the current session of every node that is online
        self.counts: Counter[type] = Counter()  # messages sent, by kind
        self.sent: Counter[Address] = Counter()  # messages sent, by sender
        self.got: Counter[Address] = Counter()  # messages that arrived, by receiver
        self.events_sent: Counter[Address] = Counter()  # messages sent that carried an event, by sender
        self._delay = delay
        self._random = Random(f"network {seed}")
        self._groups: dict[Address, int] | None = None
        self.disturb(loss=loss, duplication=duplication)
        self._observer, self._watch_sends = observer, watch_sends and observer is not None
        self._queue: list[tuple[float, int, Address, Peer | None, Address, Any]] = []
        self._order = 0

    def start(self, node: Address, peer: Peer) -> None:
        """A session of the node begins now. UsageError if one is going on."""
        if node in self.peers:
            raise UsageError(f"node {node}: is there already; crash it or let it leave first")
        self.peers[node] = peer
        self.do(node, peer.start(self.now))

    def crash(self, node: Address) -> None:
        """The node's session, if there is one, ends without a word; what was on its way to it is lost."""
        self.peers.pop(node, None)

    def leave(self, node: Address) -> None:
        """Ask the peer to leave in good order; its session ends when it says `Finished`, which may take time."""
        if node in self.peers:
            self.do(node, self.peers[node].leave(self.now))

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Call `action` at this time; now, if it is past. It may do anything with the engine, also plan more."""
        self._order += 1
        heappush(self._queue, (max(time, self.now), self._order, _NOBODY, None, _ACTION, action))

    def part(self, groups: Sequence[Sequence[Address]]) -> None:
        """Messages sent between these groups are lost until `heal`. Nodes in none of them are one more group."""
        self._groups = {node: index for index, group in enumerate(groups) for node in group}
        self._rough = True

    def heal(self) -> None:
        """End what `part` began: all nodes reach each other again."""
        self._groups = None
        self._rough = self._loss > 0 or self._duplication > 0

    def disturb(self, *, loss: float = 0.0, duplication: float = 0.0) -> None:
        """From now on these shares of the messages are lost, and arrive twice; UsageError unless 0 ≤ share < 1."""
        for name, value in (("loss", loss), ("duplication", duplication)):
            if not 0 <= value < 1:
                raise UsageError(f"{name}={value:g}: needs to lie between 0 and 1")
        self._loss, self._duplication = loss, duplication
        self._rough = loss > 0 or duplication > 0 or self._groups is not None

    def run(self, until: float) -> None:
        """Let everything happen that happens up to this time; then it is `now`. May be called again and again."""
        queue, peers, got, observer, do, pop = self._queue, self.peers, self.got, self._observer, self.do, heappop
        while queue and queue[0][0] <= until:
            self.now, _, node, peer, sender, what = pop(queue)
            if peers.get(node) is not peer:
                continue  # that session is over
            if sender == _TIMER:
                do(node, peer.on_timer(self.now, what))  # type: ignore[union-attr]  # only peers set timers
            elif sender == _ACTION:
                what()
            elif peer is not None:
                got[node] += 1
                if observer is not None and what.carries_event:
                    observer.received(self.now, node, sender, what)
                do(node, peer.on_message(self.now, sender, what))
        self.now = max(self.now, until)

    def do(self, node: Address, effects: Effects) -> None:
        """Carry out the effects that the node's peer answered with. For callers that ask a peer something themselves,
        such as to publish; link effects mean nothing here, since there are no connections."""
        peer = self.peers.get(node)
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._order += 1
                heappush(self._queue, (self.now + effect.after_s, self._order, node, peer, _TIMER, effect.timer))
            elif isinstance(effect, Send):
                self._send(node, effect.to, effect.message)
            elif isinstance(effect, Deliver):
                if self._observer is not None:
                    self._observer.delivered(self.now, node, effect)
            elif isinstance(effect, Finished):
                self.crash(node)

    def _send(self, node: Address, to: Address, message: Any) -> None:
        self.sent[node] += 1
        self.counts[type(message)] += 1
        if message.carries_event:
            self.events_sent[node] += 1
        copies, arrives = self._copies(node, to) if self._rough else 1, None
        while copies:
            copies -= 1
            arrives = self.now + self._delay(self.now, node, to)
            self._order += 1
            heappush(self._queue, (arrives, self._order, to, self.peers.get(to), node, message))
        if self._watch_sends and self._observer is not None:
            self._observer.sent(self.now, node, to, message, arrives)

    def _copies(self, node: Address, to: Address) -> int:
        """How many copies of a message arrive: none across a cut or when it is lost, two when it is doubled."""
        groups = self._groups
        if groups is not None and groups.get(node) != groups.get(to):
            return 0
        return 0 if self._random.random() < self._loss else 1 + (self._random.random() < self._duplication)
