"""Why a field or a row cannot be read: native expressions that are null when it can."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


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
