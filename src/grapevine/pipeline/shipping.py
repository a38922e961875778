"""Stored folders for Spark's tasks. A task of ours is Python and has no Hadoop, so it cannot open what a URL names.

A path it reads itself, from the file system that it shares with the driver. Of a folder at a URL the driver fetches the
wanted tables and broadcasts their files, which are compressed: about two bytes for a subscription.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark import Broadcast

from grapevine.model.location import Location, local_copy
from grapevine.model.manifest import FILE_NAME, Manifest
from grapevine.model.tables import CHURN, LATENCY, NODES, SUBSCRIPTIONS, TOPICS, Table
from grapevine.pipeline.stage import Stage

Files = dict[str, bytes]  # contents by their names below a folder
WORKLOAD = NODES, TOPICS, SUBSCRIPTIONS  # what `Workload.load` reads
TRACES = CHURN, LATENCY  # what `load_churn` and `load_latency` read


@dataclass(frozen=True, slots=True)
class Shipped:
    """A stored folder as tasks get it: made by the driver (`ship`), pickled into a task, opened there."""

    folder: str  # its path, or only its name where the files come along
    files: Broadcast[Files] | None = None

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """The folder as a local path with a manifest, while the block runs."""
        if self.files is None:
            yield Path(self.folder)
            return
        with tempfile.TemporaryDirectory(prefix="grapevine-shipped-") as scratch:
            local = Path(scratch) / self.folder
            unpack(self.files.value, local)
            yield local


def ship(stage: Stage, folder: Location, manifest: Manifest, wanted: tuple[Table, ...]) -> Shipped:
    """The wanted tables, as far as the folder has them, for tasks to open; `manifest` is the folder's."""
    if isinstance(folder, Path):
        return Shipped(str(folder.resolve()))
    files: Files = {FILE_NAME: replace(manifest, generation=None).as_text().encode()}
    for table in wanted:
        if table.name in manifest.tables:
            with local_copy(manifest.tables_in(folder) / table.name) as local:
                files |= {f"{table.name}/{name}": content for name, content in pack(local).items()}
    return Shipped(folder.name, stage.spark.sparkContext.broadcast(files))


def pack(folder: Path) -> Files:
    """All files below a local folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def unpack(files: Files, folder: Path) -> None:
    """Write the files that `pack` took below a local folder, which is made if need be."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
