"""From what a user brings, a workload or a raw trace, to a workload's folder that is small enough to compare on.

What is made on the way lies below the comparison's folder under names that follow from contents, so that it is made
once, and a comparison that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from grapevine.comparison.candidates import CompareConfig, Source
from grapevine.comparison.costs import AN_HOUR, Rates
from grapevine.experiment.code import content_digest
from grapevine.experiment.plan import trace_key
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest, is_complete, read_manifest
from grapevine.model.workload import Workload
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.guess import guess_format
from grapevine.pipeline.ingest import IngestConfig, ingest
from grapevine.pipeline.sample import BfsSample, RandomUserSample, sample
from grapevine.pipeline.stage import Stage

_SEED = 1  # of the sample, which is drawn once


def prepare(
    stage: Stage, given: Sequence[str] | Workload, out: Path, config: CompareConfig, format: str | None = None
) -> Source:
    """Ingest what is raw, cut what is too large, and find out how much is published.

    `given` are a workload's folder, the files of a trace, or a workload in memory; `format` is that of the files (None:
    it is guessed and said). UsageError for what is neither, or has no subscriptions.
    """
    if isinstance(given, Workload):
        folder, name = _stored(given, out), given.name
    elif len(given) == 1 and is_complete(Path(given[0])):
        folder, name = Path(given[0]), Path(given[0]).name
        if format is not None:
            raise UsageError(f"--format {format}: {folder} is a workload already; leave it out")
    else:
        folder, name = _ingested(stage, given, out, format), Path(given[0]).name
    manifest = read_manifest(folder, "workload")
    if not manifest.tables.get("subscriptions"):
        raise UsageError(f"{folder}: has no subscriptions to compare on")
    if manifest.tables["nodes"] > config.users:
        folder = _cut(stage, folder, manifest, out, config.users)
        stage.tell(f"{name} has {manifest.tables['nodes']:,} nodes; compared on a sample of {config.users:,} users")
        name = f"{name} (a sample of {config.users:,} users)"
    return Source(name, folder, _rates(folder, config))


def _stored(workload: Workload, out: Path) -> Path:
    """A workload in memory as a folder, named by its content."""
    digest = hashlib.sha1(usedforsecurity=False)
    for array in (workload.node_topics.starts, workload.node_topics.columns, workload.rates, workload.publishers):
        digest.update(array.tobytes())
    digest.update(json.dumps([list(workload.node_names), list(workload.topic_names)]).encode())
    folder = out / f"given-{digest.hexdigest()[:12]}"
    if not is_complete(folder):
        workload.save(folder, force=True)
    return folder


def _ingested(stage: Stage, given: Sequence[str], out: Path, format: str | None) -> Path:
    columns = ""
    if format is None:
        guess = guess_format(given)
        format, columns = guess.format, guess.columns
        stage.tell(f"read as {format}: {guess.why} (another one: --format)")
    folder = out / trace_key(format, [stage.location(path) for path in given])
    if not is_complete(folder):
        ingest(stage, format, given, folder, IngestConfig(columns=columns), force=True)
    return folder


def _cut(stage: Stage, source: Path, manifest: Manifest, out: Path, users: int) -> Path:
    """A sample that keeps the neighbourhoods of users where users are topics, and random users otherwise."""
    digest = hashlib.sha1(f"{content_digest(source)} {users}".encode(), usedforsecurity=False)
    folder = out / f"sample-{users}-{digest.hexdigest()[:12]}"
    if not is_complete(folder):
        social = bool((Workload.load(source).publishers >= 0).any())
        kind = BfsSample(users=users) if social else RandomUserSample(users=min(users, _subscribers(manifest)))
        sample(stage, source, folder, kind, seed=_SEED, force=True)
    return folder


def _subscribers(manifest: Manifest) -> int:
    return int(manifest.counts.get("subscribers", manifest.tables["nodes"]))


def _rates(folder: Path, config: CompareConfig) -> Rates:
    """Events a day on a mean topic: as asked for, as a timed trace has them, or one an hour."""
    workload, manifest = Workload.load(folder), read_manifest(folder, "workload")
    if config.events is not None:
        events, source = config.events, "as asked for"
    elif _is_timed(manifest):
        events, source = float(workload.rates.mean()), "as the trace has it"
    else:
        events, source = AN_HOUR, "assumed: the trace does not tell; say --events"
    return Rates(workload.node_count, workload.topic_count, events, config.payload, source)


def _is_timed(manifest: Manifest) -> bool:
    """Whether the rates of its topics are events a day."""
    format = FORMATS.get(str(manifest.config.get("format")))
    return format is not None and getattr(format.meaning, "seconds", None) is not None
