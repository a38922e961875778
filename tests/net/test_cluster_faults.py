"""Faults of a cluster as a user writes them, and what makes them: groups on two hosts, disks that can be full."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.net import namespaces, small_disks
from grapevine.net.cluster_config import ClusterConfig
from grapevine.net.cluster_faults import Fault, Faults, FullDisk, Kill, Partition, Prepared, _spots
from grapevine.net.config import NodeConfig
from grapevine.net.namespaces import Hosts
from grapevine.net.origins import Origins


@pytest.mark.parametrize("text", ["1", "@", "0@1", "1.5@1", "0.5@-1", "x@1", "0.5@", "0.5@1+", "0.5@1+0", "1..2@3"])
def test_a_kill_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--kill .*: write SHARE@SECOND\[\+SECONDS\], e\.g\. 0\.5@10"):
        Kill.parse(text)


@pytest.mark.parametrize("kind", [Partition, FullDisk])
def test_a_cut_or_a_full_disk_has_an_end(kind: type[Fault]) -> None:
    with pytest.raises(UsageError, match=rf"--{kind.option} 1@5: write {kind.what}@SECOND\+SECONDS"):
        kind.parse("1@5")


def test_what_is_written_is_what_happens() -> None:
    assert Kill.parse("0.5@10") == Kill(0.5, 10.0, None)
    assert Partition.parse("0.5@10+120") == Partition(0.5, 10.0, 120.0)
    assert FullDisk.parse("5@0.5+1.5") == FullDisk(5.0, 0.5, 1.5)
    with pytest.raises(UsageError, match="--full-disk"):
        FullDisk.parse("2.5@1+1")


def test_all_that_is_in_the_way_is_said_at_once() -> None:
    config = ClusterConfig(nodes=3, topics=4, subscriptions=2, processes=1)
    with pytest.raises(UsageError) as raised:
        Faults(kill=Kill(0.5, 1, 1), full_disk=FullDisk(4, 1, 1)).check(config, None)
    said = str(raised.value)
    assert "--kill: needs at least --processes 2" in said and "come back need --data" in said
    assert "--full-disk: needs --data DIR, and at most --nodes (3)" in said


@given(groups=st.integers(2, 40), share=st.floats(0.01, 1.0))
def test_a_share_of_the_groups_is_cut_off_and_nobody_is_alone_on_one_side_for_nothing(
    groups: int, share: float
) -> None:
    second = [spot.host == namespaces.ADDRESSES[1] for spot in _spots(Hosts(("a", "b")), share, groups)]
    assert len(second) == groups and sum(second) == min(max(round(share * groups), 1), groups - 1)


def test_nodes_that_share_the_address_of_a_host_are_not_counted_as_strangers() -> None:
    prepared = Prepared(Faults(), [], Hosts(("a", "b")), [])
    counted = Origins(NodeConfig(**prepared.settings).uncounted)
    assert all(counted.of(address) is None for address in (*namespaces.ADDRESSES, "127.0.0.1"))
    assert counted.of("203.0.113.5") is not None


def test_a_full_disk_takes_not_a_byte_until_there_is_room(tmp_path: Path) -> None:
    if (obstacle := small_disks.obstacle()) is not None:
        pytest.skip(obstacle)
    with small_disks.small_disks([tmp_path / "a", tmp_path / "b"]) as (disk, other):
        disk.fill()
        with pytest.raises(OSError, match="No space left"), (disk.folder / "file").open("wb") as file:
            file.write(b"x" * 100_000)
            file.flush()
        (other.folder / "file").write_bytes(b"x")
        disk.empty()
        (disk.folder / "file").write_bytes(b"x" * 100_000)
    assert list((tmp_path / "a").iterdir()) == [], "what was on the disk went with it"
