"""What a node sends and receives, counted by its connections and read by `stats` and the diary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Traffic:
    """Totals since the node started, both ways. Bytes are those of frames, before encryption."""

    sent: Counter[str] = field(default_factory=Counter)  # messages, by kind
    received: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0

    def copy(self) -> Traffic:
        """The totals as they are now, to compare later ones with."""
        return Traffic(self.sent.copy(), self.received.copy(), self.bytes_in, self.bytes_out)

    def since(self, before: Traffic) -> dict[str, Any]:
        """What came and went since an earlier copy, as a line of the diary has it (`Diary.traffic`)."""
        sent = self.sent - before.sent
        return {
            "sent": sent,
            "messages_out": sent.total(),
            "messages_in": self.received.total() - before.received.total(),
            "bytes_in": self.bytes_in - before.bytes_in,
            "bytes_out": self.bytes_out - before.bytes_out,
        }
