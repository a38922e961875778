"""An event as a node keeps it, and as it passes it on."""

from __future__ import annotations

from dataclasses import dataclass, field

from grapevine.model.errors import UsageError
from grapevine.model.identity import PeerId
from grapevine.net.stamp import epoch_of, overlay_number, source_of, stamp_of

LAST_SEQUENCE = 2**63 - 1
EVENT_OVERHEAD = 128  # bytes on disk beside payload and signature: some 90 for small events, 300 for those of 1 kB


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is kept. The time is that of our own clock when it came: retention goes by it."""

    publisher: PeerId
    topic: int  # its id
    sequence: int  # of this publisher in this topic and epoch, from 1
    time_ms: int  # when it came, by our clock
    payload: bytes  # the stamp and the application's payload (`stamp`)
    signature: bytes  # the publisher's key and signature
    arrival: int = field(default=0, compare=False)  # its number in the order of arrival here; 0 until it is kept

    def __post_init__(self) -> None:
        if not (0 <= self.topic < 2**64 and 1 <= self.sequence <= LAST_SEQUENCE and abs(self.time_ms) < 2**63):
            raise UsageError(
                f"event {self.sequence} of topic {self.topic} at {self.time_ms} ms cannot be stored;"
                " topics have 64 bits, sequences and times 63, and sequences start at 1"
            )

    @property
    def epoch(self) -> int:
        """In which of its publisher's epochs it was published."""
        return epoch_of(self.payload)

    @property
    def before(self) -> bytes | None:
        """The fingerprint of the event before, as its publisher says; None: it says nothing."""
        return stamp_of(self.payload).before

    @property
    def source(self) -> bytes:
        """Its publisher, in this epoch: who numbered it (`stamp`)."""
        return source_of(self.publisher, self.epoch)

    @property
    def number(self) -> int:
        """Under which overlays and diaries know it."""
        return overlay_number(self.epoch, self.sequence)

    @property
    def size(self) -> int:
        """Bytes that it counts against `topic_bytes` and `total_bytes`."""
        return len(self.payload) + len(self.signature) + EVENT_OVERHEAD

    @property
    def envelope(self) -> bytes:
        """What peers carry as its payload: the seal, and what it covers."""
        return self.signature + self.payload
