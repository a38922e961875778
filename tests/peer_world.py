"""Runs of peers in virtual time that are watched from outside: a diary of all that happened, to count again by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from grapevine import Simulation, Workload, simulate
from grapevine.sim import peers
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.clock import ClockConfig
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, Deliver, Peer

QUICK: dict[str, Any] = {
    "latency": "coordinates",
    "hours": 0.25,
    "start_s": 30,
    "publish_from_s": 200,
    "sample_s": 150,
}


def clock_of(**settings: Any) -> ClockConfig:
    """A quarter of an hour, with events from 200 s on."""
    return ClockConfig(**QUICK | settings)


def workload_of(topics: Mapping[int, Collection[int]], *, nodes: int, publishers: list[int]) -> Workload:
    """Nodes that subscribe to some of the topics that these publish."""
    pairs = [(node, topic) for node, mine in topics.items() for topic in mine]
    return Workload.from_pairs(
        [node for node, _ in pairs],
        [topic for _, topic in pairs],
        node_count=nodes,
        topic_count=len(publishers),
        publishers=publishers,
    )


def crossing(nodes: int = 26) -> Workload:
    """Five topics of nodes 0 … 4. The first does not subscribe to its own, the last topic has no subscriber, and the
    last node no topic."""
    wanted = {node: {node % 3, node * node % 4} for node in range(1, nodes - 1)}
    return workload_of(wanted, nodes=nodes, publishers=[0, 1, 2, 3, 4])


@dataclass
class Diary:
    """Everything that happened, in its order."""

    started: list[tuple[float, Address, Peer]] = field(default_factory=list)
    ended: list[tuple[float, Address]] = field(default_factory=list)  # crashes, and the beginnings of leaves
    gone: list[tuple[float, Address]] = field(default_factory=list)  # crashes, and the ends of leaves
    sent: list[tuple[float, Address, Address, Any, float | None]] = field(default_factory=list)
    received: list[tuple[float, Address, Address, Any]] = field(default_factory=list)  # messages with events
    delivered: list[tuple[float, Address, Deliver]] = field(default_factory=list)
    published: list[tuple[float, int]] = field(default_factory=list)  # when, and the topic

    def stays(self) -> dict[Address, list[tuple[float, float]]]:
        """From when to when nodes were there; infinity where nothing ended it."""
        found: dict[Address, list[tuple[float, float]]] = {}
        for start, node, _ in self.started:
            ends = [end for end, who in self.ended if who == node and end > start]
            found.setdefault(node, []).append((start, min(ends, default=math.inf)))
        return found

    def online(self, at: float) -> set[Address]:
        """Who is in the network, those that take their leave included."""
        here: Counter[Address] = Counter(node for time, node, _ in self.started if time <= at)
        here.subtract(node for time, node in self.gone if time <= at)
        return {node for node, count in here.items() if count > 0}


class WatchedEvents(Events):
    """An engine that writes a diary."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.diary = Diary()
        super().__init__(*arguments, **more | {"watch_sends": True})
        self._observer = self._Both(self.diary, more["observer"])

    def start(self, node: Address, peer: Peer) -> None:
        self.diary.started.append((self.now, node, peer))
        super().start(node, peer)

    def crash(self, node: Address) -> None:
        if node in self.peers:
            self.diary.gone.append((self.now, node))
            self._end(node)
        super().crash(node)

    def leave(self, node: Address) -> None:
        if node in self.peers:
            self._end(node)
        super().leave(node)

    def _end(self, node: Address) -> None:
        """A leave that is finished ended when it began."""
        began = max(time for time, who, _ in self.diary.started if who == node)
        if not any(who == node and time >= began for time, who in self.diary.ended):
            self.diary.ended.append((self.now, node))

    class _Both:
        """Writes down what the recorder hears, too."""

        def __init__(self, diary: Diary, recorder: Any) -> None:
            self._diary, self._recorder = diary, recorder

        def sent(self, *what: Any) -> None:
            self._diary.sent.append(what)
            self._recorder.sent(*what)

        def received(self, *what: Any) -> None:
            self._diary.received.append(what)
            self._recorder.received(*what)

        def delivered(self, *what: Any) -> None:
            self._diary.delivered.append(what)
            self._recorder.delivered(*what)


class WatchedRun(peers.PeerRun):
    """A run that can be looked at when it is over."""

    made: list[WatchedRun] = []  # noqa: RUF012  # the last one is the one that was asked for

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        WatchedRun.made.append(self)

    @property
    def diary(self) -> Diary:
        assert isinstance(self.engine, WatchedEvents)
        return self.engine.diary

    def _publish(self, topic: int) -> None:
        before = len(self.recorder.events)
        super()._publish(topic)
        if len(self.recorder.events) > before:
            self.diary.published.append((self.engine.now, topic))


def watch(system: str, workload: Workload, clock: ClockConfig, **more: Any) -> tuple[Simulation, WatchedRun]:
    """A simulation as anybody runs it, and the run behind it."""
    WatchedRun.made.clear()
    with patch.multiple(peers, PeerRun=WatchedRun, Events=WatchedEvents):
        done = simulate(system, workload, clock=clock, **more)
    return done, WatchedRun.made.pop()


SYSTEMS = "rappel", "scribe"
FAST: dict[str, dict[str, Any]] = {"rappel": {"landmarks": 5, "landmark_rounds": 2}, "scribe": {}}


def nodes(*numbers: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


COMING_AND_GOING = Schedule(
    np.arange(20, dtype=np.int32),  # 20 … 25 come later
    {
        310: Change(crashes=nodes(5, 6, 7, 1)),  # 1 publishes and 5 is an observer: they do not
        350: Change(joins=nodes(20, 21, 22, 23, 24, 25)),
        420: Change(leaves=nodes(8, 11)),
        500: Change(joins=nodes(6, 11)),
        600: Change(crashes=nodes(23, 6), leaves=nodes(21)),
        840: Change(leaves=nodes(10)),
    },
)
ROUGH = {"loss": 0.05, "duplication": 0.05, "measure_from_s": 400, "observers": 3}


@cache
def calm(system: str) -> tuple[Simulation, WatchedRun]:
    return watch(system, crossing(), clock_of(), **FAST[system])


@cache
def rough(system: str) -> tuple[Simulation, WatchedRun]:
    """Messages are lost and doubled, nodes come and go, and loads are measured from 400 s on."""
    return watch(system, crossing(), clock_of(**ROUGH), schedule=COMING_AND_GOING, **FAST[system])


EVERY = pytest.mark.parametrize(("system", "made"), [(s, made) for s in SYSTEMS for made in (calm, rough)])
BOTH = pytest.mark.parametrize("system", SYSTEMS)


def rows(done: Simulation, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.tables[table].to_pylist()
    return found
