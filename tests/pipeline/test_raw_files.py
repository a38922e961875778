"""Raw files by their first bytes, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from grapevine.model.errors import UsageError
from grapevine.pipeline.raw_files import look_at

TEXT = "user,item\r\nann,Oslo\r\nbjörn,Ærø\r\n"
LINES = ["user,item", "ann,Oslo", "björn,Ærø"]


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.csv", content)
    return packed.getvalue()


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
    "zip": zipped,
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("suffix", ["as it is", ".data"])
def test_a_file_is_what_it_begins_with(tmp_path: Path, packing: str, encoding: str, suffix: str) -> None:
    name = "raw.csv" + (f".{packing}" if packing != "plain" else "") + ("" if suffix == "as it is" else suffix)
    file = tmp_path / name
    file.write_bytes(PACKINGS[packing](TEXT.encode(encoding)))
    raw = look_at(file, "auto")
    assert raw.head() == LINES
    named = suffix == "as it is"
    assert raw.is_for_spark == (
        encoding.startswith("utf-8") and (packing == "plain" or (named and packing in ("gz", "bz2")))
    )
    raw.copy_plain(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes().decode() == TEXT


def test_an_encoding_may_be_given(tmp_path: Path) -> None:
    file = tmp_path / "raw.csv"
    file.write_bytes(TEXT.encode("latin-1"))
    raw = look_at(file, "latin-1")
    assert (raw.head(), raw.is_for_spark) == (LINES, False)
    raw.copy_plain(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes().decode() == TEXT
    with pytest.raises(UsageError, match="encoding 'klingon': unknown"):
        look_at(file, "klingon")
    with pytest.raises(UsageError, match=r"raw.csv: is not utf-16.*give its encoding"):
        look_at(tmp_path / "raw.csv", "utf-16").copy_plain(tmp_path / "copy")


@pytest.mark.parametrize("packing", ["xz", "zst", "zip"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, packing: str) -> None:
    file = tmp_path / f"raw.{packing}"
    whole = PACKINGS[packing]("".join(f"{i},{i * i % 997}\n" for i in range(5_000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    raw = look_at(file, "auto")
    with pytest.raises(UsageError, match="is truncated or not a valid compressed file"):
        raw.copy_plain(tmp_path / "copy")


def test_an_archive_of_several_files_is_not_guessed_at(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        archive.writestr("a.csv", "1,2")
        archive.writestr("b.csv", "3,4")
    with pytest.raises(UsageError, match="holds 2 files; unpack it"):
        look_at(tmp_path / "raw.zip", "utf-8").head()


def test_binary_files_are_no_utf_16(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(range(256)) * 40)
    assert look_at(tmp_path / "raw", "auto").encoding == "utf-8"
    (tmp_path / "raw").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    assert look_at(tmp_path / "raw", "auto").packing == "parquet"


@pytest.mark.parametrize("text", ["BZhang,Oslo\n", "BZh9,Oslo\n", "PAR1,Oslo\n", "PK,Oslo\n", "PAR", ""])
def test_names_that_look_like_a_packing_are_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "raw").write_text(text)
    raw = look_at(tmp_path / "raw", "auto")
    assert (raw.packing, raw.is_for_spark) == (None, True)


def test_a_disk_that_is_full_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    (tmp_path / "raw.xz").write_bytes(lzma.compress(b"1,2\n" * 100_000))
    with pytest.raises(UsageError, match="cannot be unpacked to /dev/full"):
        look_at(tmp_path / "raw.xz", "auto").copy_plain(Path("/dev/full"))
    with pytest.raises(UsageError, match="cannot be read"):
        look_at(tmp_path, "auto")
