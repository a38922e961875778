"""Drafts: files and folders that are being written. Their names tell who writes, so that a later run knows a killed
one's.

A draft may be removed by others when its writer is gone: its process has ended, or, on a machine whose processes
cannot be seen from here, it began more than a day ago. Machines are told apart by their names. Who removes the draft of
a folder removes the file `_writing` first. A writer looks for that file before it commits, so that one that was taken
for dead does not commit what others have removed.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grapevine.model.location import Location, local_draft, remove, renames_at_once

WRITING = "_writing"  # is in the draft of a folder as long as its writer may commit it
_ABANDONED_S = 86_400  # no stage is expected to take a day; one that does is told when it was given up
_NAME = re.compile(r"(\d+)-(.*)-([0-9a-f]+)")

_at_work: set[Writer] = set()  # those of this process


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes a draft: a process of a machine, and since when (in ns of its clock), which tells two drafts apart."""

    pid: int
    host: str
    began_ns: int

    @classmethod
    def begin(cls) -> Writer:
        """A new one, of this process, at work until it is told to `finish`."""
        writer = cls(os.getpid(), _host(), time.time_ns())
        _at_work.add(writer)
        return writer

    @classmethod
    def parse(cls, text: str) -> Writer | None:
        """Of the text that `str` made; None for any other."""
        found = _NAME.fullmatch(text)
        return cls(int(found[1]), found[2], int(found[3], 16)) if found else None

    def __str__(self) -> str:
        return f"{self.pid}-{self.host}-{self.began_ns:x}"

    def finish(self) -> None:
        """Note that this writer of ours will not commit any more."""
        _at_work.discard(self)

    def is_gone(self) -> bool:
        """Whether it cannot commit any more, as far as can be told from here."""
        if self.host != _host():
            return time.time_ns() - self.began_ns > _ABANDONED_S * 1_000_000_000
        if self.pid == os.getpid():
            return self not in _at_work  # an earlier process had our number
        return not _alive(self.pid)


def left_behind(folder: Location, prefix: str) -> list[Location]:
    """What is in this folder whose name begins so and goes on with a writer that is gone."""
    found = []
    for entry in folder.iterdir():
        writer = Writer.parse(entry.name.removeprefix(prefix)) if entry.name.startswith(prefix) else None
        if writer is not None and writer.is_gone():
            found.append(entry)
    return found


@contextmanager
def whole_file(target: Location) -> Iterator[Path]:
    """A local path to write a file at; it takes the place of `target` when the block ends well.

    Where a rename is one step, so is that; elsewhere a store may show a part of the file while it arrives. Folders
    above it are made, and what killed runs left of the same file is removed. An OSError means that a local file cannot
    be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if not renames_at_once(target):
        with local_draft(target.parent) as folder:
            yield folder / target.name
        return
    prefix, writer = f".{target.name}.partial-", Writer.begin()
    partial = target.with_name(f"{prefix}{writer}")
    try:
        for found in left_behind(target.parent, prefix):
            remove(found)
        with local_draft(target.parent) as folder:
            yield folder / partial.name
        partial.replace(target)  # type: ignore[arg-type]  # both are paths, or both are in one store
    except BaseException:
        remove(partial)
        raise
    finally:
        writer.finish()


def write_whole(target: Location, text: str) -> None:
    """Write a file of this text in place of what was there; see `whole_file`."""
    with whole_file(target) as local:
        local.write_text(text, encoding="utf-8")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True
