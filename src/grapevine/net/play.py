"""Plays a workload on a cluster, from the first process to the last delivery, with faults on the way."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grapevine.kernels.jit import compiling_told
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.workload import Workload
from grapevine.net.cluster import Cluster
from grapevine.net.cluster_config import ClusterConfig
from grapevine.net.live_system import live_facet
from grapevine.net.run import stop_on_signals

SUMMARY_FILE = "cluster.json"
_PROGRESS_S = 1.0


@dataclass(frozen=True, slots=True)
class Kill:
    """So many seconds after the first event, the processes of a share of the nodes are killed."""

    share: float
    second: float

    @classmethod
    def parse(cls, text: str) -> Kill:
        """`SHARE@SECOND`, e.g. 0.5@10."""
        share, at, second = text.partition("@")
        try:
            found = cls(float(share), float(second)) if at else None
        except ValueError:
            found = None
        if found is None or not 0 < found.share <= 1 or not 0 <= found.second < 1e6:
            raise UsageError(f"--kill {text}: write SHARE@SECOND, e.g. 0.5@10 for half of the processes after 10 s")
        return found


def play(
    workload: Workload,
    config: ClusterConfig,
    *,
    system: str,
    parameters: Mapping[str, Any],
    settings: Mapping[str, Any],
    data: Path | None = None,
    out: Path | None = None,
    seed: int = 1,
    kill: Kill | None = None,
    restart_s: float | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The summary of a run; of what there was of it, if Ctrl-C or SIGTERM ended it (`stopped`).

    `is_complete` says whether every delivery that was due came within `settle_s`. GrapevineError, before the first
    event, if the network does not come together in time.
    """
    if kill is not None and config.processes < 2:
        raise UsageError("--kill: needs at least --processes 2, since one has to stay")
    if restart_s is not None and (kill is None or data is None):
        raise UsageError("--restart-after: needs --kill, and --data DIR for the folders that nodes come back with")
    if out is not None:
        _make_folder(out)

    async def run() -> dict[str, Any]:
        stop_on_signals()
        summary: dict[str, Any] = {"stopped": True}
        with contextlib.suppress(asyncio.CancelledError):
            async with Cluster.open(
                workload,
                config,
                system=system,
                parameters=parameters,
                settings=settings,
                data=data,
                out=out,
                seed=seed,
                started=False,
            ) as cluster:
                try:
                    async with _one_of_ours(), asyncio.TaskGroup() as group:
                        watching = group.create_task(_watch(cluster, progress))
                        await cluster.start()
                        is_complete = await _run(cluster, group, kill, restart_s)
                        watching.cancel()
                    summary = {"stopped": False, "is_complete": is_complete}
                finally:
                    summary |= cluster.summary()
        return summary

    with compiling_told(system):  # once, here: so it is said, and no group has to
        live_facet(system).warm_up()
    summary = asyncio.run(run())
    if out is not None:
        (out / SUMMARY_FILE).write_text(json.dumps(summary, indent=2) + "\n")
    return summary


@contextlib.asynccontextmanager
async def _one_of_ours() -> AsyncIterator[None]:
    """A failure that was foreseen is raised as it is, not in the group that tasks put it into."""
    try:
        yield
    except BaseExceptionGroup as group:
        foreseen = group.subgroup(GrapevineError)
        while isinstance(foreseen, BaseExceptionGroup):
            foreseen = foreseen.exceptions[0]
        if foreseen is not None:
            raise foreseen from None
        raise


async def _run(cluster: Cluster, group: asyncio.TaskGroup, kill: Kill | None, restart_s: float | None) -> bool:
    """From the first event to the last delivery; whether every one came."""
    await cluster.wait_until_connected()
    faults = None if kill is None else group.create_task(_kill(cluster, kill, restart_s))
    await cluster.publish()
    if faults is not None:
        await faults
    return await cluster.wait_until_delivered()


async def _kill(cluster: Cluster, kill: Kill, restart_s: float | None) -> None:
    await asyncio.sleep(kill.second)
    groups = cluster.groups_for(kill.share)
    await asyncio.gather(*(cluster.kill(number) for number in groups))
    if restart_s is not None:
        await asyncio.sleep(restart_s)
        await asyncio.gather(*(cluster.restart(number) for number in groups))


async def _watch(cluster: Cluster, progress: Callable[[dict[str, Any]], None] | None) -> None:
    while progress is not None:
        progress(cluster.snapshot())
        await asyncio.sleep(_PROGRESS_S)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = any(out.iterdir())
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror}); choose another folder") from None
    if taken:
        raise UsageError(f"{out}: is not empty; choose another folder, or remove it")
