"""URLs through Hadoop's file systems: the same promises as on paths, and one sentence for whatever goes wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.location import Location, Remote, local_copy, remove
from grapevine.pipeline.hadoop import known_reason
from grapevine.pipeline.stage import Stage
from tests.folder_promises import FolderPromises, write


@pytest.mark.slow
class TestFoldersOnFileUrls(FolderPromises):
    """As on HDFS: renames are one step."""

    @pytest.fixture
    def home(self, stage: Stage, tmp_path: Path) -> Location:
        return stage.location(f"file://{tmp_path}")


@pytest.mark.slow
class TestFoldersWhereRenamesAreNotAtomic(FolderPromises):
    @pytest.fixture
    def home(self, stage: Stage, tmp_path: Path) -> Location:
        return stage.location(f"notatomic://{tmp_path}")


@pytest.mark.slow
class TestFoldersOnARealStore(FolderPromises):
    """`GRAPEVINE_STORE=hdfs://host:9000/somewhere .venv/bin/pytest -m slow tests/pipeline/test_hadoop.py`: on a store
    that is at hand; what Spark needs for it comes from the environment, or `spark-defaults.conf`."""

    @pytest.fixture
    def home(self, stage: Stage, tmp_path: Path) -> Iterator[Location]:
        if not (store := os.environ.get("GRAPEVINE_STORE")):
            pytest.skip("no store here: set GRAPEVINE_STORE to a URL below which tests may write")
        home = stage.location(f"{store}/{tmp_path.parent.name}-{tmp_path.name}")
        yield home
        remove(home)


@pytest.fixture(params=["file", "notatomic"])
def remote(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Remote:
    """`tmp_path` as a URL; the path itself is the judge of what is there."""
    found = stage.location(f"{request.param}://{tmp_path}")
    assert isinstance(found, Remote)
    return found


@pytest.mark.parametrize(
    "promise",
    [
        FolderPromises.test_the_old_folder_is_read_until_the_new_one_is_complete,
        FolderPromises.test_tables_are_replaced_and_what_lies_beside_them_stays,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_the_promises_of_folders_hold(remote: Remote, promise: Callable[[FolderPromises, Location], None]) -> None:
    """Two of them; `make test-full` tries all."""
    promise(FolderPromises(), remote)


def test_names_are_those_of_paths(remote: Remote, tmp_path: Path) -> None:
    deep = remote / "a" / "b.c"
    assert str(deep).endswith(f"://{tmp_path}/a/b.c")
    assert (deep.name, deep.parent, deep.with_name("d")) == ("b.c", remote / "a", remote / "a" / "d")
    assert (deep.resolve(), deep.absolute()) == (deep, deep)
    assert len({deep, remote / "a/b.c", remote / "a//b.c/"}) == 1


def test_looks_and_lists_are_those_of_paths(remote: Remote, tmp_path: Path) -> None:
    for name in ("a/x[1].txt", "a/y z.txt", "b{1}/y z.txt", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in ("a", "a/x[1].txt", "nothing", "a/nothing", "c/below a file", "b{1}"):
        here, there = tmp_path / name, remote / name
        assert (there.exists(), there.is_dir(), there.is_file()) == (here.exists(), here.is_dir(), here.is_file()), name
    assert sorted(entry.name for entry in remote.iterdir()) == names_in(tmp_path)
    assert list((remote / "nothing").iterdir()) == list((remote / "c").iterdir()) == []
    for pattern in ("*", "*/y*.txt", "a/*", "none*"):
        found = sorted(str(entry)[len(str(remote)) + 1 :] for entry in remote.glob(pattern))
        assert found == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob(pattern)), pattern
    assert [entry.name for entry in (remote / "b{1}").glob("*.txt")] == ["y z.txt"]


def test_files_come_and_go_whole(remote: Remote, tmp_path: Path) -> None:
    write_whole(remote / "a" / "text", "größe\n")
    assert (tmp_path / "a" / "text").read_text("utf-8") == (remote / "a" / "text").read_text() == "größe\n"
    write_whole(remote / "a" / "text", "again")
    assert names_in(tmp_path / "a") == ["text"]
    with local_copy(remote / "a") as local:
        assert (local.name, [file.read_text() for file in local.iterdir()]) == ("a", ["again"])
    assert not local.exists()
    (remote / "a" / "text").unlink()
    (remote / "a" / "text").unlink(missing_ok=True)
    (remote / "a").remove()
    (remote / "a").remove()
    assert names_in(tmp_path) == []


def names_in(folder: Path) -> list[str]:
    """Without the checksums that Hadoop keeps where it thinks that it should."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".crc")


