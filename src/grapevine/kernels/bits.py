"""Two machine instructions that numba has no name for: counting ones, and asking for a cache line ahead of its use.

Both are for compiled code alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray


@intrinsic
def _count_ones(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _ask_for(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        line = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(function, [line, word(0), word(3), word(1)])  # to read, to keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


# How many bits of the word are set.
count_ones = cast(Callable[[np.uint64], np.uint64], _count_ones)

# Begin to load the cache line of an entry of a contiguous array, by its flat index, without waiting for it. A hint:
# nothing but time depends on it, and an index out of range does no harm.
ask_for = cast(Callable[[NDArray[Any], int], None], _ask_for)
