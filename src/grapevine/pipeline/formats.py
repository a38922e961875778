"""The raw formats that `ingest` reads: for each, its columns, what makes a row unreadable, and what it turns into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

Check = Callable[[Column], Column]  # the row's fields → the reason to reject it, or null


@dataclass(frozen=True, slots=True)
class Format:
    """One raw format."""

    name: str
    summary: str
    makes: str  # subscriptions, churn or latency
    columns: tuple[str, ...]  # the leading columns that are read
    check: Check
    numeric: tuple[int, ...] = ()  # positions that hold numbers, which also tells a header from data
    more_columns: bool = False  # whether further columns are allowed (and ignored)
    named: tuple[int, ...] = ()  # positions that hold names
    delimiter: str | None = None  # where the format fixes it


def number(field: Column) -> Column:
    """The field as a number, or null."""
    return field.try_cast("double")


def no_reason() -> Column:
    """Null, of the right type."""
    return F.lit(None).cast("string")


def first_reason(*reasons: Column) -> Column:
    """The first reason that applies."""
    return F.coalesce(*reasons, no_reason())


def not_a_time(field: Column, what: str) -> Column:
    """A reason when the field is no finite number ≥ 0."""
    return _not_a_measure(field, what, "a time of zero or more seconds")


def not_a_latency(field: Column, what: str) -> Column:
    """A reason when the field is no finite number ≥ 0."""
    return _not_a_measure(field, what, "a latency of zero or more milliseconds")


def unfit(value: Column) -> Column:
    """Whether a number is missing, negative or not finite."""
    return value.isNull() | F.isnan(value) | (value < 0) | (value == float("inf"))


def _not_a_measure(field: Column, what: str, wanted: str) -> Column:
    return F.when(
        unfit(number(field)), F.concat(F.lit(f"{what} "), F.substring(field, 1, 40), F.lit(f" is not {wanted}"))
    )


def not_one_of(field: Column, what: str, allowed: tuple[str, ...]) -> Column:
    """A reason when the lower-cased field is none of these."""
    unknown = ~F.lower(field).isin(*allowed)
    return F.when(
        unknown, F.concat(F.lit(f"{what} "), F.substring(field, 1, 40), F.lit(f" is none of {', '.join(allowed)}"))
    )


def _any_pair(fields: Column) -> Column:
    return no_reason()


def _edit(fields: Column) -> Column:
    return not_a_time(fields[2], "time")


UP_WORDS, DOWN_WORDS = ("up", "join"), ("down", "leave")
ADD_WORDS, REMOVE_WORDS, UPDATE_WORDS = ("add", "0"), ("remove", "1"), ("update", "2")


def _up_down(fields: Column) -> Column:
    return first_reason(not_a_time(fields[0], "time"), not_one_of(fields[2], "state", UP_WORDS + DOWN_WORDS))


def _machine_event(fields: Column) -> Column:
    known = ADD_WORDS + REMOVE_WORDS + UPDATE_WORDS
    return first_reason(not_a_time(fields[0], "time"), not_one_of(fields[2], "event", known))


def availability_times(fields: Column) -> Column:
    """All times of an `.avt` row as numbers: start end start end …"""
    return F.transform(F.slice(fields, 3, F.greatest(F.size(fields) - 2, F.lit(0))), number)


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


def _matrix_row(fields: Column) -> Column:
    return no_reason()  # cells are judged one by one, with their column


def _latency_pair(fields: Column) -> Column:
    return not_a_latency(fields[2], "latency")


FORMATS = {
    format.name: format
    for format in (
        Format(
            "follows",
            "who follows whom; following is subscribing to the followee's topic",
            "subscriptions",
            ("follower", "followee"),
            _any_pair,
            named=(0, 1),
        ),
        Format(
            "friends",
            "undirected friendships; friends subscribe to each other's topics",
            "subscriptions",
            ("user", "friend"),
            _any_pair,
            named=(0, 1),
        ),
        Format(
            "pairs",
            "users and the items they subscribe to",
            "subscriptions",
            ("user", "item"),
            _any_pair,
            named=(0, 1),
        ),
        Format(
            "edits",
            "timed edits; editing is subscribing, and edits per day are the item's rate",
            "subscriptions",
            ("user", "item", "seconds"),
            _edit,
            numeric=(2,),
            named=(0, 1),
        ),
        Format(
            "avt",
            "availability in Godfrey's form: name, sessions, start end start end …",
            "churn",
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
            "churn",
            ("seconds", "node", "state"),
            _up_down,
            numeric=(0,),
            named=(1,),
        ),
        Format(
            "machine-events",
            "Google cluster machine_events: time (µs), machine, ADD/REMOVE/UPDATE (0/1/2), …",
            "churn",
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
            "latency",
            (),
            _matrix_row,
            more_columns=True,
        ),
        Format(
            "latency-pairs",
            "from, to, round-trip time in ms",
            "latency",
            ("from", "to", "milliseconds"),
            _latency_pair,
            numeric=(2,),
            more_columns=True,
            named=(0, 1),
        ),
    )
}
