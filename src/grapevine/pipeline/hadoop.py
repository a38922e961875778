"""Locations at URLs, through Hadoop's file systems in the Spark driver: `hdfs://`, `s3a://`, `file://`, whatever Spark
is configured for.

Only names, looks and small files pass between Python and Java; contents are copied by Java to and from local files,
which is quicker than handing bytes over.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EEXIST
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from grapevine.model.errors import UsageError
from grapevine.model.location import Remote

# Where a rename is one step. Of any other scheme nothing is known, and the way that needs no renames is right anyway.
_RENAME_AT_ONCE = frozenset({"file", "hdfs", "webhdfs", "swebhdfs"})
_REASONS = {  # parts of the names and messages of Java's exceptions
    r"AccessControlException|AccessDeniedException|Permission denied": "permission was denied",
    r"Call From \S+ to|UnknownHostException|Unable to execute HTTP request": "the host cannot be reached",
}


class HadoopFiles:
    """The file systems of one Spark session, each opened when it is first needed, and with it the session."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session
        self._opened: dict[str, tuple[Any, Any]] = {}

    def open(self, location: HadoopLocation) -> tuple[Any, Any]:
        """Hadoop's FileSystem and FileContext for this URL, as Java objects. What Java throws is left to the caller.

        They are our own, not those that Spark shares among its jobs, because they leave out the checksum files of local
        file systems: one that stays behind when another program replaces a file makes the file unreadable.
        """
        session: Any = self._session()
        if location.store not in self._opened:
            hadoop, configuration = session._jvm.org.apache.hadoop.fs, session._jsc.hadoopConfiguration()
            uri = self.path(location).toUri()
            system = hadoop.FileSystem.newInstance(uri, configuration)
            system.setWriteChecksum(False)
            system.setVerifyChecksum(False)
            context = None
            if location.renames_at_once:
                context = hadoop.FileContext.getFileContext(uri, configuration)
            self._opened[location.store] = system, context
        return self._opened[location.store]

    def path(self, location: HadoopLocation | Path) -> Any:
        """Hadoop's name of a location, or of a local file."""
        jvm: Any = self._session()._jvm
        return jvm.org.apache.hadoop.fs.Path(str(location))

    def rename(self, source: HadoopLocation, target: HadoopLocation, *, overwrite: bool) -> None:
        """Rename in one step. A FileSystem's rename would not say what is wrong, nor overwrite."""
        session: Any = self._session()
        kind = getattr(session._jvm.org.apache.hadoop.fs, "Options$Rename")
        options = session.sparkContext._gateway.new_array(kind, 1)
        options[0] = kind.OVERWRITE if overwrite else kind.NONE
        _, context = self.open(source)
        context.rename(self.path(source), self.path(target), options)


