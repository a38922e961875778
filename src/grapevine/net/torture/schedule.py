"""What befalls a network, and what applications do on it: both drawn from the seed before anything begins.

A schedule is a list of faults, each with its time, and of publications. Neither depends on what nodes do, nor on each
other, so any faults may be left out (`shrink`) and the rest stays as it is. Settings of the nodes are drawn too: values
on the edge, such as little patience, lead to states that the usual ones hardly ever reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from grapevine.model.config import Config, parameter

CALM_S = 30.0  # at the beginning, in which the first nodes find each other
_KINDS = {  # of faults, and how often each is drawn
    "crash": 4,
    "power": 3,
    "leave": 2,
    "cut": 3,
    "one-way": 2,
    "slow-link": 2,
    "lossy-link": 2,
    "reset": 3,
    "full-disk": 2,
    "slow-disk": 2,
    "clock-jump": 2,
    "clock-drift": 1,
    "slow-readers": 2,
    "interest": 3,
}
_KNOBS: dict[str, tuple[Any, ...]] = {  # settings of nodes: the usual value, and some that are on the edge
    "idle_s": (15.0, 3.0),
    "retry_s": (5.0, 1.0, 20.0),
    "dial_s": (5.0, 2.0),
    "recover_every_s": (2.0, 1.0, 5.0),
    "patience": (8, 8, 2),
    "publish_s": (10.0, 2.0),
    "gap_limit": (10_000, 50),
}
_ROUNDS = {"round_s": (3.0, 2.0, 6.0), "settle_rounds": (2, 0), "sample_rounds": (5, 1)}  # of the overlay


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Config):
    """How large a network is tortured, and for how long."""

    nodes: int = parameter(6, "nodes at first; some more join", source="ours", low=2, high=60)
    minutes: float = parameter(10.0, "virtual minutes of faults", source="ours", low=1.0)
    topics: int = parameter(4, "topics, of which every node wants some", source="ours", low=1)
    pace_s: float = parameter(
        20.0, "virtual seconds between two faults, on average", source="ours: several at a time", low=1.0
    )
    publish_s: float = parameter(
        4.0, "virtual seconds between two events of the whole network, on average", source="ours", low=0.1
    )
    heal_s: float = parameter(
        300.0,
        "virtual seconds after the last fault in which everything has to be everywhere",
        source="ours",
    )
    clock_error_s: float = parameter(
        25.0,
        "seconds by which a machine's clock may be wrong",
        source="ours: nodes promise nothing where clocks differ by a minute",
        low=0.0,
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """Something bad, or merely inconvenient, that begins at a time and, mostly, ends."""

    at_s: float
    kind: str
    nodes: tuple[int, ...]  # whom it befalls; of cuts, one side
    for_s: float
    amount: float = 0.0  # of clocks: seconds, or seconds a second; of interests: which topic, as a share

    def __str__(self) -> str:
        whom = ", ".join(map(str, self.nodes))
        amount = f", {self.amount:+.3g}" if self.kind.startswith("clock") else ""
        return f"{self.kind} of node {whom} for {self.for_s:.0f} s{amount}"


@dataclass(frozen=True, slots=True)
class Publish:
    """An application of a node, if that is up, publishes in a topic."""

    at_s: float
    node: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a seed decides before the run: who wants what, who joins when, faults and publications by time."""

    interests: tuple[tuple[str, ...], ...]  # by node: topics of durable readers
    live: tuple[tuple[str, ...], ...]  # by node: topics of live readers, none of whose interests change
    joins: tuple[float, ...]  # by node: when it is first started
    faults: tuple[Fault, ...]
    publications: tuple[Publish, ...]
    node_settings: dict[str, Any]  # the same for all nodes
    parameters: dict[str, Any]  # of the overlay


def plan_of(seed: int, settings: Settings) -> Plan:
    """What the seed decides."""
    purposes = "nodes", "faults", "publications", "knobs"
    who, what, news, knobs = (Random(f"{purpose} {seed}") for purpose in purposes)
    topics = [f"topic-{number}" for number in range(settings.topics)]
    count = settings.nodes + max(1, settings.nodes // 4)
    end_s = CALM_S + 60 * settings.minutes
    late = [who.uniform(CALM_S, 0.7 * end_s) for _ in range(count - settings.nodes)]
    return Plan(
        tuple(tuple(sorted(who.sample(topics, who.randint(1, min(3, len(topics)))))) for _ in range(count)),
        tuple(tuple(who.sample(topics, 1)) if who.random() < 0.5 else () for _ in range(count)),
        tuple([0.1 * number for number in range(settings.nodes)] + sorted(late)),
        tuple(_faults(what, settings, count, end_s)),
        tuple(_publications(news, settings, topics, count, end_s)),
        {"durability": "process"} | {name: knobs.choice(values) for name, values in _KNOBS.items()},
        {name: knobs.choice(values) for name, values in _ROUNDS.items()},
    )


def _faults(random: Random, settings: Settings, count: int, end_s: float) -> list[Fault]:
    faults, at = [], CALM_S
    while (at := at + random.expovariate(1 / settings.pace_s)) < end_s:
        kind = random.choices(list(_KINDS), list(_KINDS.values()))[0]
        most = count // 2 if kind in ("cut", "one-way") else 1
        nodes = tuple(sorted(random.sample(range(count), random.randint(1, max(1, most)))))
        if kind in ("reset", "slow-link", "lossy-link"):
            nodes = tuple(sorted(random.sample(range(count), 2)))
        for_s = random.choice((random.uniform(1, 10), random.uniform(10, 40), random.uniform(40, 120)))
        amount = random.uniform(-1, 1)
        if kind == "clock-jump":
            amount *= settings.clock_error_s
        elif kind == "clock-drift":
            amount *= settings.clock_error_s / (end_s + settings.heal_s)  # never beyond the bound
        faults.append(Fault(at, kind, nodes, min(for_s, end_s - at), amount))
    return faults


def _publications(random: Random, settings: Settings, topics: list[str], count: int, end_s: float) -> list[Publish]:
    published, at = [], CALM_S / 2
    while (at := at + random.expovariate(1 / settings.publish_s)) < end_s:
        node, topic = random.randrange(count), random.choice(topics)
        burst = random.choice((1, 1, 1, 1, 12))
        for _ in range(burst):
            published.append(Publish(at, node, topic, b"event-%d" % (len(published) + 1)))
        at += settings.publish_s * (burst - 1)
    return published
