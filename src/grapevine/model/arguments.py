"""Arguments of functions that are called from Python, checked as strictly as the options of commands.

Each function gives the argument as the code behind it takes it, or raises a UsageError of one sentence: what was given,
what is allowed, and what to do. numpy's numbers count as Python's, since notebooks are full of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NoReturn, TypeVar

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
    given = plain(value)
    if not isinstance(given, bool):
        refuse(name, value, "True or False")
    return given


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
    numpy = sys.modules.get("numpy")  # whoever has one of its numbers has imported it, and a node may do without
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value
