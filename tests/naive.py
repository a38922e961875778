"""Slow, obvious oracles: plain Python, no numpy tricks, written from the definitions and not from the fast code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

WORD = 2**64


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def draw(*words: int) -> int:
    state = 0
    for word in words:
        state = mix(((state ^ word) + 0x9E3779B97F4A7C15) % WORD)
    return state


def tdi(interests: Sequence[set[int]], node: int, d: int) -> float:
    """SpiderCast §3.4: the mean of the d largest intersections with the others, percent of the smaller list."""
    mine = interests[node]
    percents = [
        100 * len(mine & other) / min(len(mine), len(other)) if mine and other else 0.0
        for i, other in enumerate(interests)
        if i != node
    ]
    best = sorted(percents, reverse=True)[:d]
    return sum(best) / len(best) if best else 0.0


def covered_by_friends(interests: Sequence[set[int]], node: int, most: int, tie: Callable[[int], int]) -> list[int]:
    """Rappel §1: topics covered by the first 1, 2, … friends, each covering most of what is still open."""
    open_topics, covered = set(interests[node]), []
    for _ in range(most):
        others = [i for i in range(len(interests)) if i != node and interests[i] & open_topics]
        if others:
            friend = max(others, key=lambda i: (len(interests[i] & open_topics), -tie(i)))
            open_topics -= interests[friend]
        covered.append(len(interests[node]) - len(open_topics))
    return covered


def gini(data: Sequence[int]) -> float:
    """Half the mean absolute difference over the mean."""
    mean = sum(data) / len(data)
    differences = sum(abs(a - b) for a in data for b in data) / len(data) ** 2
    return differences / (2 * mean) if mean else 0.0


def near(x: Sequence[float], y: Sequence[float], node: int, radius: float) -> list[int]:
    return [i for i in range(len(x)) if i != node and math.hypot(x[i] - x[node], y[i] - y[node]) <= radius]


def with_followees(
    followed: Sequence[Iterable[int]], rank: Sequence[int], roots: Iterable[int], wanted: int
) -> set[int]:
    kept: set[int] = set()
    for root in roots:
        if len(kept) < wanted:
            kept.add(root)
        new = sorted(set(followed[root]) - kept, key=lambda v: rank[v])
        kept |= set(new[: wanted - len(kept)])
    return kept


def breadth_first(
    followed: Sequence[Iterable[int]], rank: Sequence[int], roots: Sequence[int], at_once: int, wanted: int
) -> set[int]:
    kept: set[int] = set()
    waiting = list(roots)
    level = set(waiting[:at_once])
    waiting = waiting[at_once:]
    while len(kept) < wanted:
        if not level:
            if not waiting:
                break
            level = {waiting.pop(0)} - kept
            continue
        kept |= set(sorted(level, key=lambda v: rank[v])[: wanted - len(kept)])
        level = {target for vertex in level for target in followed[vertex]} - kept
    return kept
