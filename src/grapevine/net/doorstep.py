"""The doorstep: who may begin to prove who it is. What one address costs before that is bounded here.

A handshake takes a third of a megabyte and two milliseconds of CPU, and whoever asks for one has shown nothing yet, not
even that it can. So one address has at most `handshakes_per_address` connections that are not proven yet, and begins at
most `handshake_rate` a second. What is beyond is closed at once, which costs the node a system call.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable

from grapevine.net.conduct import TokenBucket
from grapevine.net.config import NodeConfig
from grapevine.net.origins import Origins

_REMEMBERED = 10_000  # addresses, and how often each has come lately


class Doorstep:
    """Counts connections that are not proven yet. `enter` says whether one may stay; then `leave` is called once."""

    def __init__(self, config: NodeConfig, now: Callable[[], float]) -> None:
        self._config, self._now, self._origins = config, now, Origins(config.uncounted)
        self._here: Counter[str] = Counter()  # by address
        self._lately: OrderedDict[str, TokenBucket] = OrderedDict()
        self.turned_away = 0

    def enter(self, host: str) -> bool:
        """Somebody has come from this address: whether it may stay. If not it is counted, and to be closed at once."""
        origin = self._origins.of(host)
        if origin is None:
            return True
        if self._here[origin.address] >= self._config.handshakes_per_address or not self._is_in_time(origin.address):
            self.turned_away += 1
            return False
        self._here[origin.address] += 1
        return True

    def leave(self, host: str) -> None:
        """Somebody who was let in has proven who it is, or is gone."""
        origin = self._origins.of(host)
        if origin is not None:
            self._here[origin.address] -= 1
            if not self._here[origin.address]:
                del self._here[origin.address]

    def crowd(self, host: str) -> int:
        """How many of this address are here; those of uncounted networks are as one."""
        origin = self._origins.of(host)
        return 1 if origin is None else self._here[origin.address]

    def _is_in_time(self, address: str) -> bool:
        now, bucket = self._now(), self._lately.get(address)
        if bucket is None:
            bucket = self._lately[address] = TokenBucket(self._config.handshake_rate, now)
        self._lately.move_to_end(address)
        if len(self._lately) > _REMEMBERED:
            self._lately.popitem(last=False)
        if bucket.take(0, now) > 0:
            return False
        bucket.take(1, now)
        return True
