"""Arguments that are rows of numbers, checked as `arguments` checks single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapevine.model.arguments import refuse
from grapevine.model.errors import UsageError


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
