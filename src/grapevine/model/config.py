"""Configurations: frozen dataclasses whose every field says what it means, where it comes from and what it allows.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class VitisConfig(Config):
        table_size: int = parameter(15, "links that a node may keep", source="Vitis §IV-A", low=4)

The command line makes its options, help texts and checks from these fields; all mistakes are raised at once.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from typing import Any

from grapevine.model.errors import UsageError

MAX_COUNT = 2**31 - 1  # dense numbers are 32-bit


def check_seed(seed: int) -> None:
    """Seeds are words of the counter hash."""
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed={seed}: needs to lie between 0 and 2**63 - 1")


def parameter(
    default: Any,
    help: str,
    *,
    source: str,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A config field with its meaning, its origin (a paper's section, or `ours: why`) and what it allows."""
    metadata = {"help": help, "source": source, "low": low, "high": high, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Base of every configuration: checks itself when it is made."""

    def __post_init__(self) -> None:
        fields = dataclasses.fields(self)
        mistakes = [mistake for field in fields if (mistake := field_mistake(field, getattr(self, field.name)))]
        mistakes = mistakes or self.mistakes()
        if mistakes:
            raise UsageError("; ".join(mistakes))

    def mistakes(self) -> list[str]:
        """What the fields contradict in each other; asked only when each is allowed by itself."""
        return []

    def as_dict(self) -> dict[str, Any]:
        """Field names and values, as the manifest stores them."""
        return dataclasses.asdict(self)


def field_mistake(field: dataclasses.Field[Any], value: Any) -> str | None:
    """What is wrong with this value of the field by itself."""
    low, high = field.metadata.get("low"), field.metadata.get("high")
    choices = field.metadata.get("choices")
    if choices is not None:
        return None if value in choices else f"{field.name}={value!r}: choose one of {', '.join(choices)}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{field.name}={value}: needs a finite number"
    if low is not None and value is not None and value < low:
        return f"{field.name}={value}: needs at least {low:g}"
    if high is not None and value is not None and value > high:
        return f"{field.name}={value}: needs at most {high:g}"
    return None


def field_types(config: type[Config]) -> dict[str, type]:
    """The plain type of every field; `int | None` counts as `int`."""
    hints = typing.get_type_hints(config)
    return {field.name: _plain(hints[field.name]) for field in dataclasses.fields(config)}


def _plain(hint: Any) -> type:
    if isinstance(hint, types.UnionType):
        return next(_plain(part) for part in hint.__args__ if part is not type(None))
    return typing.cast(type, hint)
