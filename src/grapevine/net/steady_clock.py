"""The clock of arrivals: it says when events came here, and does not jump.

Retention goes by it, and so does `since`. When somebody sets the machine's clock a week ahead, the events that are here
have not become a week older; by the time of day all of them would be removed at once.

Theory. In a session it adds to what it showed at the beginning the seconds that have passed, by a clock that neither
jumps nor goes back. Between two sessions nobody can tell a pause from a clock that was set. So of a pause it counts
what the time of day says, but never less than nothing, and never more than `most_pause_ms`, which is half of the age at
which events go: no jump takes more than half of a retention.

Invariants:
1. It never goes back; from one session to the next neither, but for what passed since it was last noted (10 s at most)
   before a crash, if the time of day was set back, too. So nobody compares the times of two sessions (`recovery`).
2. What it says of an event's age is never more than what has passed, if the time of day was right; it may be less.
"""

from __future__ import annotations

from collections.abc import Callable


class SteadyClock:
    """`time_of_day_ms` may jump and go back, `passed_s` counts seconds and does neither.

    `noted` is what it and the time of day were when an earlier session noted that last (`Store.note_clock`).
    """

    def __init__(
        self,
        time_of_day_ms: Callable[[], int],
        passed_s: Callable[[], float],
        noted: tuple[int, int] | None = None,
        most_pause_ms: int = 0,
    ) -> None:
        self._time_of_day_ms, self._passed_s = time_of_day_ms, passed_s
        day_ms = time_of_day_ms()
        begin_ms = day_ms
        if noted is not None:
            arrivals_ms, noted_day_ms = noted
            begin_ms = arrivals_ms + min(max(day_ms - noted_day_ms, 0), most_pause_ms)
        self._day_ahead_ms = day_ms - begin_ms  # at the session's beginning
        self._begin_ms = begin_ms - round(1e3 * passed_s())

    def now_ms(self) -> int:
        """What it shows: milliseconds since 1970, as if nobody had ever set the machine's clock."""
        return self._begin_ms + round(1e3 * self._passed_s())

    def at_ms(self, day_ms: int) -> int:
        """What it showed at a time of day, which a person gives, as far as the two are known to differ."""
        return max(day_ms - (self._time_of_day_ms() - self.now_ms()), 0)

    @property
    def jump_ms(self) -> int:
        """How far the time of day has jumped ahead since the session began; negative: back."""
        return self._time_of_day_ms() - self.now_ms() - self._day_ahead_ms
