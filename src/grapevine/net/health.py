"""How a node is: named conditions, each a sentence that says what is wrong. None of them means that all is well.

| condition | grave | holds while                                                              |
|-----------|-------|--------------------------------------------------------------------------|
| leaving   | yes   | the node closes                                                          |
| alone     | yes   | nobody is connected, although there are nodes to join                    |
| disk      | yes   | the last change was refused by the disk                                  |
| full      | no    | all places for others are taken by links: newcomers are turned away      |
| no path   | no    | a subscription has had no way to others for `NO_PATH_S`                  |
| lost      | no    | events were given up within the last `LOST_S` (`Gap`)                   |
| clock     | no    | the time of day has jumped by more than `JUMP_S` since the node opened   |
| restored  | no    | events of this node came back to it that its folder did not have         |
| forked    | no    | there is evidence that a publisher contradicts itself (`equivocation`)   |

A grave condition keeps the node from its work: `/health` answers 503. `/metrics`, `/stats` and `grapevine status` name
all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from grapevine.net.steady_clock import SteadyClock

NO_PATH_S = 30.0
LOST_S = 3_600.0
JUMP_S = 60.0

NAMES = ("leaving", "alone", "disk", "full", "no path", "lost", "clock", "restored", "forked")


class Condition(NamedTuple):
    """Something that is wrong with a node."""

    name: str  # one of NAMES
    sentence: str
    is_grave: bool


class Signs(Protocol):
    """What health looks at (`Assembly`)."""

    is_closing: bool

    @property
    def is_without_peers(self) -> bool:
        """Whether nobody is connected, although there are nodes to join."""

    @property
    def disk_trouble(self) -> str | None:
        """Why the disk refused the last change."""

    @property
    def is_full(self) -> bool:
        """Whether newcomers are turned away."""

    @property
    def given_up(self) -> int:
        """Events that nobody had, since the node was opened."""

    @property
    def returned(self) -> int:
        """Events of this node's that others had and its folder had not, since the node was opened."""

    @property
    def contradicting(self) -> list[str]:
        """Publishers of which there is evidence that they contradict themselves."""

    def topics_without_path(self) -> list[str]:
        """Names of topics that are wanted and have no way to others now."""


class Health:
    """The conditions of one node. `look` is a chore; `conditions` may be asked at any time."""

    def __init__(self, signs: Signs, clock: SteadyClock, now: Callable[[], float]) -> None:
        self._signs, self._clock, self._now = signs, clock, now
        self._cut_off: dict[str, float] = {}  # topics without a path, and since when
        # When some were given up, and how many there had been before.
        self._given_up: deque[tuple[float, int]] = deque()
        self._last_given_up = 0

    def look(self) -> None:
        """Note since when things are as they are. Called every second."""
        now, cut_off = self._now(), self._signs.topics_without_path()
        self._cut_off = {topic: self._cut_off.get(topic, now) for topic in cut_off}
        given_up = self._signs.given_up
        if given_up > self._last_given_up:
            self._given_up.append((now, self._last_given_up))
            self._last_given_up = given_up
        while self._given_up and self._given_up[0][0] < now - LOST_S:
            self._given_up.popleft()

    def conditions(self) -> list[Condition]:
        """What is wrong now, what is grave first."""
        return list(self._found())

    def _found(self) -> Iterator[Condition]:
        signs = self._signs
        if signs.is_closing:
            yield Condition("leaving", "the node is leaving", True)
        elif signs.is_without_peers:
            yield Condition("alone", "no peer is connected, although there are nodes to join", True)
        if (trouble := signs.disk_trouble) is not None:
            yield Condition("disk", trouble, True)
        if signs.is_full:
            sentence = "all places for others are taken by links: newcomers are turned away; raise most_connections"
            yield Condition("full", sentence, False)
        long = sorted(topic for topic, since in self._cut_off.items() if self._now() - since >= NO_PATH_S)
        if long:
            names = ", ".join(long[:3]) + (f" and {len(long) - 3} others" if len(long) > 3 else "")
            yield Condition("no path", f"there has been no way to others for {NO_PATH_S:g} s for {names}", False)
        if self._given_up:
            lost = self._last_given_up - self._given_up[0][1]
            yield Condition("lost", f"{lost} events that were missed were given up within the last hour", False)
        jump_s = self._clock.jump_ms / 1e3
        if abs(jump_s) > JUMP_S:
            way = "ahead" if jump_s > 0 else "back"
            yield Condition("clock", f"the clock has jumped {way} by {abs(jump_s):,.0f} s since the node opened", False)
        if signs.returned:
            sentence = f"the data folder is older than what others have: {signs.returned} events of this node came back"
            yield Condition("restored", f"{sentence}; it publishes in a new epoch", False)
        if forked := signs.contradicting:
            names = ", ".join(forked[:3]) + (f" and {len(forked) - 3} others" if len(forked) > 3 else "")
            sentence = "signed different events under one number: the evidence is kept; one key may run twice"
            yield Condition("forked", f"{names} {sentence}", False)
