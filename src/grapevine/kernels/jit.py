"""`njit` and its kin: rules become machine code where numba is installed, and stay what they are elsewhere.

A live node does without numba: its peers call rules a few times a round, on tables of a few dozen rows. So a rule is
one text with two ways to run, and both give the same result; `tests/kernels/test_plain.py` checks it for the rules that
peers call. For that their text keeps to what both mean alike:

1. Ids and hashes are `np.uint64`, with each other and with constants of that type. Their arithmetic wraps in machine
   code; run plainly, numpy wraps too and would warn, which is silenced while a rule runs.
2. Functions of floats are those of `math`, and sums over floats are loops: `np.log` and `np.sum` may round otherwise.
3. A whole number that is read from an array is not added to, beyond what its own type holds.

NUMBA_DISABLE_JIT=1, numba's own switch, has everything run plainly where numba is there, for a debugger or to save the
memory that numba takes.
Simulations need numba: some of their kernels are written in machine instructions (`lanes`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar, cast

_log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])

COMPILES = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and find_spec("numba") is not None

if COMPILES:
    from grapevine.kernels.compiler import compiled, on_first_compilation


def compiling_told(whose: str, tell: Callable[[str], None] = _log.warning) -> AbstractContextManager[None]:
    """Say in one line that the block takes longer than the next time, as soon as it has to compile something.

    `whose` kernels they are stands in the line. What was compiled before is loaded without a word. `tell` is called
    once at most, on the thread that compiles; by default the line is logged, which shows it on the error stream of
    programs that have not set logging up.
    """
    line = f"compiling kernels for {whose}, once: about a minute"
    return on_first_compilation(line, tell) if COMPILES else nullcontext()


def njit(function: F) -> F:
    """Compile to machine code once a machine; other and later processes load the compiled code from the cache."""
    return compiled(function) if COMPILES else _plain(function)


def borrowing(function: F) -> F:
    """Like `njit`, for hot loops: arrays are borrowed from the caller and nobody counts who uses them.

    Counting takes an atomic operation wherever an array is named, and two threads that count the same array wait for
    each other: it took half the time of an exchange. Such a function must neither make nor return an array.
    """
    return compiled(function, _nrt=False) if COMPILES else _plain(function)


def inlined(function: F) -> F:
    """A part of a `borrowing` function, under the same rule: its code becomes that of whoever calls it.

    A compiled call costs 30 - 60 ns, mostly for handing arrays over. Callers take longer to compile, so it is for few.
    """
    return compiled(function, forceinline=True, _nrt=False) if COMPILES else _plain(function)


_runs_a_rule: ContextVar[bool] = ContextVar("runs a rule", default=False)


def _plain(function: F) -> F:
    """The function as it is, but that its whole numbers wrap without a warning, as they do in machine code.

    Rules call rules, and numpy takes 1.5 µs to be told: so only the outermost one tells it.
    """
    import numpy as np  # here, since whoever has no rule to run needs none of it

    @wraps(function)
    def wrapping(*given: Any, **named: Any) -> Any:
        if _runs_a_rule.get():
            return function(*given, **named)
        before = _runs_a_rule.set(True)
        try:
            with np.errstate(over="ignore"):
                return function(*given, **named)
        finally:
            _runs_a_rule.reset(before)

    return cast(F, wrapping)
