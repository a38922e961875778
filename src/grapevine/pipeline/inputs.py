"""The inputs of an ingest: every file that was named, as Spark can read it, with its first lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from grapevine.model.drafts import whole_file
from grapevine.model.errors import UsageError
from grapevine.model.location import Location, is_url, local_copy
from grapevine.pipeline.raw_files import PARQUET, RawFile, look_at
from grapevine.pipeline.stage import Stage, spark_path

_HEAD_LINES = 200  # of a file that only Spark can reach
_TO_FETCH = ".xz", ".zst", ".zip"  # from a URL, since Spark does not unpack them


@dataclass(slots=True)
class Inputs:
    """What an ingest reads."""

    paths: list[str] = field(default_factory=list)  # as Spark wants them
    heads: list[list[str]] = field(default_factory=list)  # by text file, its first lines
    parquet: bool = False
    originals: dict[str, str] = field(default_factory=dict)  # by copy: what the user calls the file
    packings: set[str] = field(default_factory=set)  # and encodings that are not UTF-8: what users may want to know


def check_inputs(paths: Sequence[str]) -> None:
    """UsageError for a local path that Spark could not read."""
    local = [Path(path) for path in paths if not is_url(path)]
    missing = [str(path) for path in local if not path.exists()]
    if missing:
        raise UsageError(f"{', '.join(missing)}: no such file or folder")
    for path in local:
        if path.absolute().name.startswith(("_", ".")) or ":" in path.name:
            raise UsageError(f"{path}: Spark does not read names that start with _ or . or hold a colon; rename it")


def find_inputs(paths: Sequence[str]) -> list[str]:
    """Paths and URLs as Spark wants them; UsageError for a local path that it could not read."""
    check_inputs(paths)
    return [path if is_url(path) else spark_path(Path(path).absolute()) for path in paths]


def open_inputs(stage: Stage, paths: Sequence[str], encoding: str, scratch: Location) -> Inputs:
    """Look at every file, and copy those that Spark cannot read as they are to `scratch`, which workers see.

    UsageError for files that are damaged, or where some are Parquet and some are not.
    """
    found = Inputs()
    kinds = set[bool]()
    for path in paths:
        if is_url(path):
            kinds |= {_open_url(stage, path, encoding, scratch, found)}
            continue
        for file in files_below(Path(path).absolute()):
            raw = look_at(file, encoding)
            kinds.add(raw.packing == PARQUET)
            _add(stage, raw, str(file), scratch, found)
    if len(kinds) > 1:
        raise UsageError("some inputs are Parquet and some are not; ingest them apart")
    found.parquet = kinds == {True}
    return found


def files_below(path: Path) -> Iterator[Path]:
    """The file itself, or all files below the folder that Spark would read, in the order of their names."""
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts):
            yield file


def _add(stage: Stage, raw: RawFile, name: str, scratch: Location, found: Inputs) -> None:
    """One file whose content is here; `name` is what the user calls it, a path or a URL."""
    if raw.packing is not None:
        found.packings.add(raw.packing)
    if raw.encoding != "utf-8":
        found.packings.add(raw.encoding)
    if raw.packing != PARQUET:
        found.heads.append(raw.head())
    if raw.is_for_spark:
        found.paths.append(name if is_url(name) else spark_path(raw.path))
        return
    copy = scratch / "plain" / f"{len(found.paths)}.txt"
    stage.tell(f"unpacking {name}")
    with whole_file(copy) as local:
        raw.copy_plain(local)
    found.paths.append(spark_path(copy))
    found.originals[str(copy)] = name


def _open_url(stage: Stage, path: str, encoding: str, scratch: Location, found: Inputs) -> bool:
    """Add the files at a URL; whether they are Parquet."""
    suffix = Path(urlparse(path).path).suffix.lower()
    if suffix in _TO_FETCH or encoding != "auto":
        with local_copy(stage.location(path)) as local:
            for file in files_below(local):
                name = path if file == local else f"{path}/{file.relative_to(local)}"
                _add(stage, look_at(file, encoding), name, scratch, found)
        return False
    found.paths.append(path)
    if suffix == ".parquet":
        return True
    for file in sorted(stage.spark.read.option("recursiveFileLookup", "true").text(path).inputFiles()):
        first = stage.spark.read.text(spark_path(unquote(file))).limit(_HEAD_LINES).collect()
        found.heads.append([row.value for row in first])
    return False