def test_a_file_that_another_program_replaced_is_read(stage: Stage, tmp_path: Path) -> None:
    """Hadoop's own local file system would compare it with the checksum of the old one."""
    file = stage.location(f"file://{tmp_path}/manifest.json")
    write_whole(file, "old")
    (tmp_path / "manifest.json").write_text("new")
    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_rename_takes_no_name_that_is_taken(stage: Stage, tmp_path: Path) -> None:
    remote = stage.location(f"file://{tmp_path}")
    assert isinstance(remote, Remote) and remote.renames_at_once
    for name in ("one", "two"):
        write_whole(remote / name / "file", name)
    with pytest.raises(FileExistsError):
        (remote / "one").rename(remote / "two")
    assert (remote / "one").rename(remote / "three") == remote / "three"
    assert sorted(path.read_text() for path in tmp_path.glob("*/*")) == ["one", "two"]
    assert names_in(tmp_path) == ["three", "two"]


def test_a_path_needs_no_spark(tmp_path: Path) -> None:
    stage = Stage()
    assert stage.location(str(tmp_path)) == tmp_path
    assert str(stage.location("s3a://bucket/w")) == "s3a://bucket/w"
    assert "spark" not in vars(stage)


def test_only_what_is_known_to_rename_at_once_is_trusted_to() -> None:
    schemes = "file", "hdfs", "webhdfs", "s3a", "gs", "abfss", "notatomic"
    found = [stage_url(f"{scheme}://x/y").renames_at_once for scheme in schemes]
    assert found == [True, True, True, False, False, False, False]


def stage_url(url: str) -> Remote:
    found = Stage().location(url)
    assert isinstance(found, Remote)
    return found


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://host/w", r"Spark knows no file system for nonsense://; add its package"),
        ("s3a://bucket/w", r"Spark lacks org.apache.hadoop.fs.s3a.S3AFileSystem; add its package"),
        ("hdfs://127.0.0.1:1/w", r"the host cannot be reached \(.*[Cc]onnection refused"),
        ("hdfs://no-such-host.invalid/w", r"the host cannot be reached \(.*no-such-host.invalid"),
        ("hdfs:///w", r"the file system refused \(.*no host"),
        ("file://", r"is not a valid URL; write it as SCHEME://HOST/PATH"),
        ("notatomic:///somewhere/else", r"the file system refused|permission was denied"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_sentence(stage: Stage, url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        write(stage.location(url), "")
    assert str(caught.value).startswith(url.removesuffix("w")) and "\n" not in str(caught.value)


def test_a_folder_below_a_file_is_one_sentence(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"/file.*: the file system refused \(.*not a directory"):
        write(remote / "file" / "out", "")
    assert names_in(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_made_is_one_sentence(stage: Stage) -> None:
    with pytest.raises(UsageError, match=r"^file:///proc/.*: cannot be made"):
        write(stage.location("file:///proc/w"), "")


@pytest.mark.parametrize(
    ("thrown", "said"),
    [
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=me, access=WRITE",
            "permission was denied (Permission denied: user=me, access=WRITE)",
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://bucket/w: getFileStatus on s3a://bucket/w: Forbidden (403)",
            "permission was denied (s3a://bucket/w: getFileStatus on s3a://bucket/w: Forbidden (403))",
        ),
        ("java.net.UnknownHostException: bucket.invalid", "the host cannot be reached (bucket.invalid)"),
        (
            "java.io.IOException: x\nCaused by: java.net.ConnectException: Call From a to b:8020 failed\n\tat a.b.C",
            "the host cannot be reached (Call From a to b:8020 failed)",
        ),
        ("java.lang.IllegalStateException: a permission of another kind", None),
    ],
)
def test_what_a_store_says_becomes_one_sentence(thrown: str, said: str | None) -> None:
    """Of stores that are not here: as Hadoop's documentation and sources have them."""
    assert known_reason(thrown) == said
