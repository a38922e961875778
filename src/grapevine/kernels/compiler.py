"""numba as kernels use it: compiled once a machine, kept where `code_cache` says, with as few variants as will do.

Imported by `jit` alone, and only where numba is installed. What no file holds, such as a cell of a notebook, is
compiled and not kept. Functions do not call each other in circles, so no process that waits for another to compile
waits for one that waits for it; and within a process numba's own lock, which is taken first, lets one thread compile at
a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from grapevine.kernels.code_cache import folder_for, one_process_at_a_time

F = TypeVar("F", bound=Callable[..., Any])


def on_first_compilation(line: str, tell: Callable[[str], None]) -> AbstractContextManager[None]:
    """Tell the line once, as soon as something has to be compiled in the block; on the thread that compiles."""
    listening: AbstractContextManager[None] = event.install_listener("numba:compile", _Once(line, tell))
    return listening


class _Once(event.Listener):  # type: ignore[misc]
    """Tells a line when the first function begins to be compiled."""

    def __init__(self, line: str, tell: Callable[[str], None]) -> None:
        self._line, self._tell, self._told = line, tell, False

    def on_start(self, event: Any) -> None:
        if not self._told:
            self._told = True
            self._tell(self._line)

    def on_end(self, event: Any) -> None:
        return


def compiled(function: F, **options: Any) -> F:
    """The function as machine code, for these options of numba's; made or loaded when it is first called."""
    file, folder = Path(function.__code__.co_filename), None
    if file.is_file():
        folder = folder_for(file, is_run=function.__module__ == "__main__")
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined] # numba looks once, when it sees the function
    made = numba.njit(cache=folder is not None, nogil=True, **options)(function)
    compile_here, narrow = made.compile, bool(options)

    def compile_once(signature: Any) -> Any:
        common = tuple(_common(kind, narrow) for kind in signature) if isinstance(signature, tuple) else signature
        alone = nullcontext() if folder is None else one_process_at_a_time(folder, function.__qualname__)
        with global_compiler_lock, alone:
            return compile_here(common)

    made.compile = compile_once
    return cast(F, made)


def _common(kind: Any, narrow: bool) -> Any:
    """The type of an argument that a function is compiled for, so that fewer variants of it are.

    numba would compile a function again for a constant, and for each size of a number. Constants become numbers, and
    numbers have 64 bits unless they may stay `narrow`: hot loops compare them with entries of arrays, eight at once.
    """
    if isinstance(kind, types.Literal):
        kind = types.unliteral(kind)
    if isinstance(kind, (types.Tuple, types.UniTuple)):
        return types.Tuple.from_types([_common(each, narrow) for each in kind])
    if isinstance(kind, types.Integer) and kind.signed and not narrow:
        return types.int64
    return kind
