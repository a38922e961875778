"""How fast a node is for programs on its machine, through its control server: what `grapevine bench` prints.

One thread reads the topic, others publish. Every payload begins with when it was published, by a clock that both have.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.net.remote import Remote

STAMP_BYTES = 8
_PATIENCE_S = 60.0  # for the next event


@dataclass(slots=True)
class Measured:
    """What was published and read."""

    messages: int
    size: int
    publishers: int
    published_s: float = 0.0  # from the first publication to the last answer
    read_s: float = 0.0  # from the first publication to the last event
    delays_s: list[float] = field(default_factory=list)  # from publishing to reading, ascending

    def delay_s(self, share: float) -> float:
        """The delay that this share of the events does not exceed."""
        return self.delays_s[min(int(share * len(self.delays_s)), len(self.delays_s) - 1)]


def measure(remote: Remote, topic: str, measured: Measured) -> Measured:
    """Publish and read in a topic that nobody else publishes in. GrapevineError if events do not come.

    Events are on the node's disk before they are read, and stay there until retention takes them.
    """
    if measured.size < STAMP_BYTES:
        raise UsageError(f"--size {measured.size}: needs at least {STAMP_BYTES} bytes, for the time")
    stream = remote.subscribe([topic])
    with closing(stream):
        next(stream)  # it is subscribed
        began = time.perf_counter()
        reader = _Reader(stream, measured.messages)
        with ThreadPoolExecutor(measured.publishers) as pool:
            for _ in pool.map(lambda _: remote.publish(topic, _payload(measured.size)), range(measured.messages)):
                pass
        measured.published_s = time.perf_counter() - began
        reader.join(_PATIENCE_S)
    if len(reader.delays_s) < measured.messages:
        raise GrapevineError(f"{len(reader.delays_s)} of {measured.messages} events came; is the node very busy?")
    measured.read_s, measured.delays_s = reader.ended - began, sorted(reader.delays_s)
    return measured


def _payload(size: int) -> bytes:
    return time.perf_counter_ns().to_bytes(STAMP_BYTES, "big") + bytes(size - STAMP_BYTES)


class _Reader(threading.Thread):
    """Takes lines of a stream until it has seen so many events."""

    def __init__(self, stream: Iterator[dict[str, str]], messages: int) -> None:
        super().__init__(daemon=True)
        self.delays_s: list[float] = []
        self.ended = 0.0
        self._stream, self._messages = stream, messages
        self.start()

    def run(self) -> None:
        for line in self._stream:
            if "payload" in line:
                stamp = int.from_bytes(base64.b64decode(line["payload"])[:STAMP_BYTES], "big")
                self.delays_s.append((time.perf_counter_ns() - stamp) / 1e9)
            if len(self.delays_s) == self._messages:
                break
        self.ended = time.perf_counter()
