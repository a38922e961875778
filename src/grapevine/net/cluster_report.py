"""What a cluster tells of a run: how far it has come, how things stand, and in the end what was measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from grapevine.net.orders import Report
from grapevine.net.tally import Tally
from grapevine.net.worker import Worker


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters of all groups together; what each means is said in `Report`."""

    messages: int = 0
    bytes: int = 0
    recovered: int = 0
    failures: int = 0
    damaged: int = 0
    cpu_s: float = 0.0

    def __add__(self, other: Report | Totals) -> Totals:
        return Totals(*(getattr(self, name) + getattr(other, name) for name in Totals.__slots__))

    def __sub__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, name) - getattr(other, name) for name in Totals.__slots__))


@dataclass(slots=True)
class Course:
    """How far a run has come, and what it has counted besides the `Tally`. The cluster writes it."""

    stage: str = "starting"  # for people: starting, connecting, publishing, waiting
    connected: float = 0.0  # share of topics whose subscribers exchange events
    lost_groups: int = 0  # processes that ended and were not told to
    events: int = 0  # ordered
    skipped: int = 0  # not ordered, because all who might publish were down
    ended: Totals = field(default_factory=Totals)  # of sessions of groups that are over
    before: Totals = field(default_factory=Totals)  # until publishing began
    late_s: list[float] = field(default_factory=list)  # how far loops were behind their work, report by report
    times: dict[str, float] = field(default_factory=lambda: {"opened": time.monotonic()})

    def reach(self, point: str, stage: str | None = None) -> None:
        """Note when a point of the run was reached."""
        self.times[point] = time.monotonic()
        self.stage = stage or self.stage

    def begin_publishing(self, workers: Sequence[Worker]) -> None:
        """What is measured is measured from the first time that this is called."""
        self.stage = "publishing"
        if "publishing" not in self.times:
            self.before = self.total(workers)
            self.late_s.clear()
            self.reach("publishing")

    def late(self, seconds: float) -> None:
        """A group's loop was so far behind; while groups start, that says nothing."""
        if self.stage != "starting":
            self.late_s.append(seconds)

    def total(self, workers: Sequence[Worker]) -> Totals:
        """Counters of all groups, also of those that have ended."""
        total = self.ended
        for worker in workers:
            if worker.last is not None:
                total += worker.last
        return total


def snapshot(course: Course, workers: Sequence[Worker], tally: Tally, down: Set[int]) -> dict[str, Any]:
    """How things stand now; `grapevine cluster` shows it every second."""
    reports = [worker.last for worker in workers if worker.last is not None]
    up = sum(report.up for report in reports)
    total, (found, expected) = course.total(workers), tally.delivered(down)
    p50, p99 = tally.delay_ms(0.5, 0.99)
    return {
        "stage": course.stage,
        "time_s": time.monotonic(),
        "nodes": up,
        "connected": course.connected,
        "degree": sum(r.degree for r in reports) / up if up else 0.0,
        "degree_max": max((r.degree_max for r in reports), default=0),
        "connections": sum(r.connections for r in reports) / up if up else 0.0,
        "connections_max": max((r.connections_max for r in reports), default=0),
        "published": tally.published,
        "delivered": found,
        "hit_ratio": found / expected if expected else None,
        "delay_ms_p50": p50,
        "delay_ms_p99": p99,
        "messages": total.messages,
        "cpu_s": total.cpu_s,
        "rss_per_node_bytes": sum(r.rss_bytes for r in reports) // up if up else 0,
        "groups": [
            {
                "group": worker.number,
                "nodes": report.up,
                "degree": report.degree / max(report.up, 1),
                "degree_max": report.degree_max,
                "connections": report.connections / max(report.up, 1),
                "connections_max": report.connections_max,
                "messages": report.messages,
                "cpu_s": report.cpu_s,
                "rss_bytes": report.rss_bytes,
            }
            for worker in workers
            if (report := worker.last) is not None
        ],
    }


def summary(
    about: Mapping[str, Any], course: Course, workers: Sequence[Worker], tally: Tally, down: Set[int]
) -> dict[str, Any]:
    """What was measured, from the first event to the last delivery. `about`: system, topics and subscriptions."""
    now, times = snapshot(course, workers, tally, down), course.times
    (found, expected), spent = tally.delivered(down), course.total(workers) - course.before
    begun, over = times.get("publishing", time.monotonic()), times.get("over", time.monotonic())
    seconds, nodes = max(over - begun, 1e-9), max(now["nodes"], 1)
    delay = dict(zip(("p50", "p99", "max"), tally.delay_ms(0.5, 0.99, 1.0), strict=True))
    recovery = dict(zip(("p50", "p99"), tally.recovery_ms(0.5, 0.99), strict=True))
    return {
        "system": about["system"],
        "nodes": now["nodes"],
        "nodes_down": len(down),
        "topics": about["topics"],
        "subscriptions": about["subscriptions"],
        "processes": len(workers),
        "lost_processes": course.lost_groups,
        "topics_connected": course.connected,
        "start_s": times.get("up", over) - times["opened"],
        "connect_s": times.get("ready", over) - times.get("up", over),
        "events": tally.published,
        "events_per_s": tally.published / max(times.get("published", over) - begun, 1e-9),
        "without_path": tally.refused,
        "skipped": course.skipped,
        "unconfirmed": course.events - tally.published,
        "expected": expected,
        "delivered": found,
        "hit_ratio": found / expected if expected else None,
        "duplicates": tally.duplicates,
        "damaged": spent.damaged,
        "strays": tally.strays,
        "recovered": spent.recovered,
        "failures": spent.failures,
        **{f"delay_ms_{name}": value for name, value in delay.items()},
        **{f"recovery_ms_{name}": value for name, value in recovery.items()},
        **{name: now[name] for name in ("degree", "degree_max", "connections", "connections_max")},
        "messages_per_s_per_node": spent.messages / seconds / nodes,
        "bytes_per_s_per_node": spent.bytes / seconds / nodes,
        "bytes_per_delivery": spent.bytes / found if found else None,
        "cpu_s": spent.cpu_s,
        "late_ms": 1e3 * sum(course.late_s) / max(len(course.late_s), 1),
        "cpu_share_per_node": spent.cpu_s / seconds / nodes,
        "rss_per_node_bytes": now["rss_per_node_bytes"],
    }
