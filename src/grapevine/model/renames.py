"""Outputs where a rename is one step: written under a hidden name, then renamed. `model/folder.py` has the rules."""

from __future__ import annotations

from collections.abc import Iterator

from grapevine.model.drafts import WRITING, Writer, left_behind
from grapevine.model.errors import UsageError
from grapevine.model.location import Location, remove
from grapevine.model.manifest import FILE_NAME, read_manifest, stored_manifest
from grapevine.model.output import Output, came_second, discard, refuse_unless_replaceable

_COMMITTING = ".tables.committing"  # the draft of tables that are being moved; only one can have the name


class RenamedFolder(Output):
    """A whole folder, written beside its target as `.NAME.partial-WRITER`."""

    def __init__(self, target: Location, kind: str, *, force: bool) -> None:
        super().__init__(target, kind)
        self._force, self._replaces = force, False

    @property
    def draft(self) -> Location:
        return self._hidden("partial")

    def begin(self) -> None:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._clear_leftovers()
        self.before, self._replaces = stored_manifest(self.target), self.target.exists()
        if self._replaces:
            refuse_unless_replaceable(self.target, self.kind, force=self._force)
        self.make_draft()

    def commit(self) -> None:
        self.check()
        (self.draft / WRITING).unlink()
        if not self._replaces:
            rename_new(self.draft, self.target)
            return
        old = self._hidden("replaced")
        rename_new(self.target, old)
        try:
            rename_new(self.draft, self.target)
        except BaseException:
            if not self.target.exists():
                rename_new(old, self.target)
            raise
        remove(old)

    def _hidden(self, what: str) -> Location:
        return self.target.with_name(f".{self.target.name}.{what}-{self.writer}")

    def _clear_leftovers(self) -> None:
        """Remove what killed runs left; bring back a folder that was moved away but not yet replaced."""
        for found in left_behind(self.target.parent, f".{self.target.name}.replaced-"):
            if self.target.exists():
                remove(found)
            else:
                rename_new(found, self.target)
        for found in left_behind(self.target.parent, f".{self.target.name}.partial-"):
            discard(found)


class MovedTables(Output):
    """The tables and the manifest of a folder that keeps whatever else is in it, written in `.tables.partial-WRITER`.

    Several tables cannot be renamed in one step, so the manifest goes first and comes last: whoever looks in between
    finds no output. The draft takes a name that only one can have while it is done.
    """

    @property
    def draft(self) -> Location:
        return self.target / f".tables.partial-{self.writer}"

    def begin(self) -> None:
        for found in left_behind(self.target, ".tables.partial-"):
            discard(found)
        self.before = stored_manifest(self.target)
        self.make_draft()

    def commit(self) -> None:
        self.check()
        manifest, moving = read_manifest(self.draft, self.kind), self.target / _COMMITTING
        rename_new(self.draft / WRITING, self.draft / f"{WRITING}-{self.writer}")
        if moving.is_dir() and all(writer.is_gone() for writer in _committing(moving)):
            remove(moving)
        rename_new(self.draft, moving)
        try:
            (self.target / FILE_NAME).unlink(missing_ok=True)
            for name in (*manifest.tables, FILE_NAME):
                remove(self.target / name)
                rename_new(moving / name, self.target / name)
        finally:
            remove(moving)


def _committing(moving: Location) -> Iterator[Writer]:
    """Who is moving tables, or was when it was killed."""
    for found in moving.glob(f"{WRITING}-*"):
        if writer := Writer.parse(found.name.removeprefix(f"{WRITING}-")):
            yield writer


def rename_new(source: Location, target: Location) -> None:
    """Rename to a name that nothing has; UsageError if something has got it meanwhile."""
    if target.exists():
        raise UsageError(came_second(target))
    try:
        source.rename(target)  # type: ignore[arg-type]  # both are paths, or both are in one store
    except OSError as error:
        if target.exists():
            raise UsageError(came_second(target)) from None
        raise UsageError(f"{target}: cannot be written ({error.strerror}); choose another") from None
