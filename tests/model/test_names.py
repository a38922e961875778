"""Names in natural order, as Spark numbers them (`tests/pipeline/test_ingest.py` has that side)."""

from __future__ import annotations

import pytest

from grapevine.model.errors import UsageError
from grapevine.model.names import as_texts, natural_order


def test_numbers_come_by_value_and_texts_after_them() -> None:
    names = ["b", "10", "9", "-3", "a", "1.5", "99999999999999999999", "ä", "Z", "9"]
    assert natural_order(names) == ["-3", "9", "10", "1.5", "99999999999999999999", "Z", "a", "b", "ä"]


def test_two_names_of_one_text_are_refused() -> None:
    assert as_texts([1, "a", 1], "node") == {1: "1", "a": "a"}
    with pytest.raises(UsageError, match="node 1: is given as"):
        as_texts([1, "1"], "node")
