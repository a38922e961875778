"""Knows every publication and every event that was read, and says which promises were broken.

The promises, of a network in which faults have stopped and which had time to heal:

1. *Complete.* An event that was acknowledged to its publisher reaches every named reader that had subscribed before it
   was published, has not unsubscribed since, and whose node is up; or a gap in what that reader is given covers it.
2. *Once.* No event is read twice in one session of a reader, nor reported as lost.
3. *True.* Nothing is read that was not published, in that topic and by that publisher; an event that was acknowledged
   is read under the number that its publisher was told.
4. *In order.* A named reader is given events and gaps of one publisher by rising numbers, in each of its sessions.
5. *Fixed.* One publisher, topic and number stand for one payload, everywhere and always.

An event is acknowledged when `publish` has returned, or has raised `NoPath`: it is on the publisher's disk then.
What was being published when the publisher crashed may exist or not; it must be true and fixed in any case. The oracle
uses nothing that nodes say about themselves but the losses that they report.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from grapevine.net.envelope import Event, Gap

Number = tuple[bytes, str, int]  # publisher, topic, sequence


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    promise: str  # complete, once, true, order, fixed or sound
    text: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.text}"


@dataclass(slots=True)
class Publication:
    """An event that an application wanted to publish; every payload is published once."""

    publisher: str
    topic: str
    payload: bytes
    began_s: float
    outcome: str = "unknown"  # then acknowledged, or refused: nobody is to have it
    number: Number | None = None


@dataclass(slots=True)
class Subscription:
    """A reader that may miss nothing, from when its subscription was acknowledged until it ends."""

    reader: str
    node: str
    topic: str
    since_s: float
    read: set[bytes] = field(default_factory=set)  # payloads
    lost: dict[bytes, list[Gap]] = field(default_factory=dict)  # by publisher: gaps that it was told of


class Oracle:
    """Told by publishers and readers what they do. `violations` grow as they are found; `judge` looks for the rest."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.counts: Counter[str] = Counter()  # published, acknowledged, refused, read
        self._publications: dict[bytes, Publication] = {}
        self._subscriptions: dict[str, Subscription] = {}  # by reader
        self._ids: dict[str, bytes] = {}  # of nodes, by name
        self._payloads: dict[Number, bytes] = {}
        self._sessions: dict[str, tuple[int, set[Number]]] = {}  # of every reader the present one, and what it read
        self._reached: dict[
            tuple[str, bytes], int
        ] = {}  # by named reader and publisher: its last number in this session

    # What publishers tell

    def on_node(self, node: str, peer_id: bytes) -> None:
        """A node is open, with this id; it must always be the same."""
        if self._ids.setdefault(node, peer_id) != peer_id:
            self._broken("true", f"{node} came back as another peer")

    def on_publish(self, node: str, topic: str, payload: bytes, now: float) -> None:
        """An application is about to publish."""
        self.counts["published"] += 1
        self._publications[payload] = Publication(node, topic, payload, now)

    def on_acknowledged(self, payload: bytes, event: Event | None) -> None:
        """The publisher was told that it is kept; `event` says under which number, if it was told that."""
        self.counts["acknowledged"] += 1
        publication = self._publications[payload]
        publication.outcome = "acknowledged"
        if event is not None:
            publication.number = event.publisher.full, event.topic, event.sequence
            self._fix(publication.number, payload)

    def on_refused(self, payload: bytes) -> None:
        """The publisher was told that it could not be kept."""
        self.counts["refused"] += 1
        self._publications[payload].outcome = "refused"

    # What readers tell

    def on_subscribed(self, reader: str, node: str, topic: str, now: float) -> None:
        """A reader's subscription is on the disk; also told when it was before."""
        self._subscriptions.setdefault(reader, Subscription(reader, node, topic, now))

    def on_unsubscribe(self, reader: str) -> None:
        """A reader no longer wants its topic; told before its node is."""
        self._subscriptions.pop(reader, None)

    def on_session(self, reader: str) -> None:
        """A reader begins, or begins again after its node or itself stopped."""
        number, _ = self._sessions.get(reader, (0, set()))
        self._sessions[reader] = number + 1, set()
        for key in [key for key in self._reached if key[0] == reader]:
            del self._reached[key]

    def on_given(self, reader: str, item: Event | Gap) -> None:
        """A named reader was given an event or a gap, in this order."""
        first, last = (item.sequence, item.sequence) if isinstance(item, Event) else (item.first, item.last)
        key = reader, item.publisher.full
        if isinstance(item, Event):
            self.on_read(reader, item)
        else:
            self.counts["reported lost"] += last - first + 1
            if (subscription := self._subscriptions.get(reader)) is not None:
                subscription.lost.setdefault(item.publisher.full, []).append(item)
        if first <= self._reached.get(key, 0):
            text = f"{reader} was given {first} of {item.publisher.short} after {self._reached[key]}"
            self._broken("order", text)
        self._reached[key] = max(last, self._reached.get(key, 0))

    def on_read(self, reader: str, event: Event) -> None:
        """A reader was given an event."""
        self.counts["read"] += 1
        number = event.publisher.full, event.topic, event.sequence
        session, read = self._sessions[reader]
        if number in read:
            self._broken("once", f"{reader} was given {_named(event)} twice in its session {session}")
        read.add(number)
        self._fix(number, event.payload)
        self._check_truth(reader, event, number)
        subscription = self._subscriptions.get(reader)
        if subscription is not None:
            subscription.read.add(event.payload)

    def _check_truth(self, reader: str, event: Event, number: Number) -> None:
        publication = self._publications.get(event.payload)
        if publication is None:
            self._broken("true", f"{reader} was given {_named(event)}, which nobody published")
        elif (publication.topic, self._ids[publication.publisher]) != (event.topic, event.publisher.full):
            self._broken("true", f"{reader} was given {_named(event)}, which another published, or elsewhere")
        elif publication.outcome == "refused":
            self._broken("true", f"{reader} was given {_named(event)}, which its publisher was told is not kept")
        elif publication.number not in (None, number):
            self._broken("true", f"{reader} was given {_named(event)} under another number than its publisher")

    def _fix(self, number: Number, payload: bytes) -> None:
        before = self._payloads.setdefault(number, payload)
        if before != payload:
            self._broken("fixed", f"number {number[2]} in {number[1]} stands for {before!r} and {payload!r}")

    # The judgement

    def missing(self, up: set[str]) -> list[tuple[Subscription, Publication]]:
        """What readers on these nodes should have, and have not yet."""
        acknowledged: dict[str, list[Publication]] = {}
        for one in self._publications.values():
            if one.outcome == "acknowledged":
                acknowledged.setdefault(one.topic, []).append(one)
        return [
            (subscription, publication)
            for subscription in self._subscriptions.values()
            if subscription.node in up
            for publication in acknowledged.get(subscription.topic, ())
            if publication.began_s > subscription.since_s and publication.payload not in subscription.read
        ]

    def unreported(self, up: set[str]) -> list[tuple[Subscription, Publication]]:
        """What is missing there, and no gap covers."""
        missing = self.missing(up)
        if not missing:
            return []
        numbers = {payload: number for number, payload in self._payloads.items()}
        return [pair for pair in missing if not self._is_reported(*pair, numbers)]

    def judge(self, up: set[str]) -> int:
        """Find what is missing for good, and was not reported; how many were reported."""
        lost = self.unreported(up)
        reported = len(self.missing(up)) - len(lost)
        for subscription, publication in lost:
            told = f", number {publication.number[2]}" if publication.number else ""
            self._broken(
                "complete",
                f"{subscription.reader} never got {publication.payload.decode()} of {publication.publisher}"
                f" in {publication.topic}{told}, which was published at {publication.began_s:.3f} s",
            )
        return reported

    def _is_reported(self, subscription: Subscription, publication: Publication, numbers: dict[bytes, Number]) -> bool:
        """Whether a gap covers it; if its number is unknown (`NoPath`, and nobody read it), whether there is one."""
        number = publication.number or numbers.get(publication.payload)
        gaps = subscription.lost.get(self._ids[publication.publisher], [])
        return bool(gaps) if number is None else any(gap.first <= number[2] <= gap.last for gap in gaps)

    def blame(self, promise: str, text: str) -> None:
        """Something else went wrong that must not, whatever befalls a node."""
        self._broken(promise, text)

    def _broken(self, promise: str, text: str) -> None:
        self.violations.append(Violation(promise, text))


def _named(event: Event) -> str:
    return f"{event.payload!r} (number {event.sequence} of {event.publisher.short} in {event.topic})"
