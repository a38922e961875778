"""How fast virtual time runs: the event engine against SimPy, latency models, and Rappel at a size of its figures.

    .venv/bin/python -m bench.events [--large]

The reference, in the same run: SimPy's plain timeouts, which do less than a peer (no session, no effects). Once all of
them last a second, so that everybody acts at once; once no two are alike. `--large` adds Rappel with 5,000 nodes for
4 virtual hours.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Generator
from itertools import cycle
from random import Random
from typing import Any

import simpy

from bench.rounds import Watch
from grapevine.sim.clock import ClockConfig
from grapevine.sim.events import Delay, Events
from grapevine.sim.latency import LatencyConfig, make_latency
from grapevine.sim.simulate import simulate
from grapevine.synthetic import generate
from grapevine.systems.contracts.peer import Effects, Message, Peer, Send, SetTimer

EVENTS = 300_000


class Nothing(Message, frozen=True):
    """A message without content."""


class Sleeper(Peer):
    """Sets a timer, and another one when it fires."""

    again: Effects = (SetTimer("again", 1.0),)

    def start(self, now: float) -> Effects:
        return self.again

    def on_timer(self, now: float, timer: Any) -> Effects:
        return self.again

    def on_message(self, now: float, sender: int, message: Any) -> Effects:
        return ()


class Talker(Sleeper):
    """Passes a message on to its neighbour, once it is asked to begin."""

    def __init__(self, neighbour: int) -> None:
        self.again = (Send(neighbour, Nothing()),)

    def start(self, now: float) -> Effects:
        return ()

    def on_message(self, now: float, sender: int, message: Any) -> Effects:
        return self.again


def unlike() -> Callable[[], float]:
    """Seconds between 0 and 2, no two alike in a hundred thousand."""
    random = Random(1)
    return cycle([2 * random.random() for _ in range(100_000)]).__next__


def timers(peers: int) -> float:
    """Timers a CPU second."""
    engine = Events(lambda now, a, b: 1.0)
    for node in range(peers):
        engine.start(node, Sleeper())
    watch = Watch()
    engine.run(EVENTS / peers)
    return EVENTS / watch.spent().cpu


def messages(peers: int, delay: Delay = lambda now, a, b: 1.0) -> float:
    """Messages a CPU second, of which one for every peer is on its way all the time."""
    engine = Events(delay)
    talkers = [Talker((node + 1) % peers) for node in range(peers)]
    for node, talker in enumerate(talkers):
        engine.start(node, talker)
    for node, talker in enumerate(talkers):  # not before everybody is there: a message to nobody is lost
        engine.do(node, talker.again)
    engine.run(1.0)
    watch, before = Watch(), sum(engine.counts.values())
    engine.run(1.0 + EVENTS / peers)
    spent = watch.spent()
    return (sum(engine.counts.values()) - before) / spent.cpu


def messages_unlike(peers: int) -> float:
    """Messages a CPU second, of which no two take the same time."""
    seconds = unlike()
    return messages(peers, lambda now, a, b: seconds())


def timeouts(processes: int) -> float:
    """SimPy's timeouts a CPU second."""
    env = simpy.Environment()

    def sleep() -> Generator[simpy.Event, None, None]:
        while True:
            yield env.timeout(1)

    for _ in range(processes):
        env.process(sleep())
    watch = Watch()
    env.run(EVENTS / processes)
    return EVENTS / watch.spent().cpu


def timeouts_unlike(processes: int) -> float:
    """SimPy's timeouts a CPU second, no two alike."""
    env, seconds, slept = simpy.Environment(), unlike(), 0

    def sleep() -> Generator[simpy.Event, None, None]:
        nonlocal slept
        while True:
            yield env.timeout(seconds())
            slept += 1

    for _ in range(processes):
        env.process(sleep())
    watch = Watch()
    env.run(EVENTS / processes)
    return slept / watch.spent().cpu


def best(peers: int, *measures: Callable[[int], float], times: int = 7) -> list[float]:
    """The best of some runs of each, in turn: the machine is never quiet."""
    runs = [[measure(peers) for measure in measures] for _ in range(times)]
    return [max(column) for column in zip(*runs, strict=True)]


def engine() -> None:
    for peers in (10, 100, 5_000):
        reference, ours, passed = best(peers, timeouts, timers, messages)
        print(f"{peers:>5} peers: SimPy's timeouts {reference:>9,.0f} a CPU second; timers {ours:>9,.0f}", end="")
        print(f" ({ours / reference:.2f} times), messages {passed:>9,.0f} ({passed / reference:.2f} times)")
        reference, passed = best(peers, timeouts_unlike, messages_unlike)
        print(f"      no two alike: timeouts {reference:>9,.0f}; messages {passed:>9,.0f}", end="")
        print(f" ({passed / reference:.2f} times)")


def latency(nodes: int = 5_001, calls: int = 200_000) -> None:
    for kind in ("constant", "coordinates", "as-links"):
        watch = Watch()
        delay = make_latency(LatencyConfig(latency=kind), nodes=nodes, servers=18, seed=1, recorded=None).__call__
        made, watch = watch.spent(), Watch()
        for i in range(calls):
            delay(float(i), i % nodes, (i * 7919) % nodes)
        print(f"latency {kind:>11}: made in {made.cpu:.1f} CPU s, {watch.spent().cpu / calls * 1e9:.0f} ns a call")


def rappel(nodes: int, hours: float) -> None:
    workload = generate("rappel-feed", nodes=nodes)
    run = simulate("rappel", workload, clock=ClockConfig(latency="coordinates", hours=hours))
    sent, cpu, wall = run.summary["messages"], run.summary["cpu_s"], run.summary["wall_s"]
    assert sent and cpu and wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"Rappel, {nodes:,} nodes, {hours:g} virtual hours: {cpu:,.0f} CPU s ({wall:,.0f} wall), {sent:,.0f} messages"
    )
    print(f"  {sent / cpu:,.0f} messages a CPU second, {peak:.2f} GiB; hit ratio {run.summary['hit_ratio']:.4%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="Rappel with 5,000 nodes for 4 hours, too")
    large = parser.parse_args().large
    engine()
    latency()
    rappel(500, 1.0)
    if large:
        rappel(5_001, 4.0)


if __name__ == "__main__":
    main()
