"""Where folders and files are kept: a path of this machine, or what a URL names.

A `Location` is a `pathlib.Path` or a `Remote`, which has the same names for what stages do with folders. So code that
only joins names, looks and lists serves both; what the two do differently is decided in the functions below and in
`model/folder.py`, and nowhere else. The remote ones are made by `pipeline/hadoop.py`: a path needs no Java.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from grapevine.model.arguments import path
from grapevine.model.errors import UsageError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class Remote(ABC):
    """A folder or a file at a URL, whether it is there or not. Methods named as those of `Path` promise the same.

    Whatever a store refuses or cannot do is a UsageError of one sentence, so callers need not handle it. Objects are
    for the Spark driver alone: tasks get local copies (`pipeline/shipping.py`).
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part of the path; empty for a root."""

    @property
    @abstractmethod
    def parent(self) -> Self:
        """The folder that it is in; of a root itself."""

    @property
    @abstractmethod
    def renames_at_once(self) -> bool:
        """Whether a rename is one step that nobody sees the middle of; on object stores it is copies and deletions."""

    @abstractmethod
    def __truediv__(self, name: str) -> Self: ...

    @abstractmethod
    def is_dir(self) -> bool:
        """Whether a folder is there; on an object store, whether anything is below it."""

    @abstractmethod
    def is_file(self) -> bool:
        """Whether a file is there."""

    @abstractmethod
    def iterdir(self) -> Iterator[Self]:
        """What is in the folder; nothing if it is not there, unlike `Path`."""

    @abstractmethod
    def glob(self, pattern: str) -> Iterator[Self]:
        """What matches the pattern below the folder, in no order; `*` stands for a part of a name."""

    @abstractmethod
    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the folder and those above it, unless they are there, whatever the arguments say."""

    @abstractmethod
    def rename(self, target: Self) -> Self:
        """Give it another name in the same store; FileExistsError if something has that name. Only where that is one
        step (`renames_at_once`)."""

    @abstractmethod
    def replace(self, target: Self) -> Self:
        """Give a file another name in the same store, in place of the file that has it. Only where that is one step."""

    @abstractmethod
    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file; no error if it is not there, whatever the argument says."""

    @abstractmethod
    def read_text(self, encoding: str | None = None) -> str:
        """The content of a small file."""

    @abstractmethod
    def fetch(self, local: Path) -> None:
        """Copy the file, or the folder with all that is in it, to a local path that is not there yet."""

    @abstractmethod
    def put(self, local: Path) -> None:
        """Copy a local file here in place of what was here; of a local folder, all that is in it into this folder.
        Others may see a part of a file while it is copied."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the file, or the folder with all that is in it; no error if it is not there."""

    def exists(self) -> bool:
        """Whether a file or a folder is there."""
        return self.is_file() or self.is_dir()

    def with_name(self, name: str) -> Self:
        """Its neighbour of this name."""
        return self.parent / name

    def resolve(self) -> Self:
        """Itself: a URL is whole."""
        return self

    absolute = resolve


Location = Path | Remote


def is_url(text: str) -> bool:
    """Whether a text that a user gave for a file or folder is a URL: a scheme of two letters or more, and `:/`."""
    return _URL.match(text) is not None


def as_location(given: str | Location) -> Location:
    """What callers from Python gave for a folder; UsageError for what is no path, and for a URL as text or `Path`,
    which only Spark can open."""
    if isinstance(given, Remote):
        return given
    if is_url(path("folder", given)):
        raise UsageError(f"{given}: is a URL; from Python, open it with `location` of grapevine.pipeline.stage.Stage")
    return Path(given)


def renames_at_once(location: Location) -> bool:
    """Whether what is there can be renamed in one step: paths, and those stores that say so."""
    return isinstance(location, Path) or location.renames_at_once


@contextmanager
def local_copy(location: Location) -> Iterator[Path]:
    """The file or folder as a local path to read while the block runs: a path itself, of a remote one a copy."""
    if isinstance(location, Path):
        yield location
        return
    with tempfile.TemporaryDirectory(prefix="grapevine-copy-") as scratch:
        local = Path(scratch) / (location.name or "copy")
        location.fetch(local)
        yield local


@contextmanager
def local_draft(folder: Location) -> Iterator[Path]:
    """A local folder to write into; what is in it when the block ends well is in `folder`, which is there already."""
    if isinstance(folder, Path):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="grapevine-draft-") as scratch:
        yield Path(scratch)
        folder.put(Path(scratch))


def remove(location: Location) -> None:
    """Remove a file, or a folder with all that is in it, as far as possible; no error if it is not there, or if
    something of it stays."""
    with suppress(OSError, UsageError):
        if isinstance(location, Remote):
            location.remove()
        elif location.is_dir():
            shutil.rmtree(location, ignore_errors=True)
        else:
            location.unlink(missing_ok=True)
