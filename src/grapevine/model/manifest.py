"""`manifest.json`: what a stage made, from what, and with which code. Written last, so its presence means complete."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.location import Location

FILE_NAME = "manifest.json"
JOURNAL = "_manifest.json"  # the same, for as long as it is being written where a file may be seen half-written
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a stage wrote into a folder, from what, and with which code."""

    kind: str  # workload, profile, …: what a later stage may expect here
    stage: str  # the command that made it
    version: str  # of the code
    config: dict[str, Any] = field(default_factory=dict)  # parameters, with their defaults filled in
    seed: int | None = None  # None: nothing was drawn at random
    inputs: list[str] = field(default_factory=list)  # folders or files that it was made from
    tables: dict[str, int] = field(default_factory=dict)  # name → rows
    counts: dict[str, Any] = field(default_factory=dict)  # subscribers, self_loops, duplicates, KS distances, …
    format: int = FORMAT  # of the folder; a reader refuses any other
    generation: str | None = None  # the folder below that holds the tables (`model/folder.py`); None: beside this file

    def tables_in(self, folder: Location) -> Location:
        """Where the tables lie of the folder that this manifest was read from: to be asked once for all of them, since
        another run may replace the folder at any time."""
        return folder / self.generation if self.generation else folder

    def write(self, folder: Location) -> None:
        """Write `manifest.json` into the folder, after all tables: its presence says that the folder is complete."""
        write_whole(folder / FILE_NAME, self.as_text())

    def write_with_journal(self, folder: Location) -> None:
        """The same where others may see a file while it is being written: if that is as far as it gets, readers find
        the whole text in the journal. What was there before is read until the journal is whole; where it is in the
        journal itself, because a run was killed, it goes into its place first."""
        before = stored_manifest(folder)
        if before is not None and before != _text(folder / FILE_NAME):
            write_whole(folder / FILE_NAME, before)
        write_whole(folder / JOURNAL, self.as_text())
        self.write(folder)
        (folder / JOURNAL).unlink(missing_ok=True)

    def as_text(self) -> str:
        """The content of `manifest.json`; ValueError if JSON does not know a number in it."""
        content = {name: value for name, value in asdict(self).items() if (name, value) != ("generation", None)}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(folder: Location, kind: str) -> Manifest:
    """The manifest of a complete folder of this kind; UsageError for any other folder, with what it is instead."""
    text = stored_manifest(folder)
    if text is None:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; expected a {kind} that `grapevine` wrote")
        raise UsageError(f"{folder}: has no {FILE_NAME}, so it is not a complete {kind}; write it again")
    content: dict[str, Any] = {"generation": None} | (_content(text) or {})
    if not {f.name for f in fields(Manifest)} <= set(content):
        raise UsageError(f"{folder / FILE_NAME}: is not a manifest of Grapevine; write the {kind} again")
    found = {f.name: content[f.name] for f in fields(Manifest)}
    if found["format"] != FORMAT:
        raise UsageError(
            f"{folder}: has format {found['format']}, this version reads format {FORMAT}; write the {kind} again"
        )
    if found["kind"] != kind:
        raise UsageError(f"{folder}: holds a {found['kind']}, expected a {kind}")
    return Manifest(**found)


def is_complete(folder: Location) -> bool:
    """Whether the folder has a manifest, of whatever kind."""
    return (folder / FILE_NAME).is_file()


def stored_manifest(folder: Location) -> str | None:
    """The text of a folder's manifest, whatever it says; None if it has none."""
    if not is_complete(folder):
        return None
    text = _text(folder / FILE_NAME)
    if _content(text) is None:  # only a part of it; without a journal all of it has arrived meanwhile
        return _text(folder / (JOURNAL if (folder / JOURNAL).is_file() else FILE_NAME))
    return text


def _text(file: Location) -> str:
    return file.read_text(encoding="utf-8")


def named_generation(text: str | None) -> str | None:
    """The generation that such a text names; None if it names none, or is no manifest."""
    content = _content(text or "")
    return content.get("generation") if content else None


def _content(text: str) -> dict[str, Any] | None:
    """What the text of a manifest says; None if it is only a part of one, or nothing of the kind."""
    try:
        content = json.loads(text)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
