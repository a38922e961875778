"""What happened in a run, line by line, and a digest of it: two runs are the same if their digests are.

Lines are for people, and few. The digest also covers every parcel that arrived anywhere, when and how large it was, so
that whatever nodes did differently shows in it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import blake2b

_PARCEL = struct.Struct(">dI")


class Transcript:
    """Written by everybody who takes part in a run. `now` is the loop's time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self.parcels = 0
        self._now = now
        self._hashed = blake2b(digest_size=16)

    def say(self, who: str, what: str) -> None:
        """Somebody did something, or something befell them."""
        line = f"{self._now():10.3f}  {who:8}  {what}"
        self.lines.append(line)
        self._hashed.update(line.encode())

    def on_parcel(self, at: float, sender: str, receiver: str, size: int) -> None:
        """Bytes arrived."""
        self.parcels += 1
        self._hashed.update(_PARCEL.pack(at, size) + f"{sender}{receiver}".encode())

    def digest(self) -> str:
        """32 hexadecimal digits that stand for everything so far."""
        return self._hashed.hexdigest()
