"""What `model/folder.py` promises of an output folder, wherever it lies. Each class that derives from this says where:
its fixture `home` is an empty folder."""

from __future__ import annotations

import platform
import time

import pytest

from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder, new_tables
from grapevine.model.location import Location, local_copy, remove
from grapevine.model.manifest import FILE_NAME, Manifest, read_manifest

HOST = platform.node()
NOBODY = 4_194_999  # no process has such a number
NOW = f"{time.time_ns():x}"
LONG_AGO = f"{time.time_ns() - 2 * 86_400 * 10**9:x}"


def fill(folder: Location, text: str, kind: str = "workload") -> None:
    """What a stage does: a table, then the manifest."""
    write_whole(folder / "table" / "part", text)
    write_whole(folder / "other" / "part", text)
    Manifest(kind=kind, stage=text, version="0", tables={"table": 1, "other": 1}).write(folder)


def write(target: Location, text: str, *, force: bool = False) -> None:
    with new_folder(target, kind="workload", force=force) as folder:
        fill(folder, text)


def read(target: Location, kind: str = "workload") -> str:
    """What a reader finds; both tables and the manifest have to be of one run."""
    manifest = read_manifest(target, kind)
    stored = manifest.tables_in(target)
    found = {(stored / name / "part").read_text() for name in manifest.tables} | {manifest.stage}
    assert len(found) == 1, f"tables of two runs: {found}"
    return found.pop()


def names(folder: Location) -> list[str]:
    """All files below, without the generations' names and Hadoop's checksums."""
    with local_copy(folder) as local:
        found = (file for file in local.rglob("*") if file.is_file())
        inside = {tuple(part for part in file.relative_to(local).parts if not part.startswith("_")) for file in found}
    return sorted("/".join(parts) for parts in inside)


WHOLE = [FILE_NAME, "other/part", "table/part"]


class FolderPromises:
    """Derived from by tests that say where."""

    def test_what_was_written_is_read(self, home: Location) -> None:
        write(home / "out", "new")
        assert read(home / "out") == "new"
        assert names(home) == [f"out/{name}" for name in WHOLE]

    def test_nothing_appears_when_the_work_fails(self, home: Location) -> None:
        with pytest.raises(RuntimeError), new_folder(home / "out", kind="workload", force=False) as folder:
            write_whole(folder / "table" / "part", "half")
            raise RuntimeError
        with pytest.raises(UsageError, match=r"no such folder|not a complete workload"):
            read(home / "out")
        assert names(home) == []

    def test_an_existing_folder_needs_force(self, home: Location) -> None:
        write(home / "out", "old")
        write_whole(home / "out" / "report.html", "of the old")
        with pytest.raises(UsageError, match="exists already; choose another folder, or replace it with --force"):
            write(home / "out", "new")
        assert read(home / "out") == "old"
        write(home / "out", "new", force=True)
        assert read(home / "out") == "new"
        assert names(home) == [f"out/{name}" for name in WHOLE]

    def test_the_old_folder_is_read_until_the_new_one_is_complete(self, home: Location) -> None:
        write(home / "out", "old")
        with new_folder(home / "out", kind="workload", force=True) as folder:
            fill(folder, "new")
            assert read(home / "out") == "old"
        assert read(home / "out") == "new"

    def test_a_failed_replacement_keeps_the_old_folder(self, home: Location) -> None:
        write(home / "out", "old")
        with pytest.raises(RuntimeError), new_folder(home / "out", kind="workload", force=True) as folder:
            fill(folder, "new")
            raise RuntimeError
        assert read(home / "out") == "old"
        assert names(home) == [f"out/{name}" for name in WHOLE]

    @pytest.mark.parametrize("manifest", [None, '{"manifest_version": 3, "name": "an extension"}'])
    def test_force_does_not_touch_what_grapevine_did_not_write(self, home: Location, manifest: str | None) -> None:
        write_whole(home / "photos" / "cat.jpg", "meow")
        if manifest:
            write_whole(home / "photos" / FILE_NAME, manifest)
        with pytest.raises(UsageError, match="replaces only a workload that Grapevine wrote"):
            write(home / "photos", "new", force=True)
        with pytest.raises(UsageError, match="exists already"):
            write(home / "photos", "new")
        assert (home / "photos" / "cat.jpg").read_text() == "meow"

    def test_force_does_not_replace_another_kind(self, home: Location) -> None:
        write(home / "w", "old")
        with pytest.raises(UsageError, match="holds a workload"), new_folder(home / "w", kind="profile", force=True):
            pass
        assert read(home / "w") == "old"

    def test_a_file_is_not_replaced(self, home: Location) -> None:
        write_whole(home / "file", "")
        with pytest.raises(UsageError, match="is a file"):
            write(home / "file", "", force=True)

    @pytest.mark.parametrize("force", [False, True])
    def test_of_two_at_a_time_the_first_to_finish_stays_and_the_other_is_told(
        self, home: Location, force: bool
    ) -> None:
        if force:
            write(home / "out", "old")
        with (
            pytest.raises(UsageError, match="out: another run wrote it meanwhile; what this one made was not kept"),
            new_folder(home / "out", kind="workload", force=force) as slow,
        ):
            fill(slow, "slow")
            write(home / "out", "quick", force=force)
        assert read(home / "out") == "quick"
        assert names(home) == [f"out/{name}" for name in WHOLE]

    def test_a_run_whose_draft_others_removed_does_not_commit_the_rest(self, home: Location) -> None:
        write(home / "out", "old")
        with (
            pytest.raises(UsageError, match="out: another run has removed what this one wrote"),
            new_folder(home / "out", kind="workload", force=True) as folder,
        ):
            write_whole(folder / "table" / "part", "new")
            remove(folder)
            fill(folder, "new")
        assert read(home / "out") == "old"

    def test_tables_are_replaced_and_what_lies_beside_them_stays(self, home: Location) -> None:
        write_whole(home / "out" / "simulations" / "a" / "run", "a")
        for text in ("old", "new"):
            with new_tables(home / "out", kind="experiment") as folder:
                fill(folder, text, "experiment")
                assert text == "old" or read(home / "out", "experiment") == "old"
            assert read(home / "out", "experiment") == text
        with pytest.raises(RuntimeError), new_tables(home / "out", kind="experiment") as folder:
            fill(folder, "newest", "experiment")
            raise RuntimeError
        assert read(home / "out", "experiment") == "new"
        assert names(home / "out") == sorted([*WHOLE, "simulations/a/run"])
