import os
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.manifest import Manifest, read_manifest


def write(target: Path, text: str, *, force: bool = False) -> None:
    with new_folder(target, kind="workload", force=force) as folder:
        (folder / "table").write_text(text)
        Manifest(kind="workload", stage="test", version="0").write(folder)


def test_nothing_appears_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", kind="workload", force=False) as folder:
        (folder / "table").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_needs_force(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(UsageError, match="--force"):
        write(tmp_path / "out", "new")
    assert (tmp_path / "out" / "table").read_text() == "old"
    write(tmp_path / "out", "new", force=True)
    assert (tmp_path / "out" / "table").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failed_replacement_keeps_the_old_folder(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", kind="workload", force=True):
        raise RuntimeError
    assert (tmp_path / "out" / "table").read_text() == "old"


@pytest.mark.parametrize("manifest", [None, '{"manifest_version": 3, "name": "an extension"}'])
def test_force_does_not_touch_what_grapevine_did_not_write(tmp_path: Path, manifest: str | None) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    if manifest:
        (tmp_path / "photos" / "manifest.json").write_text(manifest)
    with pytest.raises(UsageError, match="--force replaces only a workload that Grapevine wrote"):
        write(tmp_path / "photos", "new", force=True)
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_force_does_not_replace_another_kind(tmp_path: Path) -> None:
    write(tmp_path / "w", "workload")
    with pytest.raises(UsageError, match="holds a workload"), new_folder(tmp_path / "w", kind="profile", force=True):
        pass
    assert (tmp_path / "w" / "table").read_text() == "workload"


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
    assert (tmp_path / "out" / "table").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_replacement_that_was_killed_brings_the_old_folder_back_at_the_next_run(tmp_path: Path) -> None:
    write(tmp_path / ".out.replaced-4194999-x", "old")
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "out", "new")
    assert (tmp_path / "out" / "table").read_text() == "old"


def test_a_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "table").read_text() == "new"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write(tmp_path / "file" / "out", "")
    with pytest.raises(UsageError, match="is a file"):
        write(tmp_path / "file", "", force=True)


def test_leftovers_of_a_killed_run_are_removed_and_those_of_a_running_one_kept(tmp_path: Path) -> None:
    dead, alive = tmp_path / ".out.partial-4194999-x", tmp_path / f".out.partial-{os.getppid()}-x"
    (tmp_path / f".out.partial-{os.getpid()}-x").mkdir()  # an earlier process had our number
    dead.mkdir()
    alive.mkdir()
    write(tmp_path / "out", "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([alive.name, "out"])
    assert not dead.exists()


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