class HadoopLocation(Remote):
    """A URL. Made by `Stage.location`; nothing is asked of the store before a method is called."""

    def __init__(self, url: str, files: HadoopFiles) -> None:
        found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*)?", url)
        if found is None or not (found[2] or found[3]):
            raise UsageError(f"{url}: is not a valid URL; write it as SCHEME://HOST/PATH or SCHEME:///PATH")
        self._scheme, self._files = found[1].lower(), files
        self.store = f"{self._scheme}://{found[2] or ''}"
        self._path = posixpath.normpath("/" + (found[3] or "").lstrip("/"))  # as Hadoop's names of files are

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    @property
    def parent(self) -> HadoopLocation:
        return HadoopLocation(self.store + (self._path.rpartition("/")[0] or "/"), self._files)

    @property
    def renames_at_once(self) -> bool:
        return self._scheme in _RENAME_AT_ONCE

    def __truediv__(self, name: str) -> HadoopLocation:
        return HadoopLocation(f"{self}/{name}", self._files)

    def __str__(self) -> str:
        return self.store + self._path

    def __repr__(self) -> str:
        return f"HadoopLocation({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopLocation) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def is_dir(self) -> bool:
        with self._asking() as (system, path):
            status = _status(system, path)
            return status is not None and bool(status.isDirectory())

    def is_file(self) -> bool:
        with self._asking() as (system, path):
            status = _status(system, path)
            return status is not None and bool(status.isFile())

    def iterdir(self) -> Iterator[HadoopLocation]:
        with self._asking() as (system, path):
            status = _status(system, path)
            names = _names(system.listStatus(path)) if status is not None and status.isDirectory() else []
        return iter([self / name for name in names])

    def glob(self, pattern: str) -> Iterator[HadoopLocation]:
        depth = pattern.count("/") + 1
        with self._asking() as (system, _):
            asked = self._files.path(HadoopLocation(f"{literal(str(self))}/{pattern}", self._files))
            found = system.globStatus(asked) or []
            ends = [status.getPath().toUri().getPath().split("/")[-depth:] for status in found]
        return iter([self / "/".join(end) for end in ends])

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        with self._asking() as (system, path):
            if not system.mkdirs(path):  # some file systems do not say why
                raise UsageError(f"{self}: cannot be made; choose another folder, or see who may write there")

    def rename(self, target: HadoopLocation) -> HadoopLocation:
        with self._asking():
            try:
                self._files.rename(self, target, overwrite=False)
            except Py4JError as error:
                if "FileAlreadyExistsException" in _java_text(error):
                    raise FileExistsError(EEXIST, "exists already", str(target)) from None
                raise
        return target

    def replace(self, target: HadoopLocation) -> HadoopLocation:
        with self._asking():
            self._files.rename(self, target, overwrite=True)
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        with self._asking() as (system, path):
            system.delete(path, False)

    def remove(self) -> None:
        with self._asking() as (system, path):
            system.delete(path, True)

    def read_text(self, encoding: str | None = None) -> str:
        with tempfile.TemporaryDirectory(prefix="grapevine-copy-") as scratch:
            self.fetch(Path(scratch) / "text")
            return (Path(scratch) / "text").read_text(encoding=encoding or "utf-8")

    def fetch(self, local: Path) -> None:
        with self._asking() as (system, path):
            system.copyToLocalFile(False, path, self._files.path(local), True)

    def put(self, local: Path) -> None:
        if local.is_dir():
            for entry in local.iterdir():
                (self / entry.name).put(entry)
            return
        with self._asking() as (system, path):
            system.copyFromLocalFile(False, True, self._files.path(local), path)

    @contextmanager
    def _asking(self) -> Iterator[tuple[Any, Any]]:
        """Hadoop's file system and the name in it; what Java throws in the block becomes one sentence."""
        try:
            yield self._files.open(self)[0], self._files.path(self)
        except (Py4JError, PySparkException) as error:
            text = _java_text(error)
            reason = known_reason(text) or f"the file system refused ({_message(text)})"
            raise UsageError(f"{self}: {reason}") from None


def _status(system: Any, path: Any) -> Any:
    """What is there; None if nothing is."""
    try:
        return system.getFileStatus(path)
    except Py4JError as error:
        if "java.io.FileNotFoundException" in _java_text(error).partition("\n")[0]:
            return None
        raise


def _names(statuses: Any) -> list[str]:
    return [str(status.getPath().getName()) for status in statuses]


def literal(text: str) -> str:
    """A text in which Hadoop's globs find no pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", text)


def _java_text(error: Exception) -> str:
    """The class of a Java exception, its message, and those of its causes, a line each."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return f"{type(error).__name__}: {error}"
    lines = []
    while java is not None:
        lines.append(str(java.toString()).partition("\n")[0])
        java = java.getCause()
    return "\n".join(lines)


def known_reason(text: str) -> str | None:
    """Why a file system could not be used, for people, from the text of a Java exception; None if it says nothing of
    the kind. What is meant is the caller's to mend: a scheme, a package, a permission, a name."""
    packages = "add its package (--conf spark.jars.packages=…), or give a path"
    if scheme := re.search(r'No (?:Abstract)?FileSystem (?:configured )?for scheme:? "?([\w+.-]+)', text):
        return f"Spark knows no file system for {scheme[1]}://; {packages}"
    if missing := re.search(r"ClassNotFoundException: (?:Class )?(\S*FileSystem\S*)", text):
        return f"Spark lacks {missing[1]}; {packages}"
    for pattern, reason in _REASONS.items():
        if found := re.search(rf"^.*(?:{pattern}).*$", text, re.MULTILINE):
            return f"{reason} ({_message(found[0])})"
    return None


def _message(line: str) -> str:
    """A Java exception's message without its class and without Hadoop's advice, as far as one line holds it."""
    first = line.strip().partition("\n")[0]
    said = re.sub(r"^(?:Caused by: |: )?(?:[\w$.]+(?:Exception|Error): )+", "", first)
    return (said.partition("; For more details")[0] or first)[:200]
