"""Results stay what they are until somebody means to change them."""

from __future__ import annotations

import pytest

from tests import digests
from tests.digests import Case


def test_every_system_and_driver_is_written_down() -> None:
    assert sorted(digests.read()) == sorted(map(str, digests.cases()))


@pytest.mark.parametrize("case", digests.cases(), ids=str)
def test_a_result_is_what_it_was(case: Case) -> None:
    assert digests.digests_of(case) == digests.read()[str(case)]
