"""Other users of the machine: nothing in a node's folder is theirs to read, whatever was there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from tests.net.nodes import during, opening


def modes(folder: Path) -> dict[str, int]:
    """Of the folder and of everything in it."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}


@pytest.fixture
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous_umask")
def test_a_folder_that_was_open_to_all_is_closed_and_so_is_every_file_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "node"

    async def session() -> None:
        async with opening(data_dir=folder) as node, node.subscribe("diagnoses"):
            await node.publish("diagnoses", b"not for everybody")
            while_open = modes(folder)
            assert while_open.pop("node") == 0o700
            assert {"events.sqlite", "events.sqlite-wal", "lock", "identity.key"} <= while_open.keys()
            assert set(while_open.values()) == {0o600}, while_open
        assert "contacts" in modes(folder) and set(modes(folder).values()) == {0o600, 0o700}

    folder.mkdir(mode=0o755)
    during(session())
    for path in folder.iterdir():  # as a release before left them, or a careless copy
        path.chmod(0o600 if path.name == "identity.key" else 0o644)
    folder.chmod(0o755)
    during(session())


def test_a_folder_of_everybody_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)

    async def session() -> None:
        async with opening(data_dir=shared):
            pass

    with pytest.raises(UsageError, match="give the node one of its own"):
        during(session())
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777 and not list(shared.iterdir())
