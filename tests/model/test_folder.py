"""Output folders appear whole or not at all, on paths and on stores; and what is left when a run is killed."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from grapevine.model.drafts import WRITING, Writer, write_whole
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder, new_tables
from grapevine.model.location import Location, as_location
from grapevine.model.manifest import Manifest, read_manifest
from tests.folder_promises import HOST, LONG_AGO, NOBODY, NOW, WHOLE, FolderPromises, fill, names, read, write
from tests.memory_store import MemoryLocation, MemoryStore


class TestOnPaths(FolderPromises):
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        return tmp_path


class TestOnAStoreThatRenames(FolderPromises):
    @pytest.fixture
    def home(self) -> MemoryLocation:
        return MemoryLocation(MemoryStore(renames_at_once=True), "home")


class TestOnAnObjectStore(FolderPromises):
    @pytest.fixture
    def home(self) -> MemoryLocation:
        return MemoryLocation(MemoryStore(renames_at_once=False), "home")


# Killed at any moment


def replace_folder(home: Location, text: str) -> None:
    write(home / "out", text, force=True)


def replace_tables(home: Location, text: str) -> None:
    with new_tables(home / "out", kind="workload") as folder:
        fill(folder, text)


Replace = Callable[[Location, str], None]


@pytest.mark.parametrize("renames_at_once", [True, False], ids=["renames", "object store"])
@pytest.mark.parametrize("old", ["old", None])
@pytest.mark.parametrize("replace", [replace_folder, replace_tables])
def test_whenever_a_run_is_killed_readers_find_the_old_output_or_the_new_one(
    renames_at_once: bool, old: str | None, replace: Replace
) -> None:
    """Every request of the run is once the last that the store answers; then another run does it again."""
    found, moments = [], 0
    while True:
        store = MemoryStore(renames_at_once=renames_at_once)
        home = MemoryLocation(store, "home")
        write_whole(home / "neighbour", "")
        if old:
            write(home / "out", old)
        if not store.kills(moments, partial(replace, home, "new")):
            break
        found.append(seen_by_a_reader(home / "out"))
        replace(home, "new")
        assert read(home / "out") == "new"
        assert names(home) == ["neighbour", *(f"out/{name}" for name in WHOLE)], f"litter of request {moments}"
        moments += 1
    assert moments > 10
    changes = [text for text, before in zip(found, [None, *found], strict=False) if text != before]
    between = [None] if renames_at_once and old else []  # an instant without a name, mended by the next run
    assert changes == ([old, *between, "new"] if old else ["new"])


def test_whenever_two_runs_in_a_row_are_killed_the_output_is_not_lost() -> None:
    """On a store that shows files half-written: the first one is killed at each moment of its commit, the second one,
    which begins with what the first one left, at any moment."""
    store = MemoryStore(renames_at_once=False)
    out = MemoryLocation(store, "home") / "out"
    write(out, "old")
    before, commits = dict(store.files), 0
    for first in count():
        store.files = dict(before)
        if not store.kills(first, partial(write, out, "new", force=True)):
            break
        if (left := dict(store.files)).keys() & {"home/out/_manifest.json"}:
            commits += 1
            for second in count():
                store.files = dict(left)
                if not store.kills(second, partial(write, out, "newest", force=True)):
                    break
                assert read(out) in ("old", "new", "newest"), (first, second)
    assert commits > 5


@pytest.mark.parametrize("renames_at_once", [True, False], ids=["renames", "object store"])
@pytest.mark.parametrize("replace", [replace_folder, replace_tables])
def test_whenever_another_run_comes_and_goes_the_output_is_that_of_one(renames_at_once: bool, replace: Replace) -> None:
    """The other one does all of its work between two requests of the slow one, whichever they are. Who is told that it
    came second has changed nothing."""
    found: list[str] = []
    while True:
        store = MemoryStore(renames_at_once=renames_at_once)
        home = MemoryLocation(store, "home")
        write(home / "out", "old")
        refused: list[str] = []
        store.requests, store.meanwhile = 0, (len(found), partial(attempt, replace, home, "other", refused))
        attempt(replace, home, "new", refused)
        if not store.others_came():
            break
        found.append(read(home / "out"))
        assert found[-1] not in ("old", *refused) and len(refused) < 2
        replace(home, "last")
        assert names(home) == [f"out/{name}" for name in WHOLE], f"litter of request {len(found)}"
    assert len(found) > 10 and set(found) == {"other", "new"}


def attempt(replace: Replace, home: Location, text: str, refused: list[str]) -> None:
    """One of two runs, which may be told that it came second."""
    try:
        replace(home, text)
    except UsageError as error:
        assert "another run" in str(error)
        refused.append(text)


def seen_by_a_reader(folder: Location) -> str | None:
    try:
        return read(folder)
    except UsageError:
        return None


def test_a_folder_that_was_moved_away_by_a_killed_run_is_brought_back(tmp_path: Path) -> None:
    write(tmp_path / f".out.replaced-{NOBODY}-{HOST}-{NOW}", "old")
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "out", "new")
    assert read(tmp_path / "out") == "old"


def test_a_replacement_that_is_interrupted_brings_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "out", "old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if ".partial-" in self.name:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", "new", force=True)
    assert read(tmp_path / "out") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


# Who writes


@pytest.mark.parametrize("renames_at_once", [True, False])
def test_drafts_of_killed_runs_are_removed_and_those_of_running_ones_kept(renames_at_once: bool) -> None:
    home = MemoryLocation(MemoryStore(renames_at_once=renames_at_once), "home")
    start = "home/.out.partial-" if renames_at_once else "home/out/_generation-"
    gone = f"{NOBODY}-{HOST}-{NOW}", f"{os.getpid()}-{HOST}-{NOW}", f"1-elsewhere-{LONG_AGO}"
    at_work = f"{os.getppid()}-{HOST}-{NOW}", f"1-elsewhere-{NOW}", f"1-else-where.org-{NOW}"
    for writer in (*gone, *at_work):
        home.store.files[f"{start}{writer}/{WRITING}"] = b""
        home.store.files[f"{start}{writer}/table/part"] = b"half"
    write(home / "out", "new")
    assert read(home / "out") == "new"
    left = {
        name.removeprefix(start).split("/")[0] for name in home.store.files if "half" in str(home.store.files[name])
    }
    assert left == set(at_work)


def test_a_generation_that_is_named_stays_although_its_writer_is_gone() -> None:
    home = MemoryLocation(MemoryStore(renames_at_once=False), "home")
    write(home / "out", "old")
    with pytest.raises(UsageError, match="exists already"):
        write(home / "out", "new")
    assert read(home / "out") == "old"


def test_of_two_that_commit_in_the_same_moment_one_counts_and_the_next_run_removes_the_other() -> None:
    """Both look, then both write: what a store allows that cannot compare and write in one step."""
    store = MemoryStore(renames_at_once=False)
    home = MemoryLocation(store, "home")
    with new_folder(home / "out", kind="workload", force=False) as slow:
        fill(slow, "slow")
        write(home / "out", "quick")
        committed = store.files.pop("home/out/manifest.json")  # the slow one looks just before the quick one writes
    assert read(home / "out") == "slow"
    assert b"quick" in committed
    write(home / "out", "newest", force=True)
    assert names(home) == [f"out/{name}" for name in WHOLE]
    assert len({name.split("/")[2] for name in store.files}) == 2, "one generation and the manifest"


def test_tables_that_another_run_is_moving_are_not_mixed_with(tmp_path: Path) -> None:
    moving = tmp_path / "out" / ".tables.committing"
    write_whole(moving / f"{WRITING}-{os.getppid()}-{HOST}-{NOW}", "")
    with (
        pytest.raises(UsageError, match="another run wrote it meanwhile"),
        new_tables(tmp_path / "out", kind="experiment") as folder,
    ):
        fill(folder, "new", "experiment")
    assert names(tmp_path / "out") == [".tables.committing"]
    (moving / f"{WRITING}-{os.getppid()}-{HOST}-{NOW}").rename(moving / f"{WRITING}-{NOBODY}-{HOST}-{NOW}")
    with new_tables(tmp_path / "out", kind="experiment") as folder:
        fill(folder, "new", "experiment")
    assert names(tmp_path / "out") == WHOLE


def test_a_writer_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "a-host.b c")
    writer = Writer.begin()
    assert Writer.parse(str(writer)) == writer
    assert (writer.pid, writer.host) == (os.getpid(), "a-host.b_c")
    assert not writer.is_gone()
    writer.finish()
    assert writer.is_gone()
    assert Writer.parse("1-x") is None and Writer.parse("x-y-1") is None


# Paths


def test_a_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "real") == "new"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write(tmp_path / "file" / "out", "")


def test_a_root_is_no_output() -> None:
    with pytest.raises(UsageError, match="is the root of a file system; give a folder below it"):
        write(Path("/"), "")


@pytest.mark.parametrize("url", ["hdfs://host/w", "s3a://bucket/w", "file:///w"])
def test_from_python_a_url_has_to_be_opened_by_a_stage(url: str) -> None:
    for given in (url, Path(url)):
        with pytest.raises(UsageError, match="is a URL; from Python, open it with `location` of grapevine"):
            as_location(given)
    with pytest.raises(UsageError, match="is a URL"):
        write(Path(url), "")


def test_a_folder_without_manifest_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    with pytest.raises(UsageError, match="not a complete workload"):
        read_manifest(tmp_path / "half", "workload")
    with pytest.raises(UsageError, match="no such folder"):
        read_manifest(tmp_path / "nowhere", "workload")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "\x00"])
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match="not a manifest"):
        read_manifest(tmp_path, "workload")


def test_another_format_or_kind_is_refused(tmp_path: Path) -> None:
    Manifest(kind="workload", stage="test", version="0", format=99).write(tmp_path)
    with pytest.raises(UsageError, match="format 99"):
        read_manifest(tmp_path, "workload")
    Manifest(kind="profile", stage="test", version="0").write(tmp_path)
    with pytest.raises(UsageError, match="holds a profile"):
        read_manifest(tmp_path, "workload")
