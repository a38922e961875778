"""Which events a node has had, in bounded memory: a window per publisher and topic, as IPsec has (RFC 4303, §3.4.3).

A window covers the last sequence numbers up to the highest that came. What lies below it counts as known: it may have
been there, and passing an old event on again would never end.
"""

from __future__ import annotations

from collections import OrderedDict

from grapevine.systems.contracts.peer import Address

WINDOW = 1_024  # sequence numbers; a publisher's events overtake each other by far fewer
MOST_WINDOWS = 100_000  # publishers and topics that are kept apart


class Windows:
    """Windows by publisher and topic, at most `most` of them; the least recently used is forgotten."""

    def __init__(self, most: int = MOST_WINDOWS) -> None:
        self._most = most
        self._windows: OrderedDict[tuple[Address, int], tuple[int, int]] = OrderedDict()  # floor, and a bit per number

    def __len__(self) -> int:
        return len(self._windows)

    def add(self, publisher: Address, topic: int, sequence: int) -> bool:
        """Note an event; returns whether it is new. What lies below the window is not."""
        key = publisher, topic
        floor, bits = self._windows.get(key, (0, 0))
        at = sequence - floor
        if at >= WINDOW:  # moves the window before the bit is set: a stranger may send any number
            floor, bits, at = sequence - WINDOW + 1, bits >> at - WINDOW + 1, WINDOW - 1
        is_new = at >= 0 and not bits >> at & 1
        self._windows[key] = floor, bits | 1 << at if is_new else bits
        self._windows.move_to_end(key)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)
        return is_new

    def has(self, publisher: Address, topic: int, sequence: int) -> bool:
        """Whether an event is known, or lies below the window; it is not noted."""
        floor, bits = self._windows.get((publisher, topic), (0, 0))
        at = sequence - floor
        return at < 0 or (at < WINDOW and bool(bits >> at & 1))
