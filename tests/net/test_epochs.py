"""In which epoch a node publishes: folders that are restored, crashed, or left in good order."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.net import Node
from grapevine.net.data_folder import DataFolder
from grapevine.net.epochs import GOODBYE_FILE
from grapevine.net.retention import Retention
from grapevine.net.stamp import next_epoch, overlay_number, sequence_of, stamp_of, stamped
from grapevine.net.store import STORE_FILE
from grapevine.net.surroundings import Surroundings
from tests.net.hostile import eventually
from tests.net.nodes import during, opening, payloads

EPOCHS = st.integers(0, 2**58 - 1)


async def publish(node: Node, *payloads: bytes, acks: int = 0) -> list[int]:
    return [(await node.publish("x", payload, acks=acks)).sequence for payload in payloads]


def test_a_folder_restored_from_a_backup_uses_no_number_again_and_says_so(tmp_path: Path) -> None:
    """Subscribers never got the new 3 and 4, and nobody was told."""
    folder, backup = tmp_path / "folder", tmp_path / "backup"

    async def scenario() -> None:
        async with opening() as a, a.subscribe("x") as events:
            async with opening(a, data_dir=folder) as b:  # it leaves at once, so somebody has to have them by then
                assert await publish(b, b"1", b"2", acks=1) == [1, 2]
            shutil.copytree(folder, backup)
            async with opening(a, data_dir=folder) as b:
                assert await publish(b, b"3", b"4", acks=1) == [3, 4]
            assert await payloads(events, 4) == [b"1", b"2", b"3", b"4"]
            shutil.rmtree(folder)
            shutil.copytree(backup, folder)
            async with opening(a, data_dir=folder) as b:
                new = [await b.publish("x", payload) for payload in (b"new 3", b"new 4")]
                assert [(event.sequence, event.epoch > 0) for event in new] == [(1, True), (2, True)]
                assert await payloads(events, 2) == [b"new 3", b"new 4"]
                await eventually(lambda: b.stats()["returned"] == 2, 20)  # its own 3 and 4 come back to it
                assert [condition.name for condition in b.conditions()] == ["restored"]

    during(scenario())


async def epoch_of(folder: Path, surroundings: Surroundings | None = None) -> int:
    surroundings = surroundings or Surroundings(boot=lambda: "this boot")
    async with DataFolder.open(folder, Retention(), synced=False, surroundings=surroundings) as opened:
        return opened.epochs.epoch


@pytest.mark.parametrize(
    ("what", "goes_on"),
    [
        ("nothing", True),
        ("moved away and back", True),
        ("the file alone is replaced by a copy of itself", False),
        ("the goodbye is lost, as in a crash", False),
        ("the machine was started again", False),
        ("the store is gone", False),
    ],
)
def test_a_session_goes_on_only_in_the_folder_that_the_last_one_left(tmp_path: Path, what: str, goes_on: bool) -> None:
    async def scenario() -> None:
        folder, boot = tmp_path / "folder", "this boot"
        first = await epoch_of(folder)
        assert first == 0 and await epoch_of(folder) == 0
        if what.startswith("moved"):
            folder.rename(tmp_path / "away").rename(folder)
        elif what.startswith("the file"):
            copy = shutil.copy2(folder / STORE_FILE, tmp_path / "copy")
            shutil.copy2(copy, folder / STORE_FILE)
        elif what.startswith("the goodbye"):
            (folder / GOODBYE_FILE).unlink()
        elif what.startswith("the machine"):
            boot = "another boot"
        elif what.startswith("the store"):
            (folder / STORE_FILE).unlink()
        epoch = await epoch_of(folder, Surroundings(boot=lambda: boot))
        assert (epoch == 0) == goes_on

    asyncio.run(scenario())


def test_where_nobody_can_tell_one_boot_from_the_next_every_session_has_its_own_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        nowhere = Surroundings(boot=lambda: "")
        epochs = [await epoch_of(tmp_path, nowhere) for _ in range(3)]
        assert epochs[0] == 0 and epochs == sorted(set(epochs))

    asyncio.run(scenario())


@given(EPOCHS, st.integers(0, 2**34 - 2), st.binary(max_size=8))
def test_a_new_epoch_comes_after_the_one_before_whatever_the_clock_says(before: int, now_s: int, chance: bytes) -> None:
    before = min(before, (2**34 - 2) << 24)
    epoch = next_epoch(before, now_s, chance)
    assert epoch > before and overlay_number(epoch, 1) > overlay_number(before, 1)


@given(EPOCHS, st.integers(1, 2**28 - 1))
def test_overlays_have_a_number_for_every_event_below_their_bound(epoch: int, sequence: int) -> None:
    number = overlay_number(epoch, sequence)
    assert sequence_of(epoch, number) == sequence and number < 2**62


@given(st.integers(0, 2**62), st.binary(max_size=50), EPOCHS, st.one_of(st.none(), st.binary(min_size=16, max_size=16)))
def test_a_stamp_is_read_as_it_was_written(time_ms: int, payload: bytes, epoch: int, before: bytes | None) -> None:
    content = stamped(time_ms, payload, epoch, before)
    stamp = stamp_of(content)
    assert (stamp.time_ms, stamp.before, content[stamp.size :]) == (time_ms, before, payload)
    assert stamp.epoch == (0 if before is None else epoch)
