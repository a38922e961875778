"""Plays a workload on a cluster, from the first process to the last delivery, with faults on the way."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from grapevine.kernels.jit import compiling_told
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.workload import Workload
from grapevine.net.cluster import Cluster
from grapevine.net.cluster_config import ClusterConfig
from grapevine.net.cluster_faults import Faults, Prepared
from grapevine.net.judge import Judge
from grapevine.net.live_system import live_facet
from grapevine.net.run import stop_on_signals

SUMMARY_FILE = "cluster.json"
NO_FAULTS = Faults()
_PROGRESS_S = 1.0


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
    faults: Faults = NO_FAULTS,
    judged: bool = False,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The summary of a run; of what there was of it, if Ctrl-C or SIGTERM ended it (`stopped`).

    `is_complete` says whether every delivery that was due came within `settle_s`, or was reported as lost. With
    `judged`, applications read under a name, and an oracle says in `broken` which of the promises of docs/guarantees.md
    were not kept, in sentences, and in `losses_reported` how many deliveries gaps stand for. GrapevineError, before the
    first event, if the network does not come together in time.
    """
    faults.check(config, data)
    if out is not None:
        _make_folder(out)

    async def run(prepared: Prepared) -> dict[str, Any]:
        stop_on_signals()
        summary: dict[str, Any] = {"stopped": True}
        with contextlib.suppress(asyncio.CancelledError):
            async with Cluster.open(
                workload,
                config,
                system=system,
                parameters=parameters,
                settings=prepared.settings | dict(settings),
                data=data,
                out=out,
                seed=seed,
                spots=prepared.spots,
                judge=Judge() if judged else None,
                started=False,
            ) as cluster:
                try:
                    async with _one_of_ours(), asyncio.TaskGroup() as group:
                        watching = group.create_task(_watch(cluster, progress))
                        await cluster.start()
                        is_complete = await _run(cluster, prepared)
                        watching.cancel()
                    summary = {"stopped": False, "is_complete": is_complete}
                finally:
                    summary |= cluster.summary() | _verdict(cluster)
        return summary

    with compiling_told(system):  # once, here: so it is said, and no group has to
        live_facet(system).warm_up()
    with faults.prepared(config, data) as prepared:
        summary = asyncio.run(run(prepared))
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


async def _run(cluster: Cluster, prepared: Prepared) -> bool:
    """From the first event to the last delivery; whether every one came."""
    await cluster.wait_until_connected()
    async with asyncio.TaskGroup() as group:
        group.create_task(prepared.befall(cluster))
        await cluster.publish()
    return await cluster.wait_until_delivered()


def _verdict(cluster: Cluster) -> dict[str, Any]:
    if cluster.judge is None:
        return {}
    broken, reported = cluster.judge.verdict(cluster.down)
    return {"broken": [str(violation) for violation in broken], "losses_reported": reported}


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
