"""Outputs where a rename is not one step: written below the target, and a manifest that leads to them, written last.

`model/folder.py` has the rules. Whoever removes a generation of others first sees that its writer is gone, and reads
the manifest after that: who is gone commits no more, so a generation that the manifest does not name then is no
output, and never will be.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from grapevine.model.drafts import WRITING, left_behind
from grapevine.model.errors import UsageError
from grapevine.model.location import Location, remove
from grapevine.model.manifest import FILE_NAME, JOURNAL, Manifest, named_generation, read_manifest, stored_manifest
from grapevine.model.output import Output, refuse_unless_replaceable

_PREFIX = "_generation-"  # Spark and Hadoop take names with an underscore for no data of theirs


class Generation(Output):
    """A folder written as `NAME/_generation-WRITER`, which becomes the output when `NAME/manifest.json` names it.

    It replaces the whole folder, or, for a folder that holds more than an output (`only_tables`), the output alone.
    """

    def __init__(self, target: Location, kind: str, *, force: bool, only_tables: bool = False) -> None:
        super().__init__(target, kind)
        self._force, self._only_tables = force, only_tables

    @property
    def draft(self) -> Location:
        return self.target / f"{_PREFIX}{self.writer}"

    def begin(self) -> None:
        left = left_behind(self.target, _PREFIX)
        for entry in left:
            (entry / WRITING).unlink(missing_ok=True)
        self.before = stored_manifest(self.target)
        for entry in left:
            if entry.name != named_generation(self.before):
                remove(entry)
        if not self._only_tables and (self.before is not None or self._holds_others()):
            refuse_unless_replaceable(self.target, self.kind, force=self._force)
        named = named_generation(self.before)
        if named is not None and (self.target / named / WRITING).is_file():  # its writer is alive, or it were removed
            raise UsageError(f"{self.target}: another run is just finishing there; try again")
        self.make_draft()

    def commit(self) -> None:
        self.check()
        manifest = read_manifest(self.draft, self.kind)
        replace(manifest, generation=self.draft.name).write_with_journal(self.target)
        with suppress(UsageError):  # the output is there; what cannot be removed now, the next run removes
            (self.draft / WRITING).unlink(missing_ok=True)
            self._remove_replaced(manifest)

    def is_committed(self) -> bool:
        return named_generation(stored_manifest(self.target)) == self.draft.name

    def _holds_others(self) -> bool:
        others = (entry for entry in self.target.iterdir() if not entry.name.startswith(_PREFIX))
        return self.target.is_file() or any(entry.name != JOURNAL for entry in others)

    def _remove_replaced(self, manifest: Manifest) -> None:
        """Remove what this output replaced: an older generation, and tables of an output that had none. Drafts that
        others are writing stay."""
        left = {entry.name for entry in left_behind(self.target, _PREFIX)} | {named_generation(self.before)}

        def is_replaced(name: str) -> bool:
            if name.startswith(_PREFIX):
                return name in left
            return not self._only_tables or name in manifest.tables

        replaced = [entry for entry in self.target.iterdir() if is_replaced(entry.name)]
        keep = {FILE_NAME, self.draft.name, named_generation(stored_manifest(self.target))}
        for entry in replaced:
            if entry.name not in keep:
                remove(entry)
