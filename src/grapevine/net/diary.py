"""A node's diary: what it did and saw, a line of JSON each, so that a live network can be measured as a simulated one.

    diary = Diary(folder, node=address)              # appends to folder/<16 hex digits>.jsonl
    diary.session("vitis", {"table_size": 15})
    diary.received(topic, publisher, 7, sender, wanted=True, again=False)
    diary.flush()                                    # the host does so every second
    diary.end()
    diary.close()

Lines are gathered in memory and written by `flush` in one call, so that no event waits for the disk; a crash loses what
came since. Whoever is killed while writing leaves half a line: the next session begins on a new one, and
`grapevine collect` rejects the half. Topics and addresses have 64 bits, more than a number in JSON is sure to keep, and
are written in hexadecimal. `time` is in microseconds since the epoch, by the clock of the node's machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.surroundings import wall_clock_us
from grapevine.systems.contracts.peer import Address

SUFFIX = ".jsonl"
MOST_WAITING = 8 << 20  # bytes that are kept while the disk is full


class DiaryError(GrapevineError):
    """The disk is full, or broken. A node can go on without its diary."""


def as_hex(number: int) -> str:
    """An address or a topic as the diary writes it."""
    return f"{number:016x}"


class Diary:
    """The diary of one node, over all its sessions. `flush`, `end` and `close` touch the disk; nothing else does."""

    def __init__(self, folder: Path, node: Address, *, clock_us: Callable[[], int] = wall_clock_us) -> None:
        self.path = folder / f"{as_hex(node)}{SUFFIX}"
        self.lost = 0  # records that found no room while the disk was full
        self._node, self._clock_us = node, clock_us
        self._encode = msgspec.json.Encoder().encode
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._waiting = bytearray(b"" if _ends_well(self._file) else b"\n")
        except OSError as error:
            raise UsageError(f"{self.path}: no diary can be kept there ({error.strerror}); choose another") from None

    def session(self, system: str, config: Mapping[str, Any]) -> None:
        """The node has started, as a peer of this system."""
        self._note("session", node=as_hex(self._node), system=system, config=dict(config))

    def leaving(self) -> None:
        """It begins to leave: whoever is told drops it, and it drops whom it tells. `end` follows in good order."""
        self._note("leaving")

    def end(self) -> None:
        """It stops in good order; there is no such line after a crash."""
        self._note("end")
        self.flush()

    def subscribed(self, topic: int, name: str | None = None) -> None:
        """The application wants a topic, until it says otherwise: also in the sessions after this one."""
        self._subscription("subscribed", topic, name)

    def unsubscribed(self, topic: int, name: str | None = None) -> None:
        """The application no longer wants the topic."""
        self._subscription("unsubscribed", topic, name)

    def _subscription(self, what: str, topic: int, name: str | None) -> None:
        self._note(what, topic=as_hex(topic), **{} if name is None else {"name": name})

    def published(self, topic: int, publisher: Address, sequence: int, asked_us: int) -> None:
        """The node has published an event of its own; the record's time is when the application asked for that."""
        event = {"topic": as_hex(topic), "publisher": as_hex(publisher), "sequence": sequence}
        self._note("published", time=asked_us, **event)

    def received(
        self, topic: int, publisher: Address, sequence: int, sender: Address, *, wanted: bool, again: bool
    ) -> None:
        """A copy of an event came: `wanted` by a subscriber, `again` to somebody who had it, as its publisher has."""
        self._note(
            "received",
            topic=as_hex(topic),
            publisher=as_hex(publisher),
            sequence=sequence,
            sender=as_hex(sender),
            wanted=wanted,
            again=again,
        )

    def delivered(self, topic: int, publisher: Address, sequence: int, sender: Address, *, pulled: bool) -> None:
        """The application has an event; `pulled`: it was asked for, because it had been missed."""
        self._note(
            "delivered",
            topic=as_hex(topic),
            publisher=as_hex(publisher),
            sequence=sequence,
            sender=as_hex(sender),
            pulled=pulled,
        )

    def links(self, links: Iterable[tuple[Address, str]], neighbours: int) -> None:
        """Whom the node has chosen now, and what for (`kind` of the table `links`); all neighbours, both ways."""
        self._note("links", links=[[as_hex(other), kind] for other, kind in links], neighbours=neighbours)

    def traffic(
        self, sent: Mapping[str, int], *, messages_in: int, messages_out: int, bytes_in: int, bytes_out: int
    ) -> None:
        """What came and went since the last such line; `sent` counts messages by kind."""
        self._note(
            "traffic",
            sent=dict(sent),
            messages_in=messages_in,
            messages_out=messages_out,
            bytes_in=bytes_in,
            bytes_out=bytes_out,
        )

    def flush(self) -> None:
        """Write what has come together. After a failure it is kept, as far as there is room, and written later."""
        if self._file is None:
            raise UsageError(f"{self.path}: the diary is closed; open it again")
        while self._waiting:
            try:
                del self._waiting[: os.write(self._file, self._waiting)]
            except OSError as error:
                raise DiaryError(f"{self.path}: cannot be written ({error.strerror})") from None
            if self.lost and not self._waiting:
                self._note("lost", records=self.lost)
                self.lost = 0

    def close(self) -> None:
        """Write the rest, and let go of the file."""
        if self._file is None:
            return
        try:
            self.flush()
        finally:
            os.close(self._file)
            self._file = None

    def _note(self, what: str, **fields: Any) -> None:
        if len(self._waiting) > MOST_WAITING:
            self.lost += 1
            return
        if "time" not in fields:
            fields = {"time": self._clock_us(), **fields}
        self._waiting += self._encode({"what": what, **fields})
        self._waiting += b"\n"


def _ends_well(file: int) -> bool:
    """Whether a new line begins at the end of the file; not after a line that was cut off."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"
