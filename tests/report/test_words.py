"""Names, times and lists as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.model.card import counted
from grapevine.report.words import duration, listed, seed_range, sentence, setting, value_name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.42, "0.42 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7_500, "2 h 5 min")],
)
def test_a_time_is_told_in_two_units_at_most(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), (True, "true"), (15, "15"), (0.25, "0.25"), ("all", "all")]
)
def test_a_parameter_is_told_as_the_command_line_takes_it(value: Any, text: str) -> None:
    assert value_name(value) == text
    assert setting("table_size", value) == f"table size {text}"


@pytest.mark.parametrize(
    ("parts", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_ends_with_and(parts: list[str], text: str) -> None:
    assert listed(parts) == text


def test_one_is_told_apart_from_several() -> None:
    assert (counted(1, "run"), counted(2_000, "run"), counted(2, "topic's tree", "topics' trees")) == (
        "1 run",
        "2,000 runs",
        "2 topics' trees",
    )


def test_seeds_without_a_gap_are_a_range() -> None:
    assert seed_range([3, 1, 2, 4, 4]) == "1–4"
    assert seed_range([1, 2, 3]) == "1, 2, 3"
    assert seed_range([1, 2, 3, 9]) == "1, 2, 3, 9"


def test_a_sentence_keeps_capitals_of_its_own() -> None:
    assert sentence("overhead of OPT") == "Overhead of OPT"
    assert sentence("") == ""
