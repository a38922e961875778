"""`njit` with the cache on and its type kept, so that strict type checks see through the decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F) -> F:
    """Compile to machine code once; later processes load the compiled code from the cache."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
