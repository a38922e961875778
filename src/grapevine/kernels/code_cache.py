"""Where compiled code is kept, so that it can be trusted: in a folder named after all sources that it was made of.

numba renews a cached function when its own file changes, but not when a function that it calls, or a constant that it
reads, changes in another file. So compiled code lies in a folder that is named after the content of the function's
file and of all our modules that this one imports, directly or through others: an edit starts a new folder for whatever
may depend on it, and leaves the rest alone.

Compiled code also remembers the name of its module, and imports it when it is loaded. A file that is run has another
name than one that is imported, so it has a folder for each: otherwise running it would import it, too.

Processes that start together (Spark's workers, those of the test suite) want the same functions at the same time. The
first to come compiles and the others wait for it, then load what it stored: a lock a function, held while it compiles.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

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
def folder_for(file: Path, *, is_run: bool = False) -> Path:
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
def one_process_at_a_time(folder: Path, name: str) -> Iterator[None]:
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
