"""A store of files in memory that behaves like an object store, or renames in one step, and can die at any moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from grapevine.model.location import Remote


class Killed(BaseException):
    """The process was killed: nothing that it does after this reaches the store."""


class MemoryStore:
    """Contents by names such as `a/b/c`. Folders are there as long as something is in them.

    Every request counts. From request `dies_at` on none is answered, as if the process had been killed before it. A
    removal is several requests, and so is a file, which can be seen empty, and then half.
    """

    def __init__(self, *, renames_at_once: bool) -> None:
        self.renames_at_once = renames_at_once
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()  # made with mkdir
        self.requests = 0
        self.dies_at: int | None = None
        self.meanwhile: tuple[int, Callable[[], None]] | None = None  # what others do just before this request

    def ask(self) -> None:
        """Count a request."""
        if self.meanwhile is not None and self.requests == self.meanwhile[0]:
            _, others = self.meanwhile
            self.meanwhile = None
            others()
        if self.dies_at is not None and self.requests >= self.dies_at:
            raise Killed
        self.requests += 1

    def kills(self, at: int, work: Callable[[], None]) -> bool:
        """Do the work as a process that is killed before its request number `at`; False if it needs fewer."""
        self.requests, self.dies_at = 0, at
        try:
            work()
        except Killed:
            return True
        finally:
            self.dies_at = None
        return False

    def others_came(self) -> bool:
        """Whether the request before which others do something was made."""
        return self.meanwhile is None

    def below(self, name: str) -> list[str]:
        return sorted(file for file in self.files if file.startswith(f"{name}/"))


class MemoryLocation(Remote):
    """A name in a memory store."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self.store, self.path = store, path.strip("/")

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> MemoryLocation:
        return MemoryLocation(self.store, self.path.rpartition("/")[0])

    @property
    def renames_at_once(self) -> bool:
        return self.store.renames_at_once

    def __truediv__(self, name: str) -> MemoryLocation:
        return MemoryLocation(self.store, f"{self.path}/{name}")

    def __str__(self) -> str:
        return f"memory://{self.path}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryLocation) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def is_dir(self) -> bool:
        self.store.ask()
        return self.path in self.store.folders or bool(self.store.below(self.path))

    def is_file(self) -> bool:
        self.store.ask()
        return self.path in self.store.files

    def iterdir(self) -> Iterator[MemoryLocation]:
        self.store.ask()
        start = f"{self.path}/" if self.path else ""
        known = [*self.store.files, *self.store.folders]
        names = {name[len(start) :].split("/")[0] for name in known if name.startswith(start)}
        return iter([self / name for name in sorted(names)])

    def glob(self, pattern: str) -> Iterator[MemoryLocation]:
        self.store.ask()
        wanted = re.compile(re.escape(f"{self.path}/{pattern}").replace(r"\*", "[^/]*"))
        known = {"/".join(name.split("/")[: i + 1]) for name in self.store.files for i in range(name.count("/") + 1)}
        return iter([MemoryLocation(self.store, name) for name in sorted(known) if wanted.fullmatch(name)])

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        self.store.ask()
        if self.renames_at_once:  # object stores have no folders
            self.store.folders.add(self.path)

    def rename(self, target: MemoryLocation) -> MemoryLocation:
        assert self.renames_at_once, "nothing is renamed on an object store"
        self.store.ask()
        taken = {*self.store.files, *self.store.folders}
        if target.path in taken or self.store.below(target.path):
            raise FileExistsError(target.path)
        for name in [name for name in taken if name == self.path or name.startswith(f"{self.path}/")]:
            if name in self.store.folders:
                self.store.folders.remove(name)
                self.store.folders.add(target.path + name[len(self.path) :])
            else:
                self.store.files[target.path + name[len(self.path) :]] = self.store.files.pop(name)
        return target

    def replace(self, target: MemoryLocation) -> MemoryLocation:
        assert self.renames_at_once, "nothing is renamed on an object store"
        self.store.ask()
        self.store.files[target.path] = self.store.files.pop(self.path)
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        self.store.ask()
        self.store.files.pop(self.path, None)

    def remove(self) -> None:
        for name in [self.path, *self.store.below(self.path)]:
            self.unlink_part(name)
        self.store.folders = {name for name in self.store.folders if not f"{name}/".startswith(f"{self.path}/")}

    def unlink_part(self, name: str) -> None:
        self.store.ask()
        self.store.files.pop(name, None)

    def read_text(self, encoding: str | None = None) -> str:
        self.store.ask()
        return self.store.files[self.path].decode(encoding or "utf-8")

    def fetch(self, local: Path) -> None:
        if self.is_file():
            local.write_bytes(self.store.files[self.path])
            return
        for name in self.store.below(self.path):
            self.store.ask()
            file = local / name[len(self.path) + 1 :]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.store.files[name])

    def put(self, local: Path) -> None:
        if local.is_dir():
            for entry in sorted(local.iterdir()):
                (self / entry.name).put(entry)
            return
        content = local.read_bytes()
        for length in (0, len(content) // 2, len(content)):
            self.store.ask()
            self.store.files[self.path] = content[:length]
