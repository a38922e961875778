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


def _cache_folder() -> Path:
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sorted(package.rglob("*.py")):
        content = source.read_bytes()
        if b"@njit" in content:
            digest.update(content)
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(base) / digest.hexdigest()[:16]
    beside = package / "__pycache__"
    if os.access(beside if beside.exists() else package, os.W_OK):
        return beside / f"kernels-{digest.hexdigest()[:16]}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not os.access(home if home.exists() else home.parent, os.W_OK):
        home = Path(tempfile.gettempdir()) / f"grapevine-{os.getuid()}"
    return home / "grapevine" / f"kernels-{digest.hexdigest()[:16]}"


numba.config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]


def njit(function: F) -> F:
    """Compile to machine code once; later processes load the compiled code from the cache."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
