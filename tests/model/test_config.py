from dataclasses import dataclass

import pytest

from grapevine.model.config import Config, field_types, parameter
from grapevine.model.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Example(Config):
    size: int = parameter(15, "links", source="§1", low=4, high=100)
    share: float | None = parameter(None, "share", source="§2", low=0)
    law: str = parameter("zipf", "law", source="§3", choices=("zipf", "uniform"))

    def mistakes(self) -> list[str]:
        return ["size=13: is unlucky"] if self.size == 13 else []


def test_all_mistakes_are_raised_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Example(size=3, share=-1.0, law="pareto")
    assert str(caught.value) == (
        "size=3: needs at least 4; share=-1.0: needs at least 0; law='pareto': choose one of zipf, uniform"
    )


@pytest.mark.parametrize("share", [float("nan"), float("inf")])
def test_numbers_must_be_finite(share: float) -> None:
    with pytest.raises(UsageError, match="finite"):
        Example(share=share)


def test_fields_are_checked_against_each_other() -> None:
    with pytest.raises(UsageError, match="unlucky"):
        Example(size=13)


def test_an_optional_field_has_the_type_of_its_value() -> None:
    assert field_types(Example) == {"size": int, "share": float, "law": str}
