"""Numbers and names as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

# Measures that are shares: shown as percentages wherever a plot does not say otherwise.
SHARES = {"hit_ratio", "overhead", "nodes_over_20_percent", "connected_topics", "ring"}

_NAMES = {
    "hops": "hops, mean",
    "hops_p50": "hops, median",
    "hops_p95": "hops, p95",
    "hops_p99": "hops, p99",
    "hops_max": "hops, max",
    "notifications_per_event": "notifications per event",
    "duplicates_per_event": "duplicates per event",
    "relays_per_event": "relays per event",
    "nodes_over_20_percent": "nodes with over 20% overhead",
    "degree": "degree, mean",
    "degree_max": "degree, max",
    "clusters_per_topic": "clusters per topic",
    "connected_topics": "topics in one cluster",
    "gateways_per_topic": "gateways per topic",
    "ring": "ring correctness",
    "lookup_hops": "hops of a lookup",
    "wall_s": "wall time, s",
    "cpu_s": "CPU time, s",
}


def measure_name(key: str) -> str:
    """A measure's key in words."""
    return _NAMES.get(key, parameter_name(key))


def parameter_name(key: str) -> str:
    """A parameter's key in words."""
    return key.replace("_", " ")


def number(value: Any, *, percent: bool = False) -> str:
    """One value: 12,345 or 0.1234 or 9.04%; a dash for what is not there."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if percent:
        return f"{value:.2%}"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def interval(mean: float, half: float, *, percent: bool = False) -> str:
    """A mean with half its confidence interval, both to the digits that the interval supports."""
    if not half > 0 or not math.isfinite(half):
        return number(mean, percent=percent)
    if percent:
        return f"{mean:.2%} ± {half:.2%}"
    digits = max(0, min(3, 1 - math.floor(math.log10(half))))
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"


def duration(seconds: float | None) -> str:
    """Seconds as 0.4 s, 3 min 20 s or 2 h 5 min."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def value_name(value: Any) -> str:
    """A parameter's value; JSON's null is what the command line calls `none`."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else number(value)


def setting(key: str, value: Any) -> str:
    """A parameter with its value, as one label."""
    return f"{parameter_name(key)} {value_name(value)}"


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def count(many: int, one: str, more: str | None = None) -> str:
    """1 run, 2 runs."""
    return f"{many:,} {one if many == 1 else more or one + 's'}"


def seed_range(seeds: Iterable[int]) -> str:
    """1, 2, 5 — and 1–20 where none is left out."""
    ordered = sorted(set(seeds))
    if len(ordered) > 3 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}–{ordered[-1]}"
    return ", ".join(map(str, ordered))


def sentence(text: str) -> str:
    """With a capital at the start, whatever else is in it."""
    return text[:1].upper() + text[1:]
