"""A process in which rules run as plain Python, whatever is installed, and answers calls from another.

A call is the name of a function, as `package.module:name`, and its arguments; the answer is what it returns and the
arguments as it leaves them. Both are pickled, one after the other, on the standard streams.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from typing import Any


def call(name: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Call the function, as rules run in this process, with copies of the arguments; what it returns and leaves."""
    module, _, function = name.partition(":")
    given = deepcopy(arguments)
    return getattr(import_module(module), function)(*given), given


class Plain:
    """The process, as another one sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def call(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """`call`, in the process."""
        assert self._process.stdin and self._process.stdout
        pickle.dump((name, arguments), self._process.stdin)
        self._process.stdin.flush()
        answer: tuple[Any, tuple[Any, ...]] = pickle.load(self._process.stdout)
        return answer


@contextmanager
def plain_rules() -> Iterator[Plain]:
    """The process, for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.kernels.plain_rules"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Plain(process)
        assert process.stdin
        process.stdin.close()


def _answer_calls() -> None:
    from grapevine.kernels.jit import COMPILES

    assert not COMPILES
    warnings.simplefilter("error")
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:  # nobody calls any more
            return
        pickle.dump(call(name, arguments), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _answer_calls()
