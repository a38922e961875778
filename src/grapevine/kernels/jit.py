"""`njit` with a cache that can be trusted, and with its type kept, so that strict type checks see through it.

numba renews a cached function when its own file changes, but not when a function that it calls, or a constant that it
reads, changes in another file. So compiled code lies in a folder that is named after the content of the function's
file and of all our modules that this one imports, directly or through others: an edit starts a new folder for whatever
may depend on it, and leaves the rest alone.

Compiled code also remembers the name of its module, and imports it when it is loaded. A file that is run has another
name than one that is imported, so it has a folder for each: otherwise running it would import it, too. What no file
holds, such as a cell of a notebook, is compiled and not kept.

Processes that start together (Spark's workers, those of the test suite) want the same functions at the same time. The
first to come compiles and the others wait for it, then load what it stored: a lock a function, held while it compiles.
Functions do not call each other in circles, so nobody waits for somebody who waits for it; and within a process numba's
own lock, which is taken first, lets one thread compile at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

_log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^\s*(?:from grapevine([\w.]*) import (\([^)]*\)|.*)|import grapevine([\w.]*))", re.MULTILINE)


def sources_of(file: Path, package: Path) -> list[Path]:
    """The file and all modules of the package that it imports, directly or through others, in the order of names."""
    found, waiting = set[Path](), [file]
    while waiting:
        if (source := waiting.pop()) not in found:
            found.add(source)
            waiting += _imported(source, package)
    return sorted(found)


@cache
def _imported(source: Path, package: Path) -> list[Path]:
    """The modules of the package that this file imports; of `from a import b` both a and a.b, if they are modules."""
    named: set[str] = set()
    for module, names, alone in _IMPORT.findall(source.read_text()):
        named |= {module or alone, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    paths = [package.joinpath(*name.strip(".").split(".")) for name in named]
    modules = [module for path in paths for module in (path.with_suffix(".py"), path / "__init__.py")]
    return [module for module in modules if module.is_file()]


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sources:
        digest.update(hashlib.sha1(source.read_bytes(), usedforsecurity=False).digest())
    return digest.hexdigest()[:16]


@cache
def _folder_for(file: Path, *, is_run: bool = False) -> Path:
    """Where compiled functions of this file, imported or run, are kept while neither it nor what it imports changes."""
    return _cache_folder() / f"{file.stem}-{_digest(sources_of(file, _PACKAGE))}{'-run' if is_run else ''}"


def _cache_folder() -> Path:
    """Where all compiled code is kept: where numba is told to, beside the package, or in the user's cache."""
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(base)
    beside = _PACKAGE / "__pycache__"
    if os.access(beside if beside.exists() else _PACKAGE, os.W_OK):
        return beside / "kernels"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not os.access(home if home.exists() else home.parent, os.W_OK):
        home = Path(tempfile.gettempdir()) / f"grapevine-{os.getuid()}"
    return home / "grapevine" / "kernels"


@contextmanager
def _one_process_at_a_time(folder: Path, name: str) -> Iterator[None]:
    """Wait until no other process is in here under this name. Where there is no place for a lock, nobody waits."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed, or the process is gone
        yield


@contextmanager
def compiling_told(whose: str, tell: Callable[[str], None] = _log.warning) -> Iterator[None]:
    """Say in one line that the block takes longer than the next time, as soon as it has to compile something.

    `whose` kernels they are stands in the line. What was compiled before is loaded without a word. `tell` is called
    once at most, on the thread that compiles; by default the line is logged, which shows it on the error stream of
    programs that have not set logging up.
    """
    with event.install_listener("numba:compile", _Once(f"compiling kernels for {whose}, once: about a minute", tell)):
        yield


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


def _cached(function: F, **options: Any) -> F:
    file, folder = Path(function.__code__.co_filename), None
    if file.is_file():
        folder = _folder_for(file, is_run=function.__module__ == "__main__")
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined] # numba looks once, when it sees the function
    compiled = numba.njit(cache=folder is not None, nogil=True, **options)(function)
    compile_here, narrow = compiled.compile, bool(options)

    def compile_once(signature: Any) -> Any:
        common = tuple(_common(kind, narrow) for kind in signature) if isinstance(signature, tuple) else signature
        alone = nullcontext() if folder is None else _one_process_at_a_time(folder, function.__qualname__)
        with global_compiler_lock, alone:
            return compile_here(common)

    compiled.compile = compile_once
    return cast(F, compiled)
