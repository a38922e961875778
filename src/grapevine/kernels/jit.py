"""`njit` with a cache that can be trusted, and with its type kept, so that strict type checks see through it.

numba renews a cached function when its own file changes, but not when a function that it calls changes in another file.
So the cache's folder is named after the content of all our sources that compile: an edit of any starts a new one.

Processes that start together (Spark's workers, those of the test suite) want the same functions at the same time. The
first to come compiles and the others wait for it, then load what it stored: a lock a function, held while it compiles.
Functions do not call each other in circles, so nobody waits for somebody who waits for it; and within a process numba's
own lock, which is taken first, lets one thread compile at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])


_PACKAGE = Path(__file__).resolve().parents[1]
_COMPILES = re.compile(rb"^@(njit|borrowing|inlined|intrinsic)\b", re.MULTILINE)


def _digest_sources() -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sorted(_PACKAGE.rglob("*.py")):
        content = source.read_bytes()
        if _COMPILES.search(content):
            digest.update(content)
    return digest.hexdigest()


def _cache_folder() -> Path:
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(base) / SOURCES[:16]
    beside = _PACKAGE / "__pycache__"
    if os.access(beside if beside.exists() else _PACKAGE, os.W_OK):
        return beside / f"kernels-{SOURCES[:16]}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not os.access(home if home.exists() else home.parent, os.W_OK):
        home = Path(tempfile.gettempdir()) / f"grapevine-{os.getuid()}"
    return home / "grapevine" / f"kernels-{SOURCES[:16]}"


SOURCES = _digest_sources()  # what the results of compiled code depend on
numba.config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]


@contextmanager
def _one_process_at_a_time(name: str) -> Iterator[None]:
    """Wait until no other process is in here under this name. Where there is no place for a lock, nobody waits."""
    try:
        folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed, or the process is gone
        yield


def njit(function: F) -> F:
    """Compile to machine code once a machine; other and later processes load the compiled code from the cache."""
    return _cached(function)


def borrowing(function: F) -> F:
    """Like `njit`, for hot loops: arrays are borrowed from the caller and nobody counts who uses them.

    Counting takes an atomic operation wherever an array is named, and two threads that count the same array wait for
    each other: it took half the time of an exchange. Such a function must neither make nor return an array.
    """
    return _cached(function, _nrt=False)


def inlined(function: F) -> F:
    """A part of a `borrowing` function, under the same rule: its code becomes that of whoever calls it.

    A compiled call costs 30 - 60 ns, mostly for handing arrays over. Callers take longer to compile, so it is for few.
    """
    return _cached(function, forceinline=True, _nrt=False)


def _cached(function: F, **options: Any) -> F:
    compiled = numba.njit(cache=True, nogil=True, **options)(function)
    compile_here, name = compiled.compile, f"{function.__module__}.{function.__qualname__}"

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, _one_process_at_a_time(name):
            return compile_here(signature)

    compiled.compile = compile_once
    return cast(F, compiled)
