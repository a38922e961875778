"""Equivocation: a publisher signed two statements of which one must be false. What counts as evidence of it.

Either two different events under one number of one stream, or an event and its successor that names another one as the
event before (`stamp`). Both are signed by the publisher, so that anybody can check the evidence, and nobody can make
it up. It says that the publisher lies, or that two programs publish with one key: a copied folder that runs beside the
original, or one that was restored in a way that nobody noticed (`epochs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grapevine.model.errors import PeerError
from grapevine.model.identity import SEAL_BYTES, SignedEvent
from grapevine.net.stamp import SHORTEST_BYTES, SOURCE_BYTES, fingerprint, source_of, stamp_of
from grapevine.net.stored_event import LAST_SEQUENCE, StoredEvent


@dataclass(frozen=True, slots=True)
class Equivocation:
    """The evidence: two events of one stream, as they travel, the earlier number first."""

    source: bytes
    topic: int
    first: int  # sequence
    first_envelope: bytes
    second: int  # the same sequence, or the next
    second_envelope: bytes

    def check(self) -> None:
        """PeerError unless it proves what it says. Called with whatever others send."""
        if len(self.source) != SOURCE_BYTES or not (0 <= self.topic < 2**64 and 1 <= self.first <= LAST_SEQUENCE):
            raise PeerError("evidence came that is about no stream")
        contents = [
            _checked(self.source, self.topic, sequence, envelope)
            for sequence, envelope in ((self.first, self.first_envelope), (self.second, self.second_envelope))
        ]
        if not contradict(self.first, contents[0], self.second, contents[1]):
            raise PeerError(f"evidence came about events {self.first} and {self.second}, which do not contradict")


def _checked(source: bytes, topic: int, sequence: int, envelope: bytes) -> bytes:
    """What an envelope holds, signed by this source."""
    seal, content = envelope[:SEAL_BYTES], envelope[SEAL_BYTES:]
    if len(content) < SHORTEST_BYTES:
        raise PeerError(f"evidence came with an envelope of {len(envelope)} bytes, which is none")
    publisher = SignedEvent.unseal(topic, sequence, content, seal).check()
    if source_of(publisher, stamp_of(content).epoch) != source:
        raise PeerError("evidence came whose events are of another source than it says")
    return content


def contradict(first: int, first_content: bytes, second: int, second_content: bytes) -> bool:
    """Whether two events of one stream cannot both be what its publisher published."""
    if first == second:
        return first_content != second_content
    before = stamp_of(second_content).before
    return second == first + 1 and before is not None and before != fingerprint(first, first_content)


def first_contradiction(event: StoredEvent, others: Iterable[StoredEvent]) -> Equivocation | None:
    """The evidence that one of these, of the same stream, is against the event; None if all fit."""
    for other in others:
        one, two = sorted((event, other), key=lambda which: which.sequence)
        if contradict(one.sequence, one.payload, two.sequence, two.payload):
            return Equivocation(event.source, event.topic, one.sequence, one.envelope, two.sequence, two.envelope)
    return None
