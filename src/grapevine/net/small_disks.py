"""Disks that can be filled: folders on small file systems in memory (tmpfs). Linux, and root, only."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

BYTES = 32 << 20  # of one disk
_BALLAST = "ballast"  # the file that takes all the room
_CHUNK = 1 << 16


class SmallDisk:
    """One folder on a disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave not a byte, until `empty`."""
        with (self.folder / _BALLAST).open("ab", buffering=0) as ballast:
            size = _CHUNK
            while size:
                try:
                    ballast.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def empty(self) -> None:
        """There is room again, for all but what nodes have written."""
        (self.folder / _BALLAST).unlink()


def obstacle() -> str | None:
    """Why they cannot be made here, in words that end a sentence; None if they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None:
        return "small disks need root, and the command `mount` of Linux"
    with (
        contextlib.suppress(subprocess.CalledProcessError),
        tempfile.TemporaryDirectory() as folder,
        small_disks([Path(folder)]),
    ):
        return None
    return "this machine mounts no file systems in memory"


@contextlib.contextmanager
def small_disks(folders: Iterable[Path]) -> Iterator[list[SmallDisk]]:
    """A disk for each of these folders, which are made; what is on them ends with the block."""
    made: list[SmallDisk] = []
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            _run(["mount", "-t", "tmpfs", "-o", f"size={BYTES},mode=700", "grapevine", str(folder)])
            made.append(SmallDisk(folder))
        yield made
    finally:
        for disk in made:
            _run(["umount", "--lazy", str(disk.folder)])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)
