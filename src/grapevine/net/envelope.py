"""An event as it travels and is kept: what peers carry as its payload, sealed by its publisher.

Envelope = the publisher's public key and signature (the seal), its stamp (`stamp`: time, epoch, the event before), the
application's payload. The signature covers topic, sequence, stamp and payload, so none of them can be changed on the
way, and every node checks it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from grapevine.model.errors import PeerError
from grapevine.model.identity import SEAL_BYTES, PeerId, SignedEvent
from grapevine.net.stamp import SHORTEST_BYTES, stamp_of
from grapevine.net.stored_event import StoredEvent

ENVELOPE_BYTES = SEAL_BYTES + SHORTEST_BYTES  # at least, beside the payload


@dataclass(frozen=True, slots=True)
class Event:
    """What an application gets from an inbox, or back from `publish`. It cannot be changed."""

    topic: str  # as the application calls it
    publisher: PeerId  # who signed it; checked at every hop
    sequence: int  # of this publisher in this topic and epoch, from 1
    time: float  # when it was published, in seconds since 1970 by the publisher's clock
    payload: bytes
    epoch: int = 0  # of the publisher: another one begins when its folder was restored, or not left in good order

    @property
    def id(self) -> str:
        """What tells it apart from every other event, for whoever wants to handle each once: publisher, sequence, the
        epoch unless it is 0, and topic."""
        epoch = f".{self.epoch:x}" if self.epoch else ""
        return f"{self.publisher}/{self.sequence}{epoch}/{self.topic}"


Loss = Literal["retention", "evicted", "given up", "late"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that a reader was owed and will not get, in the place where they would have come (`reader`).

    Reasons: `retention`: this node removed them because of their age before they were read, `evicted`: for room;
    `given up`: no neighbour that was asked had them, or they are longer than this node takes (`payload_bytes`); `late`:
    they did not come within `order_s`, while later ones of their publisher waited.
    """

    topic: str
    publisher: PeerId
    first: int  # sequence of the first
    last: int  # and of the last of them
    reason: Loss
    epoch: int = 0  # of the publisher, as that of an event


def published_ms(kept: StoredEvent) -> int:
    """When it was published, in ms since 1970 by the publisher's clock, which may be wrong."""
    return stamp_of(kept.payload).time_ms


def opened(name: str, kept: StoredEvent) -> Event:
    """A kept event as the application gets it, which knows the topic by this name."""
    stamp = stamp_of(kept.payload)
    payload = kept.payload[stamp.size :]
    return Event(name, kept.publisher, kept.sequence, stamp.time_ms / 1e3, payload, stamp.epoch)


class Seals:
    """Checks envelopes. A copy of one that was checked a moment ago is compared with it, not checked again."""

    def __init__(self, remembered: int = 10_000) -> None:
        self.copies = 0  # of what was checked a moment ago
        self._remembered = remembered
        self._checked: OrderedDict[bytes, PeerId] = OrderedDict()

    def check(self, topic: int, sequence: int, envelope: bytes, now_ms: int) -> StoredEvent:
        """The event that an envelope holds, for a store; PeerError if it is not what its publisher signed.

        Called for every copy of every event that comes. `now_ms` is when it came, by our clock: retention goes by it.
        """
        seal, content = envelope[:SEAL_BYTES], envelope[SEAL_BYTES:]
        if len(content) < SHORTEST_BYTES:
            raise PeerError(f"an envelope of {len(envelope)} bytes came; the shortest has {ENVELOPE_BYTES}")
        if not (0 <= topic < 2**64 and 1 <= sequence < 2**63 and stamp_of(content).is_sound):
            raise PeerError(f"event {sequence} of topic {topic} came; sequences start at 1, topics have 64 bits")
        digest = blake2b(b"%d %d " % (topic, sequence) + envelope, digest_size=16).digest()
        publisher = self._checked.get(digest)
        self.copies += publisher is not None
        if publisher is None:
            publisher = SignedEvent.unseal(topic, sequence, content, seal).check()
            self._checked[digest] = publisher
            if len(self._checked) > self._remembered:
                self._checked.popitem(last=False)
        return StoredEvent(publisher, topic, sequence, now_ms, content, seal)
