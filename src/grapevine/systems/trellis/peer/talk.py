"""What neighbours say to each other: updates with what changed, confirmations, and signs of life when nothing did."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from grapevine.systems.contracts.peer import Address, Message
from grapevine.systems.trellis.peer.channel import Key, Nodes
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.links import Link, Links
from grapevine.systems.trellis.peer.lookahead import Lookahead
from grapevine.systems.trellis.peer.messages import AnyFact, Update
from grapevine.systems.trellis.peer.topics import Topics

_TOGETHER = 0.75  # of a heartbeat: who is due by then gets a sign of life with the others, on one alarm


class Talk:
    """The updates of one node, both ways."""

    def __init__(
        self,
        config: TrellisPeerConfig,
        links: Links,
        topics: Topics,
        lookahead: Lookahead,
        send: Callable[[Address, Message], None],
    ) -> None:
        self._config, self._links, self._topics, self._lookahead = config, links, topics, lookahead
        self._send = send
        self.version = 0  # of this node's card
        self.is_busy = True  # something happened after which an alarm may be due earlier
        self._is_seen = True  # how neighbours are linked is as it was when it was looked at
        self.excesses = 0  # facts that neighbours told beyond what a node listens to

    @property
    def _repeat_s(self) -> float:
        return self._config.answer_s / 3

    def on_update(self, now: float, sender: Address, update: Update) -> None:
        """A neighbour says what has changed, or that it is there."""
        if not update.is_sound():
            return
        link = self._links.hear(now, sender, update)
        if link is None:
            return
        if not update.serial and link.outgoing.unconfirmed is None:
            return  # a sign of life, as nearly all updates are
        self.is_busy = True
        link.outgoing.confirm(update.ack)
        before, excesses = link.incoming.links, link.incoming.excesses
        changed = link.incoming.take(update)
        self.excesses += link.incoming.excesses - excesses
        self._is_seen &= link.incoming.links == before
        if changed:
            self._topics.hear(sender, link.incoming.facts, changed)
        if update.serial and not self._flush(now, sender, link):
            self._tell(now, sender, link)  # nothing to say but that it came

    def lose(self) -> None:
        """A link has ended."""
        self._is_seen = False

    def greet(self, now: float, node: Address) -> None:
        """A link is open: the first update says so to the other end."""
        self._is_seen = False
        link = self._links.get(node)
        if link is not None and not self._flush(now, node, link):
            self._tell(now, node, link)

    def look(self) -> None:
        """Take the links and theirs into account from now on, when a topic's id is looked up."""
        if self._is_seen:
            return
        self._is_seen = True
        slots = self._links.slots
        if self._lookahead.look({node: slots[node].incoming.links for node in self._links.neighbours}):
            self._topics.reroute()

    def _flush(self, now: float, node: Address, link: Link) -> bool:
        """Send what has changed, if it is time for that; whether something was sent."""
        if link.outgoing.unconfirmed is not None or now < link.repeated + self._config.gap_s:
            return False
        desired: Callable[[Key], AnyFact | None] = partial(self._topics.desired, node)
        if not link.outgoing.next(desired, self._links.neighbours):
            return False
        self._repeat(now, node, link)
        return True

    def _repeat(self, now: float, node: Address, link: Link) -> None:
        """Send the facts that are not confirmed."""
        link.repeated = now
        if link.outgoing.unconfirmed is not None:
            self._tell(now, node, link, link.outgoing.serial, *link.outgoing.unconfirmed)

    def _tell(
        self,
        now: float,
        node: Address,
        link: Link,
        serial: int = 0,
        facts: tuple[AnyFact, ...] = (),
        links: Nodes | None = None,
    ) -> None:
        head = link.number, self._links.stamp(now), link.stamp, serial, link.incoming.serial, self.version
        link.sent = now
        self._send(node, Update(*head, facts, links))

    def flush(self, now: float) -> None:
        """Whatever is due: changes, repetitions, signs of life."""
        self.look()
        self._topics.work(now)
        for node in self._links.neighbours:
            link = self._links.slots[node]
            if self._flush(now, node, link):
                continue
            if link.outgoing.unconfirmed is not None and now >= link.repeated + self._repeat_s:
                self._repeat(now, node, link)
            elif now >= link.sent + _TOGETHER * self._config.heartbeat_s:
                self._tell(now, node, link)

    def due(self, now: float) -> float:
        """When `flush` has something to do next."""
        times, known = [now + self._config.heartbeat_s], self._links.neighbours
        for node in known:
            link = self._links.slots[node]
            times.append(link.sent + self._config.heartbeat_s)
            if link.outgoing.unconfirmed is not None:
                times.append(link.repeated + self._repeat_s)
            elif link.outgoing.has_news(known):
                times.append(link.repeated + self._config.gap_s)
        return min(times)
