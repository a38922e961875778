"""The raw formats that `ingest` reads: for each, its columns, what makes a row unreadable, and what its rows mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from grapevine.pipeline.reasons import first_reason, no_reason, not_a_latency, not_a_time, not_one_of, number, unfit
from grapevine.pipeline.relate.base import Meaning
from grapevine.pipeline.relate.churn import ListedSessions, StateChanges, availability_times
from grapevine.pipeline.relate.latency import LatencyMatrices, LatencyPairs
from grapevine.pipeline.relate.lists import ItemsOfUsers, MembersOfItems
from grapevine.pipeline.relate.subscriptions import Relations

Check = Callable[[Column], Column]  # the row's fields → the reason to reject it, or null


def _any_row(fields: Column) -> Column:
    return no_reason()


@dataclass(frozen=True, slots=True)
class Format:
    """One raw format. This record is all that `ingest` knows of it: adding a format is adding an entry to `FORMATS`."""

    name: str
    summary: str
    meaning: Meaning  # what rows become
    columns: tuple[str, ...]  # the leading columns that are read
    check: Check = _any_row
    numeric: tuple[int, ...] = ()  # positions that hold numbers, which also tells a header from data
    more_columns: bool = False  # whether further columns are allowed (and ignored)
    named: tuple[int, ...] = ()  # positions that hold names
    delimiter: str | None = None  # where the format fixes it
    lists: bool = False  # every column is a name, and a line has any number of them


def _edit(fields: Column) -> Column:
    return not_a_time(fields[2], "time")


UP_WORDS, DOWN_WORDS = ("up", "join"), ("down", "leave")
ADD_WORDS, REMOVE_WORDS, UPDATE_WORDS = ("add", "0"), ("remove", "1"), ("update", "2")


def _up_down(fields: Column) -> Column:
    return first_reason(not_a_time(fields[0], "time"), not_one_of(fields[2], "state", UP_WORDS + DOWN_WORDS))


def _machine_event(fields: Column) -> Column:
    known = ADD_WORDS + REMOVE_WORDS + UPDATE_WORDS
    return first_reason(not_a_time(fields[0], "time"), not_one_of(fields[2], "event", known))


def _availability(fields: Column) -> Column:
    times, sessions = availability_times(fields), number(fields[1])
    unordered = F.exists(
        F.sequence(F.lit(1), F.size(times) - 1), lambda i: F.element_at(times, i) > F.element_at(times, i + 1)
    )
    return first_reason(
        F.when(
            ~fields[1].rlike(r"^\d{1,9}$"), F.concat(F.lit("number of sessions is "), F.substring(fields[1], 1, 40))
        ),
        F.when(F.exists(times, unfit), F.lit("a time is not a number of zero or more seconds")),
        F.when(
            F.size(times) != 2 * sessions,
            F.concat(F.lit("has "), F.size(times).cast("string"), F.lit(" times for "), fields[1], F.lit(" sessions")),
        ),
        F.when(F.when(F.size(times) >= 2, unordered).otherwise(F.lit(False)), F.lit("times do not grow")),
    )


def _latency_pair(fields: Column) -> Column:
    return not_a_latency(fields[2], "latency")


FORMATS = {
    format.name: format
    for format in (
        Format(
            "follows",
            "who follows whom; following is subscribing to the followee's topic",
            Relations(social=True),
            ("follower", "followee"),
            named=(0, 1),
        ),
        Format(
            "mutual-follows",
            "who follows whom, of which only those count who follow each other; both subscribe to the other's topic",
            Relations(social=True, mutual=True),
            ("follower", "followee"),
            named=(0, 1),
        ),
        Format(
            "friends",
            "undirected friendships; friends subscribe to each other's topics",
            Relations(social=True, both_ways=True),
            ("user", "friend"),
            named=(0, 1),
        ),
        Format(
            "pairs",
            "users and the items they subscribe to",
            Relations(),
            ("user", "item"),
            named=(0, 1),
        ),
        Format(
            "adjacency",
            "a line per user: its name, then the items it subscribes to",
            ItemsOfUsers(),
            ("user", "item"),
            more_columns=True,
            named=(0, 1),
            lists=True,
        ),
        Format(
            "members",
            "a line per item: the users who subscribe to it, as in lists of communities",
            MembersOfItems(),
            ("user",),
            more_columns=True,
            named=(0,),
            lists=True,
        ),
        Format(
            "edits",
            "timed edits; editing is subscribing, and edits per day are the item's rate",
            Relations(seconds=2),
            ("user", "item", "seconds"),
            _edit,
            numeric=(2,),
            named=(0, 1),
        ),
        Format(
            "avt",
            "availability in Godfrey's form: name, sessions, start end start end …",
            ListedSessions(),
            ("name", "sessions"),
            _availability,
            numeric=(1,),
            more_columns=True,
            named=(0,),
            delimiter="space",
        ),
        Format(
            "updown",
            "state changes: time, node, up or down",
            StateChanges(up=UP_WORDS),
            ("seconds", "node", "state"),
            _up_down,
            numeric=(0,),
            named=(1,),
        ),
        Format(
            "machine-events",
            "Google cluster machine_events: time (µs), machine, ADD/REMOVE/UPDATE (0/1/2), …",
            StateChanges(up=ADD_WORDS, ignored=UPDATE_WORDS, units_per_second=1e6),
            ("microseconds", "machine", "event"),
            _machine_event,
            numeric=(0,),
            more_columns=True,
            named=(1,),
            delimiter="comma",
        ),
        Format(
            "latency-matrix",
            "square matrices of round-trip times in ms, one file per time slice",
            LatencyMatrices(),
            (),
            more_columns=True,
        ),
        Format(
            "latency-pairs",
            "from, to, round-trip time in ms",
            LatencyPairs(),
            ("from", "to", "milliseconds"),
            _latency_pair,
            numeric=(2,),
            more_columns=True,
            named=(0, 1),
        ),
    )
}
