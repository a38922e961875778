"""Where a node is (§6.1.4): coordinates from the distances to landmark servers, fixed for the session.

Landmarks find their own by Vivaldi among each other, then stay: coordinates of all sessions are in one frame. Of
several measurements to a landmark the lower quartile counts (the filter of Ledlie et al., which the paper names).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from grapevine.kernels.coords import pull, settle
from grapevine.systems.contracts.peer import Address, Effects, Peer
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import HereIAm, Position, WhereAreYou
from grapevine.systems.rappel.outbox import Outbox

_PROBE_S = 1.0  # between two measurements; round trips are shorter
_PASSES = 1_000  # over all landmarks, at most, until a newcomer's coordinates rest
LANDMARK_ROUNDS = 60  # measurements until landmarks stay where they are


def apart_ms(a: Position, b: Position, heights: bool) -> float:
    """The distance of two coordinates; with heights, their last numbers are these and add to it."""
    return math.dist(a[:-1], b[:-1]) + a[-1] + b[-1] if heights else math.dist(a, b)


def is_position(position: Position, size: int) -> bool:
    """Whether these are coordinates: finite, and as many as they should be. Strangers may send anything."""
    return len(position) == size and all(map(math.isfinite, position))


def _somewhere(random: Random, config: RappelConfig) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Off the origin, where springs have no direction; and no height yet."""
    return np.array([random.uniform(-1, 1) for _ in range(config.dimensions)] + [0.0] * config.heights)


def _one_way_ms(asked: float, now: float) -> float:
    return (now - asked) * 500


class Locating:
    """A newcomer's measurements of its distances to landmarks, and the coordinates that follow from them."""

    def __init__(self, config: RappelConfig, landmarks: Sequence[Address], random: Random, out: Outbox) -> None:
        self._config, self._landmarks, self._random, self._out = config, landmarks, random, out
        self._asked_at: list[float] = []  # by probe
        self._answers: dict[Address, tuple[HereIAm, list[float]]] = {}  # by landmark: the last one, and all distances

    def ask(self, now: float) -> Position | None:
        """Ask all landmarks once more; or, after enough of that, the coordinates. Three distances are the least.

        To be called when the session begins and then for every timer "locate", until it returns coordinates.
        """
        enough = len(self._asked_at) >= self._config.landmark_rounds
        if enough and len(self._answers) >= min(3, len(self._landmarks)):
            return self._position()
        for landmark in self._landmarks:
            self._out.send(landmark, WhereAreYou(len(self._asked_at)))
        self._asked_at.append(now)
        self._out.timer("locate", _PROBE_S)
        return None

    def hear(self, now: float, landmark: Address, answer: HereIAm) -> None:
        """An answer came; it counts if it is a landmark's, and one to a question of this session."""
        if landmark in self._landmarks and 0 <= answer.probe < len(self._asked_at):
            _, measured = self._answers.get(landmark, (answer, []))
            measured.append(_one_way_ms(self._asked_at[answer.probe], now))
            self._answers[landmark] = answer, measured

    def _position(self) -> Position:
        found = [self._answers[landmark] for landmark in sorted(self._answers)]
        positions = np.array([answer.position for answer, _ in found])
        errors = np.array([answer.error for answer, _ in found])
        measured = np.array([np.quantile(distances, 0.25) for _, distances in found])
        position = _somewhere(self._random, self._config)
        settle(position, positions, errors, measured, _PASSES, self._config.heights)
        return tuple(position.tolist())


class Landmark(Peer):
    """A server that newcomers measure their distance to. It is there before them and never leaves."""

    def __init__(self, me: Address, config: RappelConfig, landmarks: Sequence[Address], random: Random) -> None:
        self.me = me
        self._others = [node for node in landmarks if node != me]
        self._heights = config.heights
        self._out, self._asked_at = Outbox(), [0.0]
        self._position, self._error = _somewhere(random, config), 1.0

    @property
    def position(self) -> Position:
        """Its coordinates at the moment; they rest after `LANDMARK_ROUNDS` measurements."""
        return tuple(self._position.tolist())

    def start(self, now: float) -> Effects:
        return self.on_timer(now, "locate")

    def on_timer(self, now: float, timer: Any) -> Effects:
        """Ask the other landmarks, as long as this one still moves."""
        if len(self._asked_at) <= LANDMARK_ROUNDS:
            for node in self._others:
                self._out.send(node, WhereAreYou(len(self._asked_at)))
            self._asked_at.append(now)
            self._out.timer("locate", _PROBE_S)
        return self._out.take()

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        if isinstance(message, WhereAreYou):
            self._out.send(sender, HereIAm(message.probe, self.position, self._error))
        elif isinstance(message, HereIAm) and self._counts(sender, message):
            measured = _one_way_ms(self._asked_at[message.probe], now)
            other = np.array(message.position)
            self._error = pull(self._position, self._error, other, message.error, measured, self._heights)
        return self._out.take()

    def _counts(self, sender: Address, answer: HereIAm) -> bool:
        """Whether this answers a question of this landmark's, while it still moves."""
        asked = sender in self._others and 0 < answer.probe < len(self._asked_at) <= LANDMARK_ROUNDS
        return asked and is_position((*answer.position, answer.error), len(self._position) + 1)
