"""Output folders that appear whole or not at all: written under a hidden name beside the target, then renamed."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grapevine.model.errors import UsageError
from grapevine.model.manifest import read_manifest

_active: set[Path] = set()  # what this process is writing right now


@contextmanager
def new_folder(target: Path, *, kind: str, force: bool) -> Iterator[Path]:
    """Yield a folder to write a `kind` into; it becomes `target` when the block ends well, and vanishes otherwise.

    UsageError if `target` exists and `force` is not given, or holds anything but a complete folder of this kind, or
    cannot be written. The block writes the manifest last. A killed process leaves at most hidden `.NAME.partial-PID-…`,
    which nothing reads and the next run removes.
    """
    if "://" in str(target) or ":/" in str(target):
        raise UsageError(f"{target}: outputs go to a local or shared file system, not to a URL; give a path")
    target = Path(target).resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(target)
        _refuse_unless_replaceable(target, kind, force=force)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-{os.getpid()}-", dir=target.parent))
        partial.chmod(0o755)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}); choose another --out") from None
    _active.add(partial)
    try:
        yield partial
        _swap(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _active.discard(partial)


def _refuse_unless_replaceable(target: Path, kind: str, *, force: bool) -> None:
    """`force` replaces only what Grapevine wrote, and only by the same kind of thing."""
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"{target}: is a file; choose another --out")
    if not force:
        raise UsageError(f"{target}: exists already; choose another --out or replace it with --force")
    if any(target.iterdir()):
        try:
            read_manifest(target, kind)
        except UsageError as error:
            raise UsageError(f"--force replaces only a {kind} that Grapevine wrote; {error}") from None


def _swap(partial: Path, target: Path) -> None:
    """Rename the written folder to its name; what was there is moved away before and removed after."""
    if not target.exists():
        partial.rename(target)
        return
    old = Path(f"{partial}".replace(f".{target.name}.partial-", f".{target.name}.replaced-"))
    target.rename(old)
    try:
        partial.rename(target)
    except BaseException:
        if not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _clear_leftovers(target: Path) -> None:
    """Remove what killed runs left; bring back a folder that was moved away but not yet replaced."""
    for kind in ("replaced", "partial"):
        for name in target.parent.glob(f".{glob.escape(target.name)}.{kind}-*"):
            pid = name.name.split(f".{kind}-", 1)[1].split("-")[0]
            if name in _active or not pid.isdigit() or (int(pid) != os.getpid() and _alive(int(pid))):
                continue
            if kind == "replaced" and not target.exists():
                name.rename(target)
            else:
                shutil.rmtree(name, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True
