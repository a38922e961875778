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
4. Where a peer or an action raises, `run` raises, and what it had not come to yet is still in the queue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Address, Deliver, Effects, Finished, Message, Peer, Send, SetTimer

Delay = Callable[[float, Address, Address], float]  # (now, sender, receiver) → seconds until a message arrives


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


@dataclass(slots=True, eq=False)
class _Session:
    """A node's stay: messages and timers carry the session that they are meant for."""

    node: Address
    peer: Peer | None  # None: it is over
    got: int = 0  # messages that arrived since `restart_load`


class Events:
    """A network of peers and its clock, in seconds from 0.

    `delay` says how long a message takes, `loss` and `duplication` which shares of all messages are lost and arrive
    twice. The `observer` is told of events; of every message that is sent, only with `watch_sends`, because that costs
    time. `peers` has the current session of every node that is online; only the engine changes it.
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
        self.peers: dict[Address, Peer] = {}
        self._sessions: dict[Address, _Session] = {}  # of the same nodes
        self._delay = delay
        self._random = Random(f"network {seed}")
        self._groups: dict[Address, int] | None = None
        self.disturb(loss=loss, duplication=duplication)
        self._observer, self._watch_sends = observer, watch_sends and observer is not None
        # Messages sent, by kind and sender: one number to add to where a message is sent, and three sums to read.
        self._sent: defaultdict[type[Message], defaultdict[Address, int]] = defaultdict(lambda: defaultdict(int))
        self._sent_before: Counter[type[Message]] = Counter()  # by kind, until `restart_load`
        self._got: Counter[Address] = Counter()  # messages that arrived in sessions that are over
        # Time and order; who is told, by whom, what. Without a sender it is a timer, and without a session an action.
        self._queue: list[tuple[float, int, _Session | None, Address | None, Any]] = []
        self._order = 0  # of what was put into the queue last
        self._time = 0.0  # of the same

    # What the world does

    def start(self, node: Address, peer: Peer) -> None:
        """A session of the node begins now. UsageError if one is going on."""
        if node in self.peers:
            raise UsageError(f"node {node}: is there already; crash it or let it leave first")
        self.peers[node], self._sessions[node] = peer, _Session(node, peer)
        self.do(node, peer.start(self.now))

    def crash(self, node: Address) -> None:
        """The node's session, if there is one, ends without a word; what was on its way to it is lost."""
        if self.peers.pop(node, None) is not None:
            session = self._sessions.pop(node)
            session.peer = None
            self._got[node] += session.got

    def leave(self, node: Address) -> None:
        """Ask the peer to leave in good order; its session ends when it says `Finished`, which may take time."""
        if node in self.peers:
            self.do(node, self.peers[node].leave(self.now))

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Call `action` at this time; now, if it is past. It may do anything with the engine, also plan more."""
        self._put(max(time, self.now), None, None, action)

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

    # What was counted: made when it is asked for, so a loop over nodes should ask once

    @property
    def counts(self) -> Counter[type[Message]]:
        """Messages sent from the beginning on, by kind. What is lost on the way was sent as well."""
        return self._sent_before + Counter({kind: sum(senders.values()) for kind, senders in self._sent.items()})

    @property
    def sent(self) -> Counter[Address]:
        """Messages sent since `restart_load`, by sender."""
        return _total(self._sent.values())

    @property
    def events_sent(self) -> Counter[Address]:
        """Messages sent since `restart_load` that carried an event, by sender."""
        return _total(senders for kind, senders in self._sent.items() if kind.carries_event)

    @property
    def got(self) -> Counter[Address]:
        """Messages that arrived since `restart_load`, by receiver."""
        return self._got + Counter({node: session.got for node, session in self._sessions.items()})

    def restart_load(self) -> None:
        """Forget how much each node has sent and got so far: the measurement begins now. `counts` go on."""
        self._sent_before = self.counts
        self._sent.clear()
        self._got.clear()
        for session in self._sessions.values():
            session.got = 0

    # What happens

    def run(self, until: float) -> None:
        """Let everything happen that happens up to this time; then it is `now`. May be called again and again."""
        queue, observer, do, pop = self._queue, self._observer, self.do, heappop
        while queue and queue[0][0] <= until:
            self.now, _, session, sender, what = pop(queue)
            if session is None:
                what()
                continue
            peer = session.peer
            if peer is None:
                continue  # that session is over
            if sender is None:
                do(session.node, peer.on_timer(self.now, what))
            else:
                session.got += 1
                if observer is not None and what.carries_event:
                    observer.received(self.now, session.node, sender, what)
                do(session.node, peer.on_message(self.now, sender, what))
        self.now = max(self.now, until)

    def do(self, node: Address, effects: Effects) -> None:
        """Carry out the effects that the node's peer answered with. For callers that ask a peer something themselves,
        such as to publish; link effects mean nothing here, since there are no connections."""
        now = self.now
        sender: Address | None
        for effect in effects:  # by type: isinstance asks the metaclass of structs for every no, which takes 200 ns
            if type(effect) is SetTimer:
                session, sender, what = self._sessions.get(node), None, effect.timer
                time = now + effect.after_s
            elif type(effect) is Send:
                to, sender, what = effect.to, node, effect.message
                self._sent[type(what)][node] += 1
                if self._rough or self._watch_sends:
                    self._send(node, to, what)
                    continue
                session = self._sessions.get(to)
                time = now + self._delay(now, node, to)
            else:
                if type(effect) is Finished:
                    self.crash(node)
                elif type(effect) is Deliver and self._observer is not None:
                    self._observer.delivered(now, node, effect)
                continue
            if session is None:
                continue  # nobody is there to be told
            if time == self._time:  # `_put`, without the cost of a call
                time = self._time
            else:
                self._time = time
            self._order = order = self._order + 1
            heappush(self._queue, (time, order, session, sender, what))

    def _send(self, node: Address, to: Address, message: Any) -> None:
        """Send a message where some are lost or doubled, or where the observer wants to know."""
        copies, arrives = self._copies(node, to) if self._rough else 1, None
        session = self._sessions.get(to)
        while copies:
            copies -= 1
            arrives = self.now + self._delay(self.now, node, to)
            if session is not None:
                self._put(arrives, session, node, message)
        if self._watch_sends and self._observer is not None:
            self._observer.sent(self.now, node, to, message, arrives)

    def _copies(self, node: Address, to: Address) -> int:
        """How many copies of a message arrive: none across a cut or when it is lost, two when it is doubled."""
        groups = self._groups
        if groups is not None and groups.get(node) != groups.get(to):
            return 0
        return 0 if self._random.random() < self._loss else 1 + (self._random.random() < self._duplication)

    def _put(self, time: float, session: _Session | None, sender: Address | None, what: Any) -> None:
        """Put into the queue what is going to happen at this time.

        Equal times are one object where they come together, since the heap then sees at once that they are equal: with
        5,000 peers that act at the same time it is a tenth faster.
        """
        if time == self._time:
            time = self._time
        else:
            self._time = time
        self._order += 1
        heappush(self._queue, (time, self._order, session, sender, what))


def _total(parts: Iterable[Mapping[Address, int]]) -> Counter[Address]:
    """The sum of some counts."""
    total: Counter[Address] = Counter()
    for part in parts:
        total.update(part)
    return total
