"""How numbers are written for people."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.model.numbers import interval, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (12345, "12,345"),
        (12345.0, "12,345"),
        (1234.56, "1,234.6"),
        (0.123456, "0.1235"),
        (True, "True"),
        ("a word", "a word"),
    ],
)
def test_a_number_has_the_digits_that_a_person_reads(value: Any, text: str) -> None:
    assert number(value) == text


def test_a_share_is_a_percentage() -> None:
    assert number(0.0904, percent=True) == "9.04%"
    assert number(1, percent=True) == "100.00%"
    assert number(None, percent=True) == "–"


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [(3.14159, 0.2, "3.14 ± 0.20"), (1234.5, 20.0, "1,234 ± 20"), (3.14159, 0.0, "3.142"), (2.0, float("inf"), "2")],
)
def test_a_mean_has_the_digits_that_its_interval_supports(mean: float, half: float, text: str) -> None:
    assert interval(mean, half) == text


def test_an_interval_of_a_share_is_in_percent() -> None:
    assert interval(0.5, 0.01, percent=True) == "50.00% ± 1.00%"
