"""Files for their owner's eyes alone: a node's folder has mode 0700, and what is in it 0600, whatever they had before.

A umask decides what new files may be, and a folder that was there before has the mode that somebody gave it. Neither is
asked here: whoever opens a part of a data folder calls these first, so that no other user of the machine reads events.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from grapevine.model.errors import UsageError

_FOLDER, _FILE = 0o700, 0o600


def make_private_folder(folder: Path) -> None:
    """Make the folder if it is new, and keep others out of it; OSError where that cannot be.

    UsageError for a folder that is meant for everybody, such as /tmp: shutting others out would break what they do.
    """
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    mode = folder.stat().st_mode
    if mode & stat.S_ISVTX:
        raise UsageError(f"{folder}: this folder is for everybody's files; give the node one of its own")
    if stat.S_IMODE(mode) & ~_FOLDER:
        folder.chmod(_FOLDER)


def make_private_file(path: Path) -> None:
    """Make the file, empty, if it is new, and take it from others if it is not; OSError where that cannot be.

    One that is there is not opened: closing it again would end the locks that this process has on a database.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE))
    if stat.S_IMODE(path.stat().st_mode) & ~_FILE:
        path.chmod(_FILE)
