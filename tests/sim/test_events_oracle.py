"""The event engine beside a slow, obvious one: whatever peers and the world do, both tell the same story."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import (
    Address,
    Deliver,
    Effects,
    Finished,
    LinkUp,
    Message,
    Peer,
    Send,
    SetTimer,
)
from tests.effort import examples
from tests.naive_events import NaiveEvents

Script = list[list[Any] | None]  # what peers answer, one after the other, whoever is asked; None: a mistake
Deed = tuple[Any, ...]  # a verb and what it needs


class MistakeError(Exception):
    """What a peer raises."""


class Word(Message, frozen=True):
    number: int


class Carrier(Message, frozen=True):
    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int


class Story:
    """An observer and the peers' diary in one: everything that happens, in its order."""

    def __init__(self, script: Script) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self._script: Iterator[list[Any] | None] = iter(script)

    def answer(self, *line: Any) -> Effects:
        self.lines.append(line)
        effects = next(self._script, [])
        if effects is None:
            raise MistakeError
        return effects

    def sent(self, *line: Any) -> None:
        self.lines.append(("sent", *line))

    def received(self, *line: Any) -> None:
        self.lines.append(("received", *line))

    def delivered(self, *line: Any) -> None:
        self.lines.append(("delivered", *line))


class Actor(Peer):
    """Does what the script says."""

    def __init__(self, story: Story, node: Address) -> None:
        self._story, self._node = story, node

    def start(self, now: float) -> Effects:
        return self._story.answer("start", now, self._node)

    def leave(self, now: float) -> Effects:
        return self._story.answer("leave", now, self._node)

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        return self._story.answer("message", now, self._node, sender, message)

    def on_timer(self, now: float, timer: Any) -> Effects:
        return self._story.answer("timer", now, self._node, timer)


def act(engine: Events | NaiveEvents, story: Story, deed: Deed) -> None:
    """The world does something."""
    verb, *about = deed
    story.lines.append((verb, engine.now))
    if verb == "start":
        if about[0] not in engine.peers:
            engine.start(about[0], Actor(story, about[0]))
    elif verb == "plan":
        engine.at(about[0], partial(act, engine, story, about[1]))
    elif verb == "disturb":
        engine.disturb(loss=about[0], duplication=about[1])
    elif verb == "all":
        for one in about[0]:
            act(engine, story, one)
    else:
        getattr(engine, verb)(*about)
    story.lines.append((verb, "done"))


def play(engine: Events | NaiveEvents, story: Story, deeds: list[tuple[float, Deed]], ends: list[float]) -> list[Any]:
    """Everything that happened up to the last of these ends, and what was counted."""
    for time, deed in deeds:
        engine.at(time, partial(act, engine, story, deed))
    for end in ends:
        while True:
            try:
                engine.run(end)
                break
            except MistakeError:
                story.lines.append(("mistake", engine.now))
        story.lines.append(("now", engine.now, sorted(engine.peers)))
    return [story.lines, dict(engine.counts), dict(engine.sent), dict(engine.got), dict(engine.events_sent)]


nodes = st.integers(0, 3)
seconds = st.sampled_from([0.0, 0.25, 0.5, 1.0])
messages = st.builds(Word, st.integers(0, 9)) | st.builds(Carrier, st.integers(0, 2), st.integers(1, 3))
sends = st.builds(Send, nodes, messages)
effects = st.lists(
    sends
    | sends
    | st.builds(SetTimer, st.integers(0, 9), seconds)
    | st.builds(Deliver, st.integers(0, 2), st.integers(1, 3), st.just(b""), nodes)
    | st.builds(LinkUp, nodes)
    | st.builds(Finished),
    max_size=4,
)
scripts = st.lists(effects | effects | effects | st.none(), max_size=40)
times = st.integers(0, 12).map(lambda quarters: quarters / 4)
shares = st.sampled_from([0.0, 0.3])
deeds: st.SearchStrategy[Deed] = st.deferred(
    lambda: (
        st.tuples(st.sampled_from(["start", "start", "crash", "leave"]), nodes)
        | st.tuples(st.just("part"), st.permutations(range(4)).map(lambda order: [order[:1], order[1:3]]))
        | st.tuples(st.sampled_from(["heal", "restart_load"]))
        | st.tuples(st.just("run"), times)  # inside a run that is going on
        | st.tuples(st.just("disturb"), shares, shares)
        | st.tuples(st.just("do"), nodes, effects)
        | st.tuples(st.just("plan"), times, deeds)
        | st.tuples(st.just("all"), st.lists(deeds, max_size=4))
    )
)


@pytest.mark.parametrize("watch_sends", [False, True])
@examples(2)
@given(
    script=scripts,
    planned=st.lists(st.tuples(times, deeds), max_size=12),
    delays=st.lists(seconds, min_size=1, max_size=16),
    ends=st.lists(times, min_size=1, max_size=3),
)
def test_the_engine_tells_the_story_of_the_naive_one(
    watch_sends: bool, script: Script, planned: list[tuple[float, Deed]], delays: list[float], ends: list[float]
) -> None:
    def delay(now: float, a: Address, b: Address) -> float:
        return delays[(4 * a + b + int(now)) % len(delays)]

    everybody: list[tuple[float, Deed]] = [(0.0, ("start", node)) for node in range(3)]
    told = []
    for kind in (Events, NaiveEvents):
        story = Story(script)
        engine = kind(delay, seed=1, observer=story, watch_sends=watch_sends)
        told.append(play(engine, story, [*everybody, *planned], [*ends, 99.0]))
    assert told[0] == told[1]


@given(st.lists(st.tuples(st.sampled_from(["timer", "message", "action"]), seconds), max_size=30))
def test_all_sorts_of_things_happen_in_the_order_of_time_then_of_cause(things: list[tuple[str, float]]) -> None:
    story = Story([])
    engine = Events(lambda now, sender, to: things[sender][1])
    engine.start(0, Actor(story, 0))
    for number, (kind, after_s) in enumerate(things):
        if kind == "timer":
            engine.do(0, [SetTimer(number, after_s)])
        elif kind == "message":
            engine.do(number, [Send(0, Word(number))])
        else:
            engine.at(after_s, partial(story.lines.append, ("action", after_s, number)))
    engine.run(until=2.0)
    numbers = [line[-1].number if line[0] == "message" else line[-1] for line in story.lines[1:]]
    assert numbers == sorted(range(len(things)), key=lambda number: things[number][1])
    assert [line[1] for line in story.lines[1:]] == sorted(after_s for _, after_s in things)
