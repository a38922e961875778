"""Two machine instructions that numba has no name for; `bits` names them. For compiled code alone."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """The bits of the word that are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def ask_for(typing_context: Any, array: Any, index: Any) -> Any:
    """A prefetch of the cache line of an entry."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        line = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(function, [line, word(0), word(3), word(1)])  # to read, to keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
