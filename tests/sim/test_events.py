"""The event engine: order and time, what is lost, doubled or cut off, and the ends of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from grapevine.model.errors import UsageError
from grapevine.sim.events import Events
from grapevine.sim.transcript import Transcript, describe
from grapevine.systems.contracts.peer import Address, Deliver, Effects, Finished, Message, Peer, Send, SetTimer


class Word(Message, frozen=True):
    text: str


class Event(Message, frozen=True):
    carries_event: ClassVar[bool] = True

    topic: int
    sequence: int
    weight: float = 0.25
    payload: bytes = b"abc"
    where: tuple[float, ...] = (1.0, 2.55)


class Scribe(Peer):
    """Writes down what happens to it, and answers as it is told."""

    def __init__(self, answer: Callable[[Any], Effects] = lambda what: []) -> None:
        self.notes: list[tuple[float, Any]] = []
        self._answer = answer

    def _note(self, now: float, what: Any) -> Effects:
        self.notes.append((now, what))
        return self._answer(what)

    def start(self, now: float) -> Effects:
        return self._note(now, "start")

    def on_message(self, now: float, sender: Address, message: Any) -> Effects:
        return self._note(now, (sender, message.text if isinstance(message, Word) else message))

    def on_timer(self, now: float, timer: Any) -> Effects:
        return self._note(now, timer)

    def leave(self, now: float) -> Effects:
        return self._note(now, "leave") or [Finished()]


def network(count: int = 2, delay_s: float = 0.1, **parameters: Any) -> tuple[Events, list[Scribe]]:
    engine, scribes = Events(lambda now, a, b: delay_s, **parameters), [Scribe() for _ in range(count)]
    for node, scribe in enumerate(scribes):
        engine.start(node, scribe)
    return engine, scribes


def say(engine: Events, node: Address, to: Address, *texts: str) -> None:
    engine.do(node, [Send(to, Word(text)) for text in texts])


def heard(scribe: Scribe) -> list[str]:
    return [what[1] for _, what in scribe.notes if isinstance(what, tuple)]


def test_messages_and_timers_come_at_their_times() -> None:
    engine, (zero, one) = network()
    engine.do(0, [SetTimer("late", 0.3), SetTimer("soon", 0.05), Send(1, Word("hello"))])
    engine.run(until=1.0)
    assert zero.notes == [(0.0, "start"), (0.05, "soon"), (0.3, "late")]
    assert one.notes == [(0.0, "start"), (0.1, (0, "hello"))]
    assert engine.now == 1.0


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=30))
def test_things_of_one_time_happen_in_the_order_in_which_they_were_caused(delays: list[float]) -> None:
    engine, (scribe,) = network(1)
    engine.do(0, [SetTimer(number, delay) for number, delay in enumerate(delays)])
    engine.run(until=2.0)
    assert [what for _, what in scribe.notes[1:]] == sorted(range(len(delays)), key=lambda number: delays[number])


def test_the_delay_depends_on_time_sender_and_target() -> None:
    engine = Events(lambda now, a, b: now + a / 10 + b / 100)
    engine.start(4, scribe := Scribe())
    engine.at(2.0, lambda: say(engine, 3, 4, "hello"))
    engine.run(until=9.0)
    assert heard(scribe) == ["hello"]
    assert scribe.notes[-1][0] == pytest.approx(2.0 + 2.34)


def test_a_run_goes_up_to_its_end_and_not_beyond() -> None:
    engine, (scribe,) = network(1)
    engine.do(0, [SetTimer("at the end", 1.0), SetTimer("after it", 1.001)])
    engine.run(until=1.0)
    assert scribe.notes[-1] == (1.0, "at the end")
    engine.run(until=2.0)
    assert scribe.notes[-1] == (1.001, "after it")


def test_time_does_not_run_backwards() -> None:
    engine, (scribe,) = network(1)
    engine.run(until=5.0)
    engine.run(until=3.0)
    assert engine.now == 5.0
    engine.do(0, [SetTimer("next", 1.0)])
    engine.run(until=10.0)
    assert scribe.notes[-1] == (6.0, "next")


def test_what_is_planned_happens_then_and_what_is_late_now() -> None:
    engine, times = Events(lambda now, a, b: 0.0), []
    engine.at(2.0, lambda: times.append(engine.now))
    engine.run(until=5.0)
    engine.at(1.0, lambda: times.append(engine.now))
    engine.run(until=5.0)
    assert times == [2.0, 5.0]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("loss", "duplication"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3), (0.3, 0.1)])
def test_messages_are_lost_and_doubled_at_the_given_rates(seed: int, loss: float, duplication: float) -> None:
    engine, (_, one) = network(seed=seed, loss=loss, duplication=duplication)
    count = 5_000
    say(engine, 0, 1, *map(str, range(count)))
    engine.run(until=1.0)
    texts = heard(one)
    arrived = len(set(texts))
    doubled = len(texts) - arrived
    assert binomtest(count - arrived, count, loss).pvalue > 1e-4
    assert binomtest(doubled, arrived, duplication).pvalue > 1e-4


def test_loss_may_begin_and_end() -> None:
    engine, (_, one) = network()
    engine.disturb(loss=0.999999)
    say(engine, 0, 1, "lost")
    engine.disturb()
    say(engine, 0, 1, "heard")
    engine.run(until=1.0)
    assert heard(one) == ["heard"]


@pytest.mark.parametrize("name", ["loss", "duplication"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 2.0])
def test_rates_lie_between_0_and_1(name: str, value: float) -> None:
    rates: dict[str, Any] = {name: value}
    with pytest.raises(UsageError, match=f"{name}={value:g}"):
        Events(lambda now, a, b: 0.0, **rates)
    with pytest.raises(UsageError, match=f"{name}={value:g}"):
        Events(lambda now, a, b: 0.0).disturb(**rates)


def test_messages_between_parts_of_the_network_are_lost_until_it_heals() -> None:
    engine, scribes = network(5)
    engine.part([[0, 1], [2]])

    def everybody_says(text: str) -> None:
        for a in range(5):
            for b in range(5):
                say(engine, a, b, f"{text} from {a}")

    everybody_says("parted")
    engine.run(until=1.0)
    together = [{0, 1}, {0, 1}, {2}, {3, 4}, {3, 4}]
    assert [set(heard(scribe)) for scribe in scribes] == [{f"parted from {a}" for a in group} for group in together]
    engine.heal()
    everybody_says("whole")
    engine.run(until=2.0)
    assert all(heard(scribe)[-5:] == [f"whole from {a}" for a in range(5)] for scribe in scribes)


def test_a_message_to_a_session_that_has_ended_is_lost_even_if_the_node_is_back() -> None:
    engine, _ = network()
    say(engine, 0, 1, "to the first session")
    engine.crash(1)
    engine.start(1, again := Scribe())
    say(engine, 0, 1, "to the second")
    engine.run(until=1.0)
    assert heard(again) == ["to the second"]
    assert engine.got[1] == 1


def test_a_message_to_nobody_is_lost_even_if_the_node_starts_before_it_would_arrive() -> None:
    engine, _ = network(1)
    say(engine, 0, 1, "anybody?")
    engine.start(1, late := Scribe())
    engine.run(until=1.0)
    assert late.notes == [(0.0, "start")]


def test_timers_end_with_their_session() -> None:
    engine, (scribe,) = network(1)
    engine.do(0, [SetTimer("first", 1.0)])
    engine.crash(0)
    engine.start(0, again := Scribe())
    engine.do(0, [SetTimer("second", 1.0)])
    engine.run(until=2.0)
    assert scribe.notes == [(0.0, "start")]
    assert again.notes == [(0.0, "start"), (1.0, "second")]


def test_what_a_session_sent_before_its_end_arrives() -> None:
    engine, (_, one) = network()
    say(engine, 0, 1, "last words")
    engine.crash(0)
    engine.run(until=1.0)
    assert heard(one) == ["last words"]


def test_a_peer_that_leaves_is_there_until_it_has_finished() -> None:
    engine = Events(lambda now, a, b: 0.1)
    said: dict[Any, Effects] = {"leave": [SetTimer("done", 3.0)], "done": [Send(1, Word("bye")), Finished()]}
    engine.start(0, Scribe(lambda what: said.get(what, [])))
    engine.start(1, other := Scribe())
    engine.leave(0)
    engine.run(until=2.9)
    assert 0 in engine.peers
    engine.run(until=4.0)
    assert 0 not in engine.peers
    assert heard(other) == ["bye"]
    engine.start(0, Scribe())


def test_who_is_not_there_may_crash_and_leave_without_harm() -> None:
    engine, _ = network(1)
    engine.crash(7)
    engine.leave(7)
    engine.run(until=1.0)
    assert set(engine.peers) == {0}


def test_a_node_has_one_session_at_a_time() -> None:
    engine, _ = network(1)
    with pytest.raises(UsageError, match="node 0: is there already"):
        engine.start(0, Scribe())


def test_messages_are_counted_by_kind_and_node() -> None:
    engine, _ = network(3)
    engine.part([[0, 1], [2]])
    engine.do(0, [Send(1, Word("a")), Send(2, Word("b")), Send(1, Event(0, 1))])
    say(engine, 1, 0, "c")
    engine.run(until=1.0)
    assert engine.counts == {Word: 3, Event: 1}  # what is lost was sent as well
    assert engine.sent == {0: 3, 1: 1}
    assert engine.got == {0: 1, 1: 2}
    assert engine.events_sent == {0: 1}


def gossip(seed: int) -> str:
    """Six nodes pass words on to the next two, on a bad network."""
    transcript = Transcript()
    engine = Events(
        lambda now, a, b: 0.1 + a / 50, seed=seed, loss=0.2, duplication=0.2, observer=transcript, watch_sends=True
    )

    def answers(node: int) -> Callable[[Any], Effects]:
        return lambda what: [Send((node + i) % 6, Word("so")) for i in (1, 2)]

    for node in range(6):
        engine.start(node, Scribe(answers(node)))
    engine.run(until=0.5)
    return transcript.text()


def test_a_run_depends_on_the_seed_alone() -> None:
    assert gossip(1) == gossip(1)
    assert gossip(1) != gossip(2)


def test_a_transcript_has_a_line_for_every_message_and_every_delivery() -> None:
    transcript = Transcript()
    engine = Events(lambda now, a, b: 0.1, observer=transcript, watch_sends=True)
    engine.start(0, Scribe())
    engine.start(1, Scribe())
    engine.at(1.5, lambda: engine.do(0, [Send(1, Event(3, 17)), Deliver(3, 17, b"", 1), Deliver(3, 16, b"", 1, True)]))
    engine.at(2.0, lambda: engine.part([[0], [1]]))
    engine.at(2.0, lambda: say(engine, 1, 0, "lost"))
    engine.run(until=3.0)
    assert transcript.text().splitlines() == [
        "    1.500    0 → 1    Event topic=3 sequence=17 weight=0.2 payload=3 bytes where=(1.0, 2.5)",
        "    1.500    0 ✓      event 3/17 from 1",
        "    1.500    0 ✓      event 3/16 from 1 (pulled)",
        "    2.000    1 ⇥ 0    Word text=lost",
    ]


def test_a_transcript_may_keep_some_kinds_of_messages_only() -> None:
    transcript = Transcript(only=["Event"])
    transcript.sent(0.0, 0, 1, Word("hello"), 0.1)
    transcript.sent(0.0, 0, 1, Event(0, 1), 0.1)
    assert [line.split()[4] for line in transcript.lines] == ["Event"]


def test_nested_fields_are_short_in_a_transcript() -> None:
    class Nested(Message, frozen=True):
        feeds: tuple[tuple[int, tuple[float, ...]], ...]
        nobody: int | None = None

    assert describe(Nested(((1, (0.123, 4.0)),))) == "Nested feeds=((1, (0.1, 4.0))) nobody=None"


def test_an_observer_hears_of_events_that_arrive_and_of_sends_only_if_it_wants_to() -> None:
    class Watch(Transcript):
        arrived: ClassVar[list[tuple[float, Address, Address]]] = []

        def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
            self.arrived.append((now, node, sender))

    engine = Events(lambda now, a, b: 0.1, observer=(watch := Watch()))
    engine.start(0, Scribe())
    engine.start(1, Scribe())
    engine.do(0, [Send(1, Word("no event")), Send(1, Event(0, 1)), Send(7, Event(0, 1))])
    engine.run(until=1.0)
    assert watch.arrived == [(0.1, 1, 0)]
    assert watch.lines == []
