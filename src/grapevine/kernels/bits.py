"""Two machine instructions that numba has no name for: counting ones, and asking for a cache line ahead of its use.

Where rules run plainly (`jit`), these are functions of Python with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import COMPILES

if COMPILES:
    from grapevine.kernels.instructions import ask_for as _ask_for
    from grapevine.kernels.instructions import count_ones as _count_ones
else:

    def _count_ones(word: np.uint64) -> np.uint64:
        return np.uint64(int(word).bit_count())

    def _ask_for(array: NDArray[Any], index: int) -> None:
        return


# How many bits of the word are set.
count_ones = cast(Callable[[np.uint64], np.uint64], _count_ones)

# Begin to load the cache line of an entry of a contiguous array, by its flat index, without waiting for it. A hint:
# nothing but time depends on it, and an index out of range does no harm.
ask_for = cast(Callable[[NDArray[Any], int], None], _ask_for)
