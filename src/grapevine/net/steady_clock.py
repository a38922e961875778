"""A clock of a session that does not jump: the time of day at its beginning, and what has passed since.

Retention goes by it. When somebody sets the machine's clock a week ahead, the events that are here have not become a
week older; by the time of day all of them would be removed at once.
"""

from __future__ import annotations

from collections.abc import Callable


class SteadyClock:
    """`time_of_day_ms` may jump and go back, `passed_s` counts seconds and does neither."""

    def __init__(self, time_of_day_ms: Callable[[], int], passed_s: Callable[[], float]) -> None:
        self._time_of_day_ms, self._passed_s = time_of_day_ms, passed_s
        self._begin_ms = time_of_day_ms() - round(1e3 * passed_s())

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as if the clock of the session's beginning had been left alone."""
        return self._begin_ms + round(1e3 * self._passed_s())

    @property
    def jump_ms(self) -> int:
        """How far the time of day is ahead of this clock; negative: behind it."""
        return self._time_of_day_ms() - self.now_ms()
