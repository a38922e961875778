"""A node's links: at most k, agreed by both ends, with no exception at any instant.

Theory. A link takes a **slot** at both ends, and a node has k slots. p asks q (`Connect`); q takes a slot and answers
(`Accept`: it *holds* the link); p takes a slot, and for p the link is *open*; with p's first `Update` it is open for q.
Whoever wants no more *closes* it (`Disconnect`) and frees its slot when the other has confirmed that it counts the link
no more. Where a slot has to be made free first, the old link is closed, and its confirmation awaited, before `Accept`
is sent or the link opened. Nobody counts a link as its own that the other end has no slot for:

    **Bound.** If a link is open at p, then p and q, while q is there, have a slot for it. So the neighbours of p, those
    that count p as theirs included, are never more than k.

The case that needs an argument is silence, since the other end may be gone, or may think that we are. Messages carry
the sender's clock (`stamp`) and the last stamp that came from the other end (`echo`).

1. A link is open at p until `echoed + silence_s`, where `echoed` is p's stamp in the last echo that came: when p sent
   the latest message of which it knows that q got it.
2. A slot of q stays taken until `heard + silence_s`, where `heard` is when q last got a message of this link and took
   notice, unless p confirmed the end before. While q closes a link it takes notice, and echoes, no more.
3. Every stamp that q has echoed came at `heard` at the latest, so it was sent before: echoed(p) <= heard(q). Hence p's
   link is over when q's slot is free. That needs clocks that run equally fast; delay, loss, doubling and order do not
   matter. A node that has crashed has no open links. One that is back before others noticed answers with `Disconnect`;
   until then their links to its last session are beyond the bound of the new one.

Requests of both ends at once: that of the lower address stands. Who confirms that it does not count a link takes back
its request as well, whose `Accept` may have been overtaken. An `Accept` that is too late, or of a link that was
given up, is answered with `Disconnect`. Numbers of links are drawn at random by who accepts, so that nothing from an
earlier link, or session, passes for one of the present.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.trellis.peer.channel import Incoming, Outgoing
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import (
    Accept,
    Carry,
    Connect,
    Disconnect,
    Disconnected,
    Fact,
    Update,
)

HELD, OPEN, CLOSING = "held", "open", "closing"
MOST_REQUESTS = 8  # of this node's own that are not answered
MOST_WAITING = 8  # requests of others that wait for a slot


class Link:
    """A slot that is taken."""

    def __init__(self, state: str, number: int, nonce: int, now: float, most: dict[type[Fact], int]) -> None:
        self.state, self.number, self.nonce = state, number, nonce
        self.since = self.heard = self.echoed = now
        self.sent = self.repeated = -1e9  # when the last update, and the last one with facts, left
        self.stamp = 0  # the last that came
        self.version = 0  # of the other's card
        self.value = 0.0  # what it is worth
        self.outgoing, self.incoming = Outgoing(), Incoming(most)


class Request:
    """A link that this node has asked for, from `Connect` until it is open or given up."""

    def __init__(self, message: Connect, now: float) -> None:
        self.message, self.asked = message, now
        self.accepted: Accept | None = None  # and waits for a slot


class Links:
    """The slots of one node. `send` takes messages; `opened` and `closed` are told when neighbours come and go."""

    def __init__(
        self,
        me: Address,
        config: TrellisPeerConfig,
        random: Random,
        send: Callable[[Address, Message], None],
        opened: Callable[[float, Address], None],
        closed: Callable[[float, Address, bool], None],
    ) -> None:
        self._me, self._config, self._random = me, config, random
        self._send, self._opened, self._closed = send, opened, closed
        self._most: dict[type[Fact], int] = {Fact: config.most_topics, Carry: config.most_relays}
        self._started = 0.0
        self.neighbours: tuple[Address, ...] = ()  # the other ends of open links
        self.slots: dict[Address, Link] = {}
        self.requests: dict[Address, Request] = {}
        self._waiting: dict[Address, tuple[Connect, float]] = {}  # others' requests that wait for a slot

    def start(self, now: float) -> None:
        """The session begins: stamps count from now."""
        self._started = now

    def stamp(self, now: float) -> int:
        """The clock of this session in ms."""
        return int((now - self._started) * 1e3)

    def get(self, node: Address) -> Link | None:
        """The open link to a node; None if there is none."""
        link = self.slots.get(node)
        return link if link is not None and link.state == OPEN else None

    @property
    def has_room(self) -> bool:
        """Whether a slot is free that nobody waits for."""
        taking = sum(request.accepted is not None for request in self.requests.values())
        return len(self.slots) + len(self._waiting) + taking < self._config.most_links

    def concerns(self, node: Address) -> bool:
        """Whether there is a link to the node, or one is being made or ended."""
        return node in self.slots or node in self.requests or node in self._waiting

    # How a link begins

    def ask(self, now: float, node: Address, request: Connect) -> None:
        """Ask a node for a link; nothing happens if that is going on, or too many questions are."""
        if not self.concerns(node) and node != self._me and len(self.requests) < MOST_REQUESTS:
            self.requests[node] = Request(request, now)
            self._send(node, request)

    def may_answer(self, now: float, sender: Address, request: Connect) -> bool:
        """A request came; whether it has to be judged. If not, it was dealt with."""
        link, own = self.slots.get(sender), self.requests.get(sender)
        if link is not None:
            if link.state == HELD and link.nonce == request.nonce:
                self._accept(now, sender, link, request)  # once more: the answer may have been lost
            elif link.state != CLOSING and link.nonce != request.nonce and now > link.since + self._config.answer_s:
                self.close(now, sender)  # the other end has begun anew; a younger link has overtaken the request
            return False
        if sender in self._waiting or len(self._waiting) >= MOST_WAITING or sender == self._me:
            return False
        if own is not None:
            if own.accepted is not None or self._me < sender:
                return False
            del self.requests[sender]
        return True

    def accept(self, now: float, sender: Address, request: Connect, victim: Address | None) -> None:
        """Agree to a link. Where no slot is free, the link to `victim` is closed, and the answer waits for that."""
        self._waiting[sender] = request, now
        self._make_room(now, victim)

    def take_accept(self, now: float, sender: Address, message: Accept, victim: Callable[[], Address | None]) -> None:
        """An answer came: the link is open when a slot is free; `victim` says which link makes room if need be."""
        request = self.requests.get(sender)
        if request is None or request.message.nonce != message.nonce or sender in self.slots:
            link = self.slots.get(sender)
            if link is None or link.number != message.link:
                self._send(sender, Disconnect(message.link))
            return
        if request.accepted is not None:
            return
        if not self.has_room and (leaving := victim()) is None:
            del self.requests[sender]
            self._send(sender, Disconnect(message.link))
            return
        had_room, request.accepted = self.has_room, message
        self._make_room(now, None if had_room else leaving)

    def refused(self, sender: Address, nonce: int) -> bool:
        """A request was refused; False if that is no answer to one of this node's."""
        request = self.requests.get(sender)
        if request is None or request.message.nonce != nonce or request.accepted is not None:
            return False
        del self.requests[sender]
        return True

    def _make_room(self, now: float, victim: Address | None) -> None:
        if victim is not None and len(self.slots) >= self._config.most_links:
            self.close(now, victim)
        self._fill(now)

    def _fill(self, now: float) -> None:
        """Give free slots to those who wait: first to this node's own links, whose other ends hold theirs already."""
        free = self._config.most_links - len(self.slots)
        for node, request in list(self.requests.items()):
            if free > 0 and request.accepted is not None:
                del self.requests[node]
                free -= 1
                self._open_own(now, node, request, request.accepted)
        for node, (connect, _) in list(self._waiting.items()):
            if free > 0:
                del self._waiting[node]
                free -= 1
                link = self.slots[node] = Link(HELD, self._random.getrandbits(63), connect.nonce, now, self._most)
                self._accept(now, node, link, connect)

    def _accept(self, now: float, node: Address, link: Link, request: Connect) -> None:
        link.heard, link.stamp = now, request.stamp
        self._send(node, Accept(request.nonce, link.number, self.stamp(now), request.stamp))

    def _open_own(self, now: float, node: Address, request: Request, accepted: Accept) -> None:
        link = self.slots[node] = Link(OPEN, accepted.link, accepted.nonce, now, self._most)
        link.echoed, link.stamp = request.asked, accepted.stamp
        self.neighbours = (*self.neighbours, node)
        self._opened(now, node)

    # How it goes on

    def hear(self, now: float, sender: Address, update: Update) -> Link | None:
        """An update came; the link that it belongs to, if that is open. To any other it is said that there is none."""
        link = self.slots.get(sender)
        if link is None or link.number != update.link or link.state == CLOSING:
            self._send(sender, Disconnect(update.link))
            return None
        stamp = self.stamp(now)
        if link.state == HELD:
            link.state, link.since = OPEN, now
            self.neighbours = (*self.neighbours, sender)
            self._opened(now, sender)
        link.heard, link.stamp, link.version = now, max(link.stamp, update.stamp), update.version
        if update.echo <= stamp:
            link.echoed = max(link.echoed, self._started + update.echo / 1e3)
        return link

    # How it ends

    def close(self, now: float, node: Address) -> None:
        """End a link, if there is one that does not end already."""
        link = self.slots.get(node)
        if link is not None and link.state != CLOSING:
            self._end(now, node, link, silent=False)
            link.repeated = now
            self._send(node, Disconnect(link.number))

    def _end(self, now: float, node: Address, link: Link, *, silent: bool) -> None:
        was_open, link.state = link.state == OPEN, CLOSING
        if was_open:
            self.neighbours = tuple(other for other in self.neighbours if other != node)
            self._closed(now, node, silent)

    def take_disconnect(self, now: float, sender: Address, number: int) -> None:
        """The other end closes the link of this number, or does not know it."""
        link = self.slots.get(sender)
        if link is not None and link.number == number:
            self._end(now, sender, link, silent=False)
            self._free(now, sender)
        request = self.requests.get(sender)
        if request is not None and (request.accepted is None or request.accepted.link == number):
            del self.requests[sender]  # an `Accept` of this link may still be on its way
        self._send(sender, Disconnected(number))

    def take_disconnected(self, now: float, sender: Address, number: int) -> None:
        """The other end counts the link no more."""
        link = self.slots.get(sender)
        if link is not None and link.number == number and link.state == CLOSING:
            self._free(now, sender)

    def lose(self, now: float, node: Address) -> None:
        """The connection broke: the link is over, but the other end may not know yet: the slot stays taken."""
        link = self.slots.get(node)
        if link is not None and link.state != CLOSING:
            self._end(now, node, link, silent=True)
            link.repeated = now
        self.requests.pop(node, None)
        self._waiting.pop(node, None)

    def _free(self, now: float, node: Address) -> None:
        del self.slots[node]
        self._fill(now)

    # Time

    def expire(self, now: float) -> list[Address]:
        """End what was silent for too long; returns whom this node had asked in vain."""
        config, vain = self._config, []
        for node, link in list(self.slots.items()):
            if now >= link.heard + config.silence_s:
                self._end(now, node, link, silent=True)
                self._free(now, node)
            elif link.state == OPEN and now >= link.echoed + config.silence_s:
                self._end(now, node, link, silent=True)
            if link.state == CLOSING and node in self.slots and now >= link.repeated + config.answer_s / 3:
                link.repeated = now
                self._send(node, Disconnect(link.number))
        for node, request in list(self.requests.items()):
            patience = config.answer_s if request.accepted is None else config.silence_s
            if now >= request.asked + patience:
                del self.requests[node]
                vain += [node] if request.accepted is None else []
        self._waiting = {n: held for n, held in self._waiting.items() if now < held[1] + config.answer_s}
        return vain

    def due(self, now: float) -> float:
        """When `expire` has something to do next."""
        config = self._config
        times = [now + config.silence_s]
        for link in self.slots.values():
            closing = link.repeated + config.answer_s / 3 if link.state == CLOSING else link.echoed + config.silence_s
            times.append(min(closing, link.heard + config.silence_s))
        times += [request.asked + config.answer_s for request in self.requests.values()]
        return max(now + 0.01, min(times))
