"""Which choice to take, and what the others would win or lose: a function of the choices alone.

The rule. Of the choices that deliver enough and need no knowledge of the whole network, those are worth a look that no
other one beats or equals in connections, bytes and hops at once (the *front*). Of these the one is recommended whose
three costs, each as a multiple of the least on the front, have the smallest product: whoever doubles one of them has to
halve another. Where nobody delivers enough, the choice that delivers most is named, and that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from grapevine.comparison.costs import Choice, Rates

_SAME = 0.05  # a difference below this share is none that a sentence is worth
_COSTS: dict[str, Callable[[Choice], float]] = {
    "connections": lambda choice: choice.connections,
    "bytes": lambda choice: choice.bytes_a_second,
    "hops": lambda choice: choice.hops,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is recommended, and what else is worth a look."""

    best: Choice
    delivers: bool  # whether the best delivers enough
    front: tuple[Choice, ...]  # by connections
    sentences: tuple[str, ...]

    def kind(self, choice: Choice) -> str:
        """What a choice is beside the others: `best`, on the `front`, `central` (it needs knowledge of the whole
        network), or `beaten` by another or by the events that it loses."""
        if choice == self.best:
            return "best"
        if choice in self.front:
            return "front"
        return "central" if choice.needs else "beaten"


def judge(choices: Sequence[Choice], rates: Rates, *, enough: float, crash: float, trace: str) -> Judgement | None:
    """The judgement over these choices; None if there is none. `crash` is the share of nodes that crashed, `trace` what
    the workload is called."""
    if not choices:
        return None
    able = [choice for choice in choices if choice.delivered >= enough]
    free = [choice for choice in able if not choice.needs]
    pool = free or able
    found = front(pool)
    best = min(found, key=_product_over(found)) if found else max(choices, key=lambda choice: choice.delivered)
    said = [_recommend(best, trace, delivers=bool(pool), enough=enough)]
    if best.delivered_in_crash is not None:
        said.append(_after_crash(best, choices, crash))
    if pool:
        said += _others(best, found)
        said += _losing(best, choices, enough)
        said += _central(best, able)
    said.append(_assumed(rates))
    return Judgement(best, bool(pool), tuple(found), tuple(said))


def front(choices: Sequence[Choice]) -> list[Choice]:
    """The choices that no other one beats in one cost and at least equals in the others, by connections."""

    def costs(choice: Choice) -> tuple[float, ...]:
        return tuple(cost(choice) for cost in _COSTS.values())

    def beaten(choice: Choice) -> bool:
        mine = costs(choice)
        return any(
            all(a <= b for a, b in zip(costs(other), mine, strict=True)) and costs(other) != mine for other in choices
        )

    once = {costs(choice): choice for choice in reversed(choices)}  # of equals the first
    return sorted((choice for choice in once.values() if not beaten(choice)), key=costs)


def _product_over(found: Sequence[Choice]) -> Callable[[Choice], tuple[float, float, str]]:
    least = {name: min(cost(choice) for choice in found) or 1.0 for name, cost in _COSTS.items()}
    return lambda choice: (
        prod(max(cost(choice), 1e-12) / least[name] for name, cost in _COSTS.items()),
        choice.connections,
        choice.name,
    )


def _recommend(best: Choice, trace: str, *, delivers: bool, enough: float) -> str:
    costs = (
        f"{_bytes(best.bytes_a_second)} a second at a mean node, "
        f"{best.hops:.1f} hops (99 % within {best.hops_p99:.0f}), "
        f"{best.connections:.1f} connections (at most {best.connections_max:.0f}), {best.delivered:.2%} delivered."
    )
    if delivers:
        return f"For {trace} take {best.name}: {costs}"
    return f"For {trace} nothing delivers {enough:.2%}; {best.name} comes nearest: {costs}"


def _after_crash(best: Choice, choices: Sequence[Choice], crash: float) -> str:
    assert best.delivered_in_crash is not None
    said = f"While it mends after {crash:.0%} of the nodes crashed at once, it delivers {best.delivered_in_crash:.1%}"
    known = [
        c for c in choices if c.delivered_in_crash is not None and not c.needs and c.delivered >= best.delivered - 0.001
    ]
    hardy = max(known, key=lambda choice: choice.delivered_in_crash or 0.0, default=best)
    if (hardy.delivered_in_crash or 0.0) > best.delivered_in_crash + 0.01:
        return f"{said}; {hardy.name} delivers {hardy.delivered_in_crash:.1%} then."
    return f"{said}, as much as any."


def _others(best: Choice, found: Sequence[Choice]) -> list[str]:
    """On the front: who is best in each cost, and what it pays for it."""
    said = []
    for name, words in (("connections", "Fewer connections"), ("bytes", "Fewer bytes"), ("hops", "Shorter ways")):
        cost = _COSTS[name]
        other = min(found, key=lambda choice: (cost(choice), choice.name))
        if other is best or cost(other) >= (1 - _SAME) * cost(best):
            continue
        prices = [
            f"{_times(_COSTS[paid](other), _COSTS[paid](best))} the {paid}"
            for paid in _COSTS
            if paid != name and _COSTS[paid](other) > (1 + _SAME) * _COSTS[paid](best)
        ]
        price = f", for {' and '.join(prices)}" if prices else ""
        said.append(f"{words}: {other.name} has {_less(cost(other), cost(best))}{price}.")
    return said


def _losing(best: Choice, choices: Sequence[Choice], enough: float) -> list[str]:
    """Who would be cheaper, and loses events."""
    cheaper = [
        choice
        for choice in choices
        if choice.delivered < enough and choice.bytes_a_second < (1 - _SAME) * best.bytes_a_second and not choice.needs
    ]
    if not cheaper:
        return []
    least = max(cheaper, key=lambda choice: choice.delivered)
    less = _less(least.bytes_a_second / max(least.delivered, 1e-9), best.bytes_a_second)
    for_each = "" if less.startswith("about") else f" ({less} for what it delivers)"
    return [
        f"{least.name} takes {_less(least.bytes_a_second, best.bytes_a_second)} in bytes{for_each}, but loses "
        f"{1 - least.delivered:.1%} of the deliveries."
    ]


def _central(best: Choice, able: Sequence[Choice]) -> list[str]:
    """What knowledge of the whole network would buy."""
    known = [choice for choice in able if choice.needs]
    if not known or best.needs:
        return ["Nothing that delivers enough does without knowledge of the whole network."] if best.needs else []
    fewest = min(known, key=lambda choice: (choice.connections, choice.name))
    if fewest.connections >= best.connections:
        return []
    return [
        f"With knowledge of the whole network {fewest.name} would do with {fewest.connections:.1f} connections and "
        f"{_bytes(fewest.bytes_a_second)} a second; it needs {fewest.needs}."
    ]


def _assumed(rates: Rates) -> str:
    return (
        f"Counted for {rates.nodes:,} nodes and {rates.topics:,} topics, {rates.events_a_day:,.3g} events a day "
        f"on a mean topic ({rates.source}) and {rates.payload:,} bytes an event. Upkeep of the overlay is not counted."
    )


def _bytes(value: float) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"


def _less(value: float, other: float) -> str:
    share = 1 - value / other if other else 0.0
    return f"{share:.0%} less" if share >= _SAME else "about as much"


def _times(value: float, other: float) -> str:
    return f"{value / other:.1f} times" if other else "more of"
