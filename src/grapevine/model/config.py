"""Configurations: frozen dataclasses whose every field says what it means, where it comes from and what it allows.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class VitisConfig(Config):
        table_size: int = parameter(15, "links that a node may keep", source="Vitis §IV-A", low=4)

The command line makes its options, help texts and checks from these fields. A config that exists is valid: types and
limits are checked when it is made, whoever makes it, and all mistakes are raised at once. `model/settings.py` makes
configs from what users write.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from grapevine.model.errors import UsageError

MAX_COUNT = 2**31 - 1  # dense numbers are 32-bit
MAX_INT = 2**63 - 1  # what compiled code and Parquet hold
_WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check_seed(seed: int) -> None:
    """UsageError unless the seed can be a word of the counter hash."""
    if type(seed) is not int or not 0 <= seed <= MAX_INT:
        raise UsageError(f"seed={seed!r}: needs a whole number between 0 and 2**63 - 1")


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
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        wrong = {name: said for name, value in values.items() if (said := value_mistake(type(self), name, value))}
        mistakes = [f"{name}={values[name]!r}: {said}" for name, said in wrong.items()] or self.mistakes()
        if mistakes:
            raise UsageError("; ".join(mistakes))

    def mistakes(self) -> list[str]:
        """What the fields contradict in each other; asked only when each is allowed by itself."""
        return []

    def as_dict(self) -> dict[str, Any]:
        """Field names and values, as the manifest stores them."""
        return dataclasses.asdict(self)


def value_mistake(config: type[Config], name: str, value: Any) -> str | None:
    """What is wrong with this value of the field by itself: its type, that it is not finite, its limits, in this order.

    A whole number is a valid `float`; a bool is no number. The answer says what the field needs, without its name, so
    that callers can say where the value stood.
    """
    kind, allowed = field_types(config)[name], config.__dataclass_fields__[name].metadata
    if value is None and name in optional_fields(config):
        return None
    if choices := allowed.get("choices"):
        return None if type(value) is str and value in choices else f"choose one of {', '.join(choices)}"
    if type(value) is not kind and not (kind is float and type(value) is int):
        return f"needs {wanted(config, name)}"
    if isinstance(value, float) and not math.isfinite(value):
        return "needs a finite number"
    widest = MAX_INT if type(value) is int else math.inf
    low = -widest if allowed.get("low") is None else allowed["low"]
    high = widest if allowed.get("high") is None else allowed["high"]
    if isinstance(value, int | float) and not low <= value <= high:
        return f"needs at least {_plainly(low)}" if value < low else f"needs at most {_plainly(high)}"
    return None


def wanted(config: type[Config], name: str) -> str:
    """The field's type in words, e.g. `a whole number or none`."""
    kind = field_types(config)[name]
    return _WANTED[kind] + (" or none" if name in optional_fields(config) else "")


def field_types(config: type[Config]) -> dict[str, type]:
    """The plain type of every field, in the order of the fields; `int | None` counts as `int`."""
    return {name: _plain(hint) for name, hint in _hints(cast(Any, config)).items()}


def optional_fields(config: type[Config]) -> frozenset[str]:
    """The fields that may be None."""
    return frozenset(name for name, hint in _hints(cast(Any, config)).items() if type(None) in typing.get_args(hint))


@cache
def _hints(config: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(config)
    return {field.name: hints[field.name] for field in dataclasses.fields(config)}


def _plain(hint: Any) -> type:
    if isinstance(hint, types.UnionType):
        return next(_plain(part) for part in hint.__args__ if part is not type(None))
    return cast(type, hint)


def _plainly(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
