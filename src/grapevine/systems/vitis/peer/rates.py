"""How often events are published in topics, as the utility weighs them (Eq. 1): declared by somebody, or estimated.

A topic of which nothing is known has rate 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from grapevine.systems.gossip.weights import ONE, weight_of

CHANGE = 1.5  # by this factor an estimate has to differ from what was announced before others are told
_REVIEWS = 10  # of estimates, in a horizon


class Estimates:
    """How often a node sees events of its topics: a count of each that decays over `horizon_s`.

    The unit is one event per horizon. One event is counted before any was seen, over one horizon more than was watched:
    a topic that is new has rate 1, as where all weigh alike, and one that stays silent 1/2.
    """

    def __init__(self, now: float, horizon_s: float) -> None:
        self._horizon_s, self._started = horizon_s, now
        self._since: dict[int, float] = {}  # of topics that were subscribed to later: when
        self._counts: dict[int, tuple[float, float]] = {}  # decayed counts, as of the last event, and its time
        self._reviewed = now

    def want(self, now: float, topic: int) -> None:
        """The node watches the topic from now on."""
        self._since[topic] = now

    def forget(self, topic: int) -> None:
        """The node does not watch the topic any more."""
        self._since.pop(topic, None)
        self._counts.pop(topic, None)

    def see(self, now: float, topic: int) -> None:
        """An event of the topic came, or was published."""
        self._counts[topic] = self._count(now, topic) + 1.0, now

    def _count(self, now: float, topic: int) -> float:
        count, when = self._counts.get(topic, (0.0, now))
        return count * math.exp((when - now) / self._horizon_s)

    def rate(self, now: float, topic: int) -> float:
        """Events of the topic per horizon, as estimated now."""
        watched = 1.0 - math.exp((self._since.get(topic, self._started) - now) / self._horizon_s)
        return (self._count(now, topic) + 1.0) / (watched + 1.0)

    def is_due(self, now: float) -> bool:
        """Whether it is time to look what has changed; some times in a horizon it is."""
        if now - self._reviewed < self._horizon_s / _REVIEWS:
            return False
        self._reviewed = now
        return True


class TopicRates:
    """What a node says its topics weigh, by the parameter `rates`: `equal`, `declared` or `estimated`.

    Declared rates are those that the application has told, and before that those of `rate_of`. Estimates begin with
    `start`; until then, and with equal rates, every topic weighs as much as any.
    """

    def __init__(self, kind: str, horizon_s: float, rate_of: Callable[[int], float] | None) -> None:
        self._kind, self._horizon_s, self._rate_of = kind, horizon_s, rate_of
        self._declared: dict[int, float] = {}
        self.estimates: Estimates | None = None

    @property
    def is_weighed(self) -> bool:
        """Whether topics weigh differently at all, so that others have to be told."""
        return self._kind != "equal"

    def start(self, now: float) -> None:
        """The session begins."""
        if self._kind == "estimated":
            self.estimates = Estimates(now, self._horizon_s)

    def first_weight(self, topic: int) -> int:
        """What a topic weighs when the node subscribes to it."""
        if self._kind != "declared":
            return ONE
        rate = self._declared.get(topic)
        return weight_of(rate if rate is not None else self._rate_of(topic) if self._rate_of else 1.0)

    def declare(self, topic: int, rate: float) -> int | None:
        """The application tells a rate; what the topic weighs by it. None: rates are not declared here."""
        if self._kind != "declared":
            return None
        self._declared[topic] = rate
        return weight_of(rate)

    def want(self, now: float, topic: int) -> None:
        """The node subscribes to a topic that it did not have."""
        if self.estimates is not None:
            self.estimates.want(now, topic)

    def forget(self, topic: int) -> None:
        """The node unsubscribes."""
        if self.estimates is not None:
            self.estimates.forget(topic)

    def see(self, now: float, topic: int) -> None:
        """An event of one of the node's topics is new here."""
        if self.estimates is not None:
            self.estimates.see(now, topic)

    def changed(self, now: float, said: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Topics whose estimates are far from the weights that were said, with the new ones: some times in a horizon,
        since every one costs the neighbours a question."""
        if self.estimates is None or not self.estimates.is_due(now):
            return
        for topic, weight in said:
            rate = self.estimates.rate(now, topic)
            if not weight / ONE / CHANGE < rate < weight / ONE * CHANGE:
                yield topic, weight_of(rate)
