"""What a cluster tells of a run: counters outlive the processes that counted, and begin with the first event."""

from __future__ import annotations

from typing import Any

import msgspec

from grapevine.net.cluster_report import Course, Totals, snapshot, summary
from grapevine.net.orders import Report
from grapevine.net.tally import Tally

REPORT = Report(2, 6, 4, 5, 3, 100, 1_000, 7, 0, 0, 1.5, 4_000, 0.25, [])
ABOUT = {"system": "vitis", "topics": 1, "subscriptions": 3}


class Group:
    """A worker, as far as a report looks at it."""

    number = 0

    def __init__(self, last: Report | None) -> None:
        self.last = last


def groups(*reports: Report | None) -> Any:
    return [Group(report) for report in reports]


def test_counters_of_groups_that_have_ended_still_count() -> None:
    course = Course()
    course.ended += REPORT
    total = course.total(groups(REPORT, None))
    assert (total.messages, total.bytes, total.recovered, total.cpu_s) == (200, 2_000, 14, 3.0)


def test_only_what_happens_after_the_first_event_is_measured() -> None:
    course, tally = Course(), Tally(lambda topic: [0, 1, 2])
    course.late(9.0)  # while it starts
    course.reach("up", stage="connecting")
    course.late(9.0)
    course.begin_publishing(groups(REPORT))
    course.late(0.25)
    course.begin_publishing(groups(REPORT))  # a second time changes nothing
    course.events = 1
    tally.ordered(1, 0, 0)
    tally.confirmed(1, 0, None)
    tally.arrived(1, 1, 2_000)
    later = msgspec.structs.replace(REPORT, messages=150, bytes=1_500)
    course.reach("over")
    found = summary(ABOUT, course, groups(later), tally, set())
    assert (found["late_ms"], found["bytes_per_delivery"], found["recovered"]) == (250.0, 500.0, 0)
    assert (found["delivered"], found["expected"], found["hit_ratio"], found["delay_ms_p50"]) == (1, 2, 0.5, 2.0)
    assert (found["system"], found["topics"], found["nodes"], found["degree"]) == ("vitis", 1, 2, 2.5)


def test_a_cluster_that_has_said_nothing_yet_has_a_snapshot() -> None:
    course = Course()
    found = snapshot(course, groups(None, None), Tally(lambda topic: []), set())
    assert (found["stage"], found["nodes"], found["groups"], found["hit_ratio"]) == ("starting", 0, [], None)
    assert course.total(groups(None)) == Totals()
