"""Arguments of functions that are called from Python, checked as strictly as the options of commands.

Each function gives the argument as the code behind it takes it, or raises a UsageError of one sentence: what was given,
what is allowed, and what to do. numpy's numbers count as Python's, since notebooks are full of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapevine.model.config import MAX_INT
from grapevine.model.errors import UsageError

_Kind = TypeVar("_Kind")
_SHOWN = 60  # characters of a value that are worth repeating


def refuse(name: str, value: object, needs: str, cure: str = "") -> NoReturn:
    """Raise the sentence for an argument that `needs` to be something else; `cure` says what to give instead."""
    text = repr(value)
    given = f"={text}" if len(text) <= _SHOWN and "\n" not in text else f" of type {type(value).__name__}"
    raise UsageError(f"{name}{given}: needs {needs}{f'; {cure}' if cure else ''}")


def of_kind(name: str, value: object, kind: type[_Kind], cure: str = "") -> _Kind:
    """An object of this class."""
    if not isinstance(value, kind):
        refuse(name, value, f"a {kind.__name__}", cure)
    return value


def text(name: str, value: object) -> str:
    """A text of at least one character."""
    if not isinstance(value, str) or not value:
        refuse(name, value, "a text of at least one character")
    return str(value)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        refuse(name, value, "True or False")
    return bool(value)


def whole(name: str, value: object, low: int = 0, high: int = MAX_INT) -> int:
    """A whole number within these bounds."""
    number = plain(value)
    if type(number) is not int or not low <= number <= high:
        bounds = f"of {low} or more" if high == MAX_INT else f"from {low} to {high:,}"
        refuse(name, value, f"a whole number {bounds}")
    return number


def amount(name: str, value: object, unit: str = "") -> float:
    """A finite number of zero or more; `unit` says of what, for the answer."""
    number = plain(value)
    if type(number) not in (int, float) or not 0 <= number < math.inf:
        refuse(name, value, f"a number{f' of {unit}' if unit else ''}, zero or more")
    return float(number)


def function(name: str, value: _Kind, of: str) -> _Kind:
    """Something to call; `of` says with what, for the answer."""
    if not callable(value):
        refuse(name, value, f"a function of {of}")
    return value


def mapping(name: str, value: object, example: str) -> Mapping[Any, Any]:
    """A dict, or what is like one."""
    if not isinstance(value, Mapping):
        refuse(name, value, f"a dict, e.g. {example}")
    return value


def path(name: str, value: object) -> str:
    """The path of a folder or a file, as a text."""
    if not isinstance(value, str | PurePath) or not str(value):
        refuse(name, value, "a path, as a text or a pathlib.Path")
    return str(value)


def plain(value: object) -> Any:
    """A number of numpy's as one of Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def numbers_below(name: str, given: ArrayLike, count: int, *, low: int = 0) -> NDArray[np.int32]:
    """Whole numbers, each from `low` to count - 1, in one row. Kernels do not check bounds, so it is done here."""
    found = _row(name, given, "iu", "a list of whole numbers")
    if len(found) and not low <= found.min() <= found.max() < count:
        raise UsageError(f"{name} {found.min()} … {found.max()}: need to lie between {low} and {count - 1}")
    return found.astype(np.int32)


def amounts(name: str, given: ArrayLike, count: int) -> NDArray[np.float64]:
    """So many numbers, each finite and not below zero."""
    found = _row(name, given, "iuf", "a list of numbers").astype(np.float64)
    check_length(name, found, count)
    if wrong := np.count_nonzero(~((found >= 0) & (found < np.inf))):
        raise UsageError(f"{name}: {wrong:,} of them are no amounts; give finite numbers of zero or more")
    return found


def check_length(name: str, found: NDArray[Any], count: int) -> None:
    """UsageError unless there are so many."""
    if len(found) != count:
        raise UsageError(f"{name}: there are {len(found):,} of them; give {count:,}, one each")


def _row(name: str, given: ArrayLike, kinds: str, needs: str) -> NDArray[Any]:
    """An array of one dimension whose type is of these kinds of numpy's; an empty one is of any."""
    try:
        found = np.asarray(given)
    except (ValueError, TypeError):  # rows of different lengths
        refuse(name, given, needs)
    if found.ndim != 1 or (found.dtype.kind not in kinds and len(found)):
        refuse(name, given, needs)
    return found if len(found) else found.astype(np.int64)
