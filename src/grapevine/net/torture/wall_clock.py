"""The wall clock of one machine: right at first, then it drifts and is set, forwards and back."""

from __future__ import annotations

from collections.abc import Callable

EPOCH_S = 1_750_000_000  # where all clocks begin, in seconds since 1970


class WallClock:
    """Tells the time of day. `true_s` is the loop's time, which no machine can see."""

    def __init__(self, true_s: Callable[[], float]) -> None:
        self._true_s = true_s
        self._since_s, self._error_s, self._rate = true_s(), 0.0, 0.0  # the error at that time, and seconds a second

    @property
    def error_s(self) -> float:
        """By how much it is ahead; negative if it is behind."""
        return self._error_s + self._rate * (self._true_s() - self._since_s)

    def now_us(self) -> int:
        """Microseconds since 1970, as the machine believes."""
        return int((EPOCH_S + self._true_s() + self.error_s) * 1e6)

    def set_error(self, error_s: float, rate: float) -> None:
        """From now on it is ahead by so much, and gains `rate` seconds a second."""
        self._since_s, self._error_s, self._rate = self._true_s(), error_s, rate
