"""`manifest.json`: what a stage made, from what, and with which code. Written last, so its presence means complete."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from grapevine.model.errors import UsageError

FILE_NAME = "manifest.json"
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

    def write(self, folder: Path) -> None:
        """Write `manifest.json` into the folder, after all tables: its presence says that the folder is complete."""
        (folder / FILE_NAME).write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_manifest(folder: Path, kind: str) -> Manifest:
    """The manifest of a complete folder of this kind; UsageError for any other folder, with what it is instead."""
    path = folder / FILE_NAME
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; expected a {kind} that `grapevine` wrote")
    if not path.is_file():
        raise UsageError(f"{folder}: has no {FILE_NAME}, so it is not a complete {kind}; write it again")
    try:
        content = json.loads(path.read_text())
        found = {f.name: content[f.name] for f in fields(Manifest)}
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: is not a manifest of Grapevine; write the {kind} again") from None
    if found["format"] != FORMAT:
        raise UsageError(
            f"{folder}: has format {found['format']}, this version reads format {FORMAT}; write the {kind} again"
        )
    if found["kind"] != kind:
        raise UsageError(f"{folder}: holds a {found['kind']}, expected a {kind}")
    return Manifest(**found)
