"""Sample: a smaller workload cut out of a large one in the ways of the papers, and how well it kept the shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.kernels.csr import count_rows, fill_rows, row_numbers
from grapevine.kernels.graph import breadth_first, core_numbers, with_followees
from grapevine.kernels.rng import priorities
from grapevine.metrics.distributions import ks_distance
from grapevine.model import tables
from grapevine.model.config import MAX_COUNT, Config, check_seed, parameter
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, remove
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.workload import Workload
from grapevine.pipeline.degrees import DEGREES, degree_histograms
from grapevine.pipeline.dense import number_names
from grapevine.pipeline.relate.subscriptions import ROWS_PER_FILE
from grapevine.pipeline.shipping import WORKLOAD, Shipped, ship
from grapevine.pipeline.stage import Stage
from grapevine.version import __version__

_ROOTS, _CUT, _TOPICS = 201, 202, 203  # the `round` words of these draws


@dataclass(frozen=True, slots=True, kw_only=True)
class BfsSample(Config):
    """Breadth-first searches along followees until there are enough users; all relations among them are kept."""

    name: ClassVar[str] = "bfs"

    users: int = parameter(
        10_000, "users in the sample", source="Vitis §IV-E; OMen §6.1: 1,000 and 10,000", low=1, high=MAX_COUNT
    )
    roots: int = parameter(
        10, "random users that the searches start from", source="ours: the papers say a few", low=1, high=MAX_COUNT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolloweesSample(Config):
    """Random users, each with all whom it follows, until there are enough; all relations among them are kept."""

    name: ClassVar[str] = "followees"

    users: int = parameter(10_000, "users in the sample", source="Vitis §IV-E", low=1, high=MAX_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSample(Config):
    """The k-core, which has the most users that follow, or are followed by, k of the others: with the smallest k of
    which it has no more than so many users. The seed has no influence."""

    name: ClassVar[str] = "k-core"

    users: int = parameter(
        10_000, "most users in the sample", source="ours: as many as Vitis §IV-E has", low=1, high=MAX_COUNT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomUserSample(Config):
    """Random subscribers with all their subscriptions; of topics that are users, those of the sample alone."""

    name: ClassVar[str] = "users"

    users: int = parameter(
        10_000, "users in the sample", source="ours: for traces without followers", low=1, high=MAX_COUNT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberSample(Config):
    """Random seed topics, everybody who subscribes to one of them, and of these users' topics the most popular."""

    name: ClassVar[str] = "subscribers"

    seed_topics: int = parameter(250, "random topics to start from", source="Rappel §6.3", low=1, high=MAX_COUNT)
    publishers: int = parameter(100, "most subscribed topics to keep, X", source="Rappel §6.3", low=1, high=MAX_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSample(Config):
    """Random topics with all their subscribers."""

    name: ClassVar[str] = "topics"

    topics: int = parameter(3_000, "random topics", source="Magnet §4.5", low=1, high=MAX_COUNT)


UserSample = BfsSample | FolloweesSample | CoreSample | RandomUserSample
SampleConfig = UserSample | SubscriberSample | TopicSample
USER_SAMPLES: dict[str, type[UserSample]] = {
    kind.name: kind for kind in (BfsSample, FolloweesSample, CoreSample, RandomUserSample)
}
SAMPLES: tuple[type[SampleConfig], ...] = (*USER_SAMPLES.values(), SubscriberSample, TopicSample)


def sample(
    stage: Stage, source: Location, out: Location, config: SampleConfig, *, seed: int = 1, force: bool = False
) -> Manifest:
    """Write the sample of `source` as a new workload: subscriptions, topics and nodes under new dense numbers.

    Churn and latency are not taken along. The manifest's counts say how far the degree distributions are from those of
    the source (`ks_…`). UsageError if the source has too few users or topics, or the sample would be empty.
    """
    before = read_manifest(source, "workload")
    if "subscriptions" not in before.tables:
        raise UsageError(f"{source}: has no subscriptions to sample from")
    check_seed(seed)
    if out.resolve() == source.resolve():
        raise UsageError(f"{out}: is the workload to sample; choose another --out")
    whole = before.tables_in(source)
    with new_folder(out, kind="workload", force=force) as folder:
        subscriptions, topics = stage.read(whole, tables.SUBSCRIPTIONS), stage.read(whole, tables.TOPICS)
        users = None
        if isinstance(config, UserSample):
            users = _found_users(stage, ship(stage, source, before, WORKLOAD), config, seed, folder)
            owned = users.withColumnRenamed("node", "publisher")
            theirs = topics.join(owned, "publisher", "left_semi")
            topics = theirs.unionByName(topics.where("publisher IS NULL"))
            subscriptions = subscriptions.join(users, "node", "left_semi")
        elif isinstance(config, SubscriberSample):
            subscriptions, topics = _of_popular_publishers(stage, subscriptions, topics, config, seed)
        else:
            topics = topics.join(
                F.broadcast(_random_topics(stage, subscriptions, config.topics, seed)), "topic", "left_semi"
            )
        subscriptions = subscriptions.join(topics, "topic", "left_semi")
        written = _renumber(stage, whole, folder, subscriptions, topics, users)
        counts = _shape_kept(stage, whole, folder)
        remove(folder / "_scratch")
        manifest = Manifest(
            kind="workload",
            stage="sample",
            version=__version__,
            config={"by": config.name} | config.as_dict() | _origin(before),
            seed=seed,
            inputs=[str(source)],
            tables=written,
            counts=counts,
        )
        manifest.write(folder)
    return manifest


def _origin(before: Manifest) -> dict[str, str]:
    """The format that the source was ingested from, if it was: it says what rates mean."""
    return {key: value for key, value in before.config.items() if key == "format"}


def _found_users(stage: Stage, source: Shipped, config: UserSample, seed: int, folder: Location) -> DataFrame:
    """A frame of `node`: the users found, by a kernel inside one task. Joins would be a hundred times slower."""

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            with source.opened() as path:
                yield pa.record_batch({"node": sampled_users(Workload.load(path), config, seed)})

    users = stage.spark.range(0, 1, 1, 1).mapInArrow(search, "node int")
    return stage.keep(users, folder / "_scratch" / "users", "looking for users")


def sampled_users(workload: Workload, config: UserSample, seed: int) -> pa.Array:
    """The sampled users' node numbers, ascending; UsageError if there are too few, or topics are not users where the
    sample follows them."""
    if isinstance(config, RandomUserSample):
        return pa.array(_random_users(workload, config, seed))
    if not np.any(workload.publishers >= 0):
        raise UsageError(
            f"a {config.name} sample needs topics that are users (follows or friends); "
            "sample by users or by topics instead"
        )
    if config.users > workload.node_count:
        raise UsageError(f"users={config.users}: the workload has only {workload.node_count:,} users")
    kept = _in_core(workload, config) if isinstance(config, CoreSample) else _searched(workload, config, seed)
    return pa.array(np.flatnonzero(kept).astype(np.int32))


def _random_users(workload: Workload, config: RandomUserSample, seed: int) -> NDArray[np.int32]:
    subscribers = np.flatnonzero(workload.node_topics.sizes() > 0).astype(np.int32)
    if config.users > len(subscribers):
        raise UsageError(f"users={config.users}: the workload has only {len(subscribers):,} subscribers")
    rank = priorities(seed, _ROOTS, workload.node_count)[subscribers]
    return np.sort(subscribers[np.argsort(rank, kind="stable")[: config.users]])


def _searched(workload: Workload, config: BfsSample | FolloweesSample, seed: int) -> NDArray[np.bool_]:
    """Flags of the users found from random roots, who are subscribers, along whom they follow."""
    starts, followed = workload.node_topics.starts, workload.publishers[workload.node_topics.columns]
    subscribers = np.flatnonzero(workload.node_topics.sizes() > 0).astype(np.int32)
    order = np.argsort(priorities(seed, _ROOTS, workload.node_count)[subscribers], kind="stable")
    rank, roots = priorities(seed, _CUT, workload.node_count), subscribers[order]
    if isinstance(config, FolloweesSample):
        return with_followees(starts, followed, rank, roots, config.users)
    return breadth_first(starts, followed, rank, roots, min(config.roots, config.users), config.users)


def _in_core(workload: Workload, config: CoreSample) -> NDArray[np.bool_]:
    """Flags of the users in the largest core that is small enough. UsageError if there is none."""
    follower, followed = row_numbers(workload.node_topics.starts), workload.publishers[workload.node_topics.columns]
    real = (followed >= 0) & (followed != follower)
    ends = np.stack([follower[real], followed[real]]).astype(np.int64)
    pairs = np.unique(ends.min(axis=0) * workload.node_count + ends.max(axis=0))  # who follow each other count once
    low, high = (part.astype(np.int32) for part in divmod(pairs, workload.node_count))
    one, other = np.concatenate([low, high]), np.concatenate([high, low])
    starts = count_rows(one, workload.node_count)
    cores = core_numbers(starts, fill_rows(one, other, starts))
    sizes = np.cumsum(np.bincount(cores)[::-1])[::-1]  # users of the 0-core, the 1-core, …
    fitting = np.flatnonzero(sizes <= config.users)
    if len(fitting) == 0:
        raise UsageError(f"users={config.users}: the smallest core has {sizes[-1]:,} users")
    return cores >= fitting[0]


def _random_topics(stage: Stage, subscriptions: DataFrame, wanted: int, seed: int) -> DataFrame:
    """So many topics, as a frame of `topic`, by hash, of those that have subscribers; UsageError if there are fewer."""
    with stage.step("choosing topics"):
        topics = np.sort(subscriptions.select("topic").distinct().toArrow()["topic"].to_numpy())
    if wanted > len(topics):
        raise UsageError(f"{wanted:,} topics were asked for; only {len(topics):,} have subscribers")
    rank = priorities(seed, _TOPICS, int(topics[-1]) + 1)[topics]
    chosen = topics[np.argsort(rank, kind="stable")[:wanted]]
    return stage.spark.createDataFrame([(int(topic),) for topic in np.sort(chosen)], "topic int")


def _of_popular_publishers(
    stage: Stage, subscriptions: DataFrame, topics: DataFrame, config: SubscriberSample, seed: int
) -> tuple[DataFrame, DataFrame]:
    """Subscriptions of the universe's users, and its X most subscribed topics (Rappel §6.1.2).

    The universe's topics are those of its own users, where topics have publishers; ties go to the smaller number.
    """
    seeds = _random_topics(stage, subscriptions, config.seed_topics, seed)
    users = subscriptions.join(F.broadcast(seeds), "topic", "left_semi").select("node").distinct()
    inside = subscriptions.join(users, "node", "left_semi")
    of_users = topics.join(users.withColumnRenamed("node", "publisher"), "publisher", "left_semi")
    with stage.step("looking for publishers"):
        social = topics.filter("publisher is not null").limit(1).count() > 0
    candidates = of_users if social else topics
    popular = inside.join(candidates, "topic", "left_semi").groupBy("topic").count()
    most = popular.orderBy(F.desc("count"), "topic").limit(config.publishers).select("topic")
    return inside, topics.join(F.broadcast(most), "topic", "left_semi")


def _renumber(
    stage: Stage,
    whole: Location,
    folder: Location,
    subscriptions: DataFrame,
    topics: DataFrame,
    users: DataFrame | None,
) -> dict[str, int]:
    """Write the kept part under new dense numbers. Nodes are the subscribers, the publishers and the given `users`."""
    scratch = folder / "_scratch"
    pairs = stage.keep(subscriptions.select("node", "topic"), scratch / "pairs", "cutting out the sample")
    kept = stage.count_rows(scratch / "pairs")
    if kept == 0:
        raise UsageError("the sample kept no subscription; ask for a larger one")
    kept_topics = topics.join(pairs.select("topic").distinct(), "topic")
    numbers = pairs.select("node").union(kept_topics.filter("publisher is not null").select("publisher"))
    if users is not None:
        numbers = numbers.union(users)
    names = stage.read(whole, tables.NODES).join(numbers.distinct(), "node")
    node_map = number_names(stage, names, "new_node", scratch / "nodes", "numbering nodes")
    topic_map = number_names(stage, kept_topics, "new_topic", scratch / "topics", "numbering topics")
    written = {}
    written["nodes"] = stage.write(node_map.drop("node").withColumnRenamed("new_node", "node"), folder, tables.NODES)
    publisher = node_map.select(F.col("node").alias("publisher"), F.col("new_node").alias("new_publisher"))
    described = topic_map.join(publisher, "publisher", "left").select(
        F.col("new_topic").alias("topic"), "name", "rate", F.col("new_publisher").alias("publisher")
    )
    written["topics"] = stage.write(described, folder, tables.TOPICS)
    renumbered = pairs.join(node_map.select("node", "new_node"), "node").join(
        topic_map.select("topic", "new_topic"), "topic"
    )
    columns = F.col("new_node").alias("node"), F.col("new_topic").alias("topic")
    files = math.ceil(kept / ROWS_PER_FILE)
    sorted_pairs = renumbered.select(*columns).repartition(files, "node").sortWithinPartitions("node", "topic")
    written["subscriptions"] = stage.write(sorted_pairs, folder, tables.SUBSCRIPTIONS)
    return written


def _shape_kept(stage: Stage, whole: Location, folder: Location) -> dict[str, float]:
    """Kolmogorov–Smirnov distance of both degree distributions, sample against source; and the subscribers kept."""
    before, part = degree_histograms(stage, whole, "the whole"), degree_histograms(stage, folder, "the sample")
    distances = {f"ks_{degree}": ks_distance(before[degree], part[degree]) for degree in DEGREES}
    return {"subscribers": part["subscriptions"].total} | distances
