"""From what was measured of a run to what people pay: connections, bytes, hops, and the load of the busiest node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grapevine.metrics.structure import DEGREE, DEGREE_MAX, LOAD_MAX
from grapevine.metrics.traffic import (
    ANNOUNCEMENT_BYTES,
    HIT_RATIO,
    HOPS,
    HOPS_P99,
    NOTIFICATIONS_PER_EVENT,
    OVERHEAD,
    PAYLOADS_PER_EVENT,
    PULL_BYTES,
)
from grapevine.systems.registry import system_named

DAY_S = 86_400.0
AN_HOUR = 24.0  # events a day where nobody knows better
CALM, CRASH = "calm", "crash"  # the two workloads of the experiment


@dataclass(frozen=True, slots=True)
class Rates:
    """How much is published in the network that was simulated."""

    nodes: int
    topics: int
    events_a_day: float  # on a mean topic
    payload: int  # bytes of an event
    source: str  # where the number of events comes from, as a clause

    @property
    def total(self) -> float:
        """Events a day on all topics together."""
        return self.events_a_day * self.topics


@dataclass(frozen=True, slots=True)
class Choice:
    """One system with its parameters, and what it costs."""

    system: str
    links: int | None  # the budget of connections that it was given; None: it takes what it needs
    parameters: dict[str, Any]
    needs: str  # knowledge of the whole network; empty: none
    delivered: float  # share of all deliveries
    delivered_in_crash: float | None  # in the rounds after many nodes crashed; None: not tried
    connections: float  # of a mean node
    connections_max: float
    bytes_a_second: float  # that a mean node receives
    hops: float
    hops_p99: float
    overhead: float  # share of notifications that nobody wanted
    busiest: float  # notifications a day at the busiest node

    @property
    def name(self) -> str:
        """The system with its budget, as sentences call it."""
        return f"{self.system} with {self.links} links" if self.links else self.system

    def as_dict(self) -> dict[str, Any]:
        """As JSON and tables have it."""
        return asdict(self)


def choices(series: Iterable[Mapping[str, Any]], rates: Rates, budgets: Sequence[int]) -> list[Choice]:
    """Every point of the experiment that has all numbers, in the order of systems and budgets.

    `series` are rows of the table of this name, with `parameters` as a dict; `budgets` those that systems were given. A
    point whose run failed, or that reached nobody, is left out.
    """
    points: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    settings: dict[tuple[str, str], dict[str, Any]] = {}
    for row in series:
        key = row["system"], str(sorted(row["parameters"].items()))
        settings[key] = dict(row["parameters"])
        points.setdefault(key, {}).setdefault(row["workload"], {})[row["metric"]] = row["mean"]
    wanted = (
        HIT_RATIO,
        DEGREE,
        DEGREE_MAX,
        NOTIFICATIONS_PER_EVENT,
        PAYLOADS_PER_EVENT,
        HOPS,
        HOPS_P99,
        OVERHEAD,
        LOAD_MAX,
    )
    made = []
    for key, found in points.items():
        calm, crash = found.get(CALM, {}), found.get(CRASH, {})
        if any(calm.get(metric.name) is None for metric in wanted):
            continue
        made.append(_choice(key[0], settings[key], calm, crash.get(HIT_RATIO.name), rates, budgets))
    return sorted(made, key=lambda choice: (choice.system, choice.links or 0, str(choice.parameters)))


def _choice(
    system: str,
    parameters: dict[str, Any],
    calm: Mapping[str, float],
    in_crash: float | None,
    rates: Rates,
    budgets: Sequence[int],
) -> Choice:
    facet = system_named(system).round_facet()
    kept = (most for most in budgets if (facet.within(most) or {"": None}).items() <= parameters.items())
    each = ANNOUNCEMENT_BYTES * calm[NOTIFICATIONS_PER_EVENT.name]
    each += (PULL_BYTES + rates.payload) * calm[PAYLOADS_PER_EVENT.name]
    return Choice(
        system,
        next(kept, None),
        parameters,
        facet.needs,
        calm[HIT_RATIO.name],
        in_crash,
        calm[DEGREE.name],
        calm[DEGREE_MAX.name],
        each * rates.total / rates.nodes / DAY_S,
        calm[HOPS.name],
        calm[HOPS_P99.name],
        calm[OVERHEAD.name],
        calm[LOAD_MAX.name] * rates.events_a_day,
    )
