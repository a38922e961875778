"""Raw files as users have them, packed or not and in any encoding, and what Spark can read of that.

Spark reads UTF-8 text, plain or packed by gzip or bzip2 if the suffix says so, and takes whatever else it finds for
text. So the first bytes of every local file tell what it is, since a suffix may lie; and what Spark would misread is
copied as plain UTF-8 text before it is read (`RawFile.copy_plain`).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from grapevine.model.errors import UsageError

PARQUET = "parquet"
_HEAD_BYTES = 1 << 16  # what a file's layout is told from
_MAGIC = {  # what no text begins with; a user may be called BZhang
    re.compile(rb"\x1f\x8b"): "gzip",
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): "bzip2",
    re.compile(rb"\xfd7zXZ\x00"): "xz",
    re.compile(rb"\x28\xb5\x2f\xfd"): "zstd",
    re.compile(rb"PK\x03\x04"): "zip",
}
_PARQUET_MAGIC = b"PAR1"  # at both ends
_FOR_SPARK = {".gz": "gzip", ".bz2": "bzip2"}  # what it unpacks, by suffix
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException)
_LINE_END = re.compile(r"\r\n|\r|\n")
_MANY_ZEROS = 0.4  # of all bytes: text of two bytes a character


@dataclass(frozen=True, slots=True)
class RawFile:
    """A local file, and what its first bytes say it is."""

    path: Path
    packing: str | None  # a name of _MAGIC or PARQUET; None: plain
    encoding: str

    @property
    def is_for_spark(self) -> bool:
        """Whether Spark reads it as it is."""
        if self.packing == PARQUET:
            return True
        return self.encoding == "utf-8" and self.packing == _FOR_SPARK.get(self.path.suffix.lower())

    def head(self) -> list[str]:
        """Its first lines, whole ones; none where it is damaged, which who reads all of it will say."""
        try:
            with _unpacked(self.path, self.packing) as stream:
                start = stream.read(_HEAD_BYTES)
        except _DAMAGE:
            return []
        lines = _LINE_END.split(codecs.decode(start, self.encoding, "replace").removeprefix("\ufeff"))
        return lines[:-1] or lines  # the last one may be cut

    def copy_plain(self, target: Path) -> None:
        """Write its text as UTF-8; UsageError if it is damaged, or not in its encoding."""
        try:
            with _unpacked(self.path, self.packing) as stream, target.open("w", encoding="utf-8", newline="") as copy:
                text = io.TextIOWrapper(cast(IO[bytes], stream), encoding=self.encoding, newline="")
                if (first := text.read(1)) != "\ufeff":
                    copy.write(first)
                shutil.copyfileobj(text, copy)
        except UnicodeError as error:
            raise UsageError(f"{self.path}: is not {self.encoding} ({error}); give its encoding") from None
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of what is on it
                raise UsageError(f"{self.path}: cannot be unpacked to {target} ({error.strerror})") from None
            raise damaged(str(self.path), str(error)) from None


def damaged(path: str, detail: str) -> UsageError:
    """What is said of a packed file that cannot be unpacked."""
    return UsageError(f"{path}: is truncated or not a valid compressed file ({detail}); fetch it again")


def look_at(path: Path, encoding: str) -> RawFile:
    """What a local file is; UsageError if it cannot be read. `encoding` is what the user says; `auto`: by its first
    bytes, UTF-8 in doubt."""
    if encoding != "auto":
        check_encoding(encoding)
    try:
        with path.open("rb") as stream:
            start = stream.read(16)
            stream.seek(-min(len(start), len(_PARQUET_MAGIC)), io.SEEK_END)
            end = stream.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    if start.startswith(_PARQUET_MAGIC) and end == _PARQUET_MAGIC:
        return RawFile(path, PARQUET, "utf-8")
    packing = next((name for magic, name in _MAGIC.items() if magic.match(start)), None)
    return RawFile(path, packing, _told_from(path, packing) if encoding == "auto" else codecs.lookup(encoding).name)


def check_encoding(encoding: str) -> None:
    """UsageError if there is no such encoding of text."""
    try:
        codecs.decode(b"", encoding)
    except LookupError:
        raise UsageError(f"encoding {encoding!r}: unknown; give one such as utf-8, utf-16 or latin-1") from None


def _told_from(path: Path, packing: str | None) -> str:
    try:
        with _unpacked(path, packing) as stream:
            start = stream.read(1_024)
    except _DAMAGE:
        return "utf-8"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for at, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(start) > 4 and start[at::2].count(0) > _MANY_ZEROS * len(start) > start[1 - at :: 2].count(0):
            return name
    return "utf-8"


@contextmanager
def _unpacked(path: Path, packing: str | None) -> Iterator[IO[bytes]]:
    """The file's content as a stream of bytes."""
    if packing == "zip":
        with zipfile.ZipFile(path) as archive:
            inside = [
                name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")
            ]
            if len(inside) != 1:
                raise UsageError(f"{path}: holds {len(inside)} files; unpack it, and give those that are wanted")
            with archive.open(inside[0]) as stream:
                yield stream
    elif packing == "zstd":
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as unpacked:
            yield cast(IO[bytes], unpacked)
    elif packing in ("gzip", "bzip2", "xz"):
        opened = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}[packing](path, "rb")
        with cast(IO[bytes], opened) as stream:
            yield stream
    else:
        with path.open("rb") as stream:
            yield stream
