"""`njit` with a cache that can be trusted, and with its type kept, so that strict type checks see through it.

numba renews a cached function when its own file changes, but not when a function that it calls changes in another file.
So the cache's folder is named after the content of all our sources that compile: an edit of any starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


_PACKAGE = Path(__file__).resolve().parents[1]


def _digest_sources() -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sorted(_PACKAGE.rglob("*.py")):
        content = source.read_bytes()
        if b"@njit" in content:
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


def njit(function: F) -> F:
    """Compile to machine code once; later processes load the compiled code from the cache."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
