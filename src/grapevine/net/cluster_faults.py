"""What befalls a cluster: processes that are killed, a network that falls into two, disks that are full.

Each begins so many seconds after the first event, and may end so many seconds later: `WHAT@SECOND+SECONDS`. A killed
process is started again on its nodes' folders then, a pulled cable is plugged in, a disk has room.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from grapevine.model.errors import UsageError
from grapevine.net import namespaces, small_disks
from grapevine.net.cluster import Cluster, Spot
from grapevine.net.cluster_config import ClusterConfig
from grapevine.net.config import NodeConfig
from grapevine.net.namespaces import Hosts
from grapevine.net.small_disks import SmallDisk

_FORM = re.compile(r"([0-9.]+)@([0-9.]+)(?:\+([0-9.]+))?")
_MOST_S = 1e6


@dataclass(frozen=True, slots=True)
class Fault:
    """When something begins, and when it ends, if it does."""

    option: ClassVar[str]
    what: ClassVar[str]  # the first part of the text
    example: ClassVar[str]
    must_end: ClassVar[bool] = True
    is_share: ClassVar[bool] = True  # of processes; otherwise a number of nodes

    amount: float
    second: float
    for_s: float | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `WHAT@SECOND+SECONDS`; UsageError for anything else."""
        form = re.fullmatch(_FORM, text)
        with contextlib.suppress(ValueError):
            if form is not None:
                found = cls(float(form[1]), float(form[2]), None if form[3] is None else float(form[3]))
                if found._is_possible():
                    return found
        seconds = "+SECONDS" if cls.must_end else "[+SECONDS]"
        raise UsageError(f"--{cls.option} {text}: write {cls.what}@SECOND{seconds}, e.g. {cls.example}")

    def _is_possible(self) -> bool:
        is_amount = 0 < self.amount <= 1 if self.is_share else self.amount >= 1 and self.amount.is_integer()
        is_end = not self.must_end if self.for_s is None else 0 < self.for_s < _MOST_S
        return is_amount and is_end and self.second < _MOST_S


class Kill(Fault):
    """The processes of a share of the nodes are killed."""

    option, what = "kill", "SHARE"
    example = "0.5@10 for half of the processes after 10 s, or 0.5@10+5 to start them again 5 s later"
    must_end = False


class Partition(Fault):
    """The processes of a share of the nodes reach nobody but each other."""

    option, what = "partition", "SHARE"
    example = "0.5@10+120 for two halves that are apart from second 10 on, for two minutes"


class FullDisk(Fault):
    """The disks of so many nodes are full."""

    option, what = "full-disk", "NODES"
    example = "5@10+30 for five nodes whose disks are full from second 10 on, for 30 s"
    is_share = False


@dataclass(frozen=True, slots=True)
class Faults:
    """What is to befall one cluster."""

    kill: Kill | None = None
    partition: Partition | None = None
    full_disk: FullDisk | None = None

    def check(self, config: ClusterConfig, data: Path | None) -> None:
        """UsageError if they cannot befall a cluster of this size, with these folders, on this machine."""
        mistakes = [
            f"--{fault.option}: needs at least --processes 2, since one has to stay"
            for fault in (self.kill, self.partition)
            if fault is not None and config.processes < 2
        ]
        if self.kill is not None and self.kill.for_s is not None and data is None:
            mistakes.append("--kill: processes that are to come back need --data DIR for the folders of their nodes")
        if self.full_disk is not None and (data is None or self.full_disk.amount > config.nodes):
            mistakes.append(f"--full-disk: needs --data DIR, and at most --nodes ({config.nodes})")
        for wanted, module in ((self.partition, namespaces), (self.full_disk, small_disks)):
            if wanted is not None and (obstacle := module.obstacle()) is not None:
                mistakes.append(f"--{wanted.option}: {obstacle}")
        if mistakes:
            raise UsageError("; ".join(mistakes))

    @contextlib.contextmanager
    def prepared(self, config: ClusterConfig, data: Path | None) -> Iterator[Prepared]:
        """What has to be there before the cluster is, and until it is gone."""
        with contextlib.ExitStack() as stack:
            spots, hosts, disks = [Spot()], None, list[SmallDisk]()
            if self.partition is not None:
                hosts = stack.enter_context(namespaces.hosts(f"grapevine-{secrets.token_hex(3)}"))
                spots = _spots(hosts, self.partition.amount, config.processes)
            nodes = [] if self.full_disk is None else list(range(int(self.full_disk.amount)))
            if nodes and data is not None:  # nodes of the first processes: those that are killed are the last
                disks = stack.enter_context(small_disks.small_disks(Cluster.folder_of(data, n) for n in nodes))
            yield Prepared(self, spots, hosts, disks)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Faults that can befall a cluster whose groups live in these spots."""

    faults: Faults
    spots: Sequence[Spot]
    hosts: Hosts | None
    disks: Sequence[SmallDisk]

    @property
    def settings(self) -> dict[str, Any]:
        """Of the nodes: many of them share the address of a host, and are no crowd of strangers for that."""
        return {} if self.hosts is None else {"uncounted": f"{NodeConfig().uncounted} {namespaces.NETWORK}"}

    async def befall(self, cluster: Cluster) -> None:
        """All of them, at their times; returns when the last is over. Called when the first event is published."""
        async with asyncio.TaskGroup() as tasks:
            if (kill := self.faults.kill) is not None:
                tasks.create_task(_kill(cluster, kill))
            if (partition := self.faults.partition) is not None and self.hosts is not None:
                tasks.create_task(_part(cluster, partition, self.hosts))
            if (full := self.faults.full_disk) is not None:
                tasks.create_task(_fill(cluster, full, self.disks))


def _spots(hosts: Hosts, share: float, groups: int) -> list[Spot]:
    """For every group a host: so many on the second as the share says, at least one on each, evenly among the first."""
    count = min(max(round(share * groups), 1), groups - 1)
    places = [Spot(namespaces.ADDRESSES[host], hosts.prefix(host)) for host in (0, 1)]
    return [places[(g + 1) * count // groups > g * count // groups] for g in range(groups)]


async def _kill(cluster: Cluster, kill: Kill) -> None:
    await asyncio.sleep(kill.second)
    groups = cluster.groups_for(kill.amount)
    await asyncio.gather(*(cluster.kill(number) for number in groups))
    if kill.for_s is not None:
        await asyncio.sleep(kill.for_s)
        await asyncio.gather(*(cluster.restart(number) for number in groups))


async def _part(cluster: Cluster, partition: Partition, hosts: Hosts) -> None:
    assert partition.for_s is not None
    await asyncio.sleep(partition.second)
    hosts.cut()
    await asyncio.sleep(partition.for_s)
    hosts.heal()
    cluster.on_fault_over()


async def _fill(cluster: Cluster, full: FullDisk, disks: Sequence[SmallDisk]) -> None:
    assert full.for_s is not None
    await asyncio.sleep(full.second)
    for disk in disks:
        disk.fill()
    await asyncio.sleep(full.for_s)
    for disk in disks:
        disk.empty()
    cluster.on_fault_over(range(len(disks)))
