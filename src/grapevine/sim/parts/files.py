"""The folder of a run in parts: arrays that all parts read, rows by version and part, and the note of what is done.

    shared/NAME-NUMBER.npy        profiles and the like; never changed, a new one gets a new number
    rows/VERSION/PART/FIELD.npy   rows of a part; appears whole, by a rename
    calls/VERSION/PART-WHAT/…     what came in a move, or was made in it, and is needed in the next
    note.json                     the last complete round, and where its rows are; replaced by a rename

The folder is on a file system that all workers share. Whoever repeats a move writes the same bytes, so the first to
finish wins and the others leave it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.rows import Rows
from grapevine.model.errors import GrapevineError
from grapevine.sim.parts.cells import VIEWS

Arrays = Mapping[str, NDArray[Any]]


def store(folder: Path, arrays: Arrays) -> None:
    """Write arrays as a folder that appears whole. If it is there already, it stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        partial.chmod(0o755)
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        partial.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            why = error.strerror or f"{error}; is the disk full?"  # numpy tells how much it wrote, and not why
            raise GrapevineError(f"{folder}: cannot be written ({why})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fetch(folder: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a folder, as copies that may be changed."""
    found = {file.stem: np.load(file, allow_pickle=False) for file in sorted(folder.glob("*.npy"))}
    if not found:
        raise GrapevineError(f"{folder}: a part of the run is missing; start it anew with --force")
    return found


def store_rows(folder: Path, rows: Rows) -> None:
    """Write the rows of a part."""
    store(folder, {name: getattr(rows, name) for name in VIEWS} | {f"of-{k}": v for k, v in rows.memory.items()})


def fetch_rows(folder: Path, row_sizes: NDArray[np.int32]) -> Rows:
    """The rows of a part, whose nodes have room for so many links each."""
    found = fetch(folder)
    starts = np.concatenate([[0], np.cumsum(row_sizes, dtype=np.int64)])
    memory = {name.removeprefix("of-"): array for name, array in found.items() if name.startswith("of-")}
    return Rows(starts, *(found[name] for name in VIEWS), memory=memory)


def share(folder: Path, name: str, array: NDArray[Any]) -> Path:
    """Write an array that all parts will read, under a name that nothing had before; returns where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".npy", dir=folder)
    with os.fdopen(handle, "wb") as file:
        np.save(file, array, allow_pickle=False)
    Path(path).chmod(0o644)
    return Path(path)


@lru_cache(maxsize=64)
def shared(path: Path) -> NDArray[Any]:
    """An array that all parts read, mapped into memory: pages are read when they are needed, and are one for all
    processes of a machine. It must not be written to, though it looks as if it could be (one type, one compilation)."""
    try:
        return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    except ValueError:  # an empty array cannot be mapped
        return np.load(path, allow_pickle=False)


def write_note(folder: Path, note: Mapping[str, Any]) -> None:
    """Note what is complete; whoever reads sees the old note or the new one."""
    partial = folder / ".note.partial"
    partial.write_text(json.dumps(note))
    partial.rename(folder / "note.json")


def read_note(folder: Path) -> dict[str, Any] | None:
    """What is complete; None if nothing is."""
    file = folder / "note.json"
    return json.loads(file.read_text()) if file.is_file() else None
