"""Output folders that appear whole or not at all: written under a hidden name beside the target, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grapevine.model.errors import UsageError
from grapevine.model.manifest import FILE_NAME


@contextmanager
def new_folder(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder to write into; it becomes `target` when the block ends well and vanishes when it does not.

    A killed process leaves at most a hidden `.NAME.partial-PID`, which nothing reads and the next run removes.
    """
    target = Path(target).absolute()
    _refuse_unless_replaceable(target, force=force)
    partial = target.parent / f".{target.name}.partial-{os.getpid()}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        partial.mkdir()
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}); choose another --out") from None
    try:
        yield partial
        _swap(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_unless_replaceable(target: Path, *, force: bool) -> None:
    """Complain about an existing target before any work is done; `force` replaces only what Grapevine wrote."""
    if "://" in str(target) or ":/" in str(target):
        raise UsageError(f"{target}: outputs go to a local or shared file system, not to a URL; give a path")
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"{target}: is a file; choose another --out")
    ours = (target / FILE_NAME).is_file() or not any(target.iterdir())
    if force and not ours:
        raise UsageError(f"{target}: exists and was not written by Grapevine, so --force leaves it alone")
    if not force:
        raise UsageError(f"{target}: exists already; choose another --out or replace it with --force")


def _swap(partial: Path, target: Path) -> None:
    if not target.exists():
        partial.rename(target)
        return
    old = target.parent / f".{target.name}.replaced-{os.getpid()}"
    target.rename(old)
    partial.rename(target)
    shutil.rmtree(old)


def _remove_leftovers(target: Path) -> None:
    for leftover in [
        *target.parent.glob(f".{target.name}.partial-*"),
        *target.parent.glob(f".{target.name}.replaced-*"),
    ]:
        pid = leftover.name.rpartition("-")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(leftover, ignore_errors=True)
