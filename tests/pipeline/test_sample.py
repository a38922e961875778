from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ks_2samp

from grapevine.experiment import description
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import write_table
from grapevine.model.workload import Workload
from grapevine.pipeline.sample import (
    USER_SAMPLES,
    BfsSample,
    CoreSample,
    FolloweesSample,
    SubscriberSample,
    TopicSample,
    sample,
    sampled_users,
)
from grapevine.pipeline.stage import Stage
from grapevine.synthetic.folder import generate_here
from grapevine.synthetic.vitis import VitisRandom
from tests import naive


@pytest.fixture(scope="module")
def social(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scale-free directed graph of 400 users as follows, in the tables that `ingest` makes of them."""
    folder = tmp_path_factory.mktemp("social") / "whole"
    folder.mkdir()
    graph: nx.DiGraph[int] = nx.DiGraph(nx.scale_free_graph(400, seed=1))
    follows = [(f"user{a}", f"user{b}") for a, b in graph.edges if a != b]
    nodes = {name: number for number, name in enumerate(sorted({user for pair in follows for user in pair}))}
    topics = {name: number for number, name in enumerate(sorted({followed for _, followed in follows}))}
    published = [{"topic": n, "name": name, "rate": 1.0, "publisher": nodes[name]} for name, n in topics.items()]
    contents = {
        tables.NODES: [{"node": number, "name": name} for name, number in nodes.items()],
        tables.TOPICS: published,
        tables.SUBSCRIPTIONS: [{"node": nodes[a], "topic": topics[b]} for a, b in follows],
    }
    rows = {
        table.name: write_table(pa.Table.from_pylist(content, table.schema), folder, table)
        for table, content in contents.items()
    }
    Manifest(kind="workload", stage="test", version="0", tables=rows).write(folder)
    return folder


BFS = BfsSample(users=80, roots=3)


@pytest.fixture(scope="module")
def bfs(stage: Stage, social: Path, tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A sample of eighty users, for tests that only look. Its source and itself are named by URLs."""
    folder = stage.location(f"notatomic://{tmp_path_factory.mktemp('bfs')}/s")
    sample(stage, stage.location(f"notatomic://{social}"), folder, BFS, seed=5)
    return folder


def relations(workload: Workload) -> set[tuple[str, str]]:
    return {
        (workload.node_names[n], workload.topic_names[t])
        for n in range(workload.node_count)
        for t in workload.topics_of(n)
    }


def test_a_bfs_sample_keeps_all_relations_among_its_users(social: Path, bfs: Location) -> None:
    whole, part = Workload.load(social), Workload.load(bfs)
    users = set(part.node_names)
    manifest = read_manifest(bfs, "workload")
    assert len(users) == manifest.tables["nodes"] == 80
    assert manifest.config == {"by": "bfs", "users": 80, "roots": 3}
    assert relations(part) == {(a, b) for a, b in relations(whole) if a in users and b in users}
    publishers = [part.node_names[p] for p in part.publishers]
    assert publishers == list(part.topic_names)


def test_a_bfs_sample_follows_followees_from_roots_that_the_seed_decides(social: Path, bfs: Location) -> None:
    """Vitis §IV-E: from random roots along who is followed. The roots are those subscribers whose hash comes first."""
    workload, users = Workload.load(social), set(Workload.load(bfs).node_names)
    subscribers = [n for n in range(workload.node_count) if len(workload.topics_of(n))]
    by_hash = sorted(subscribers, key=lambda n: naive.draw(5, 201, n, 0))
    names = workload.node_names
    followed = [[int(workload.publishers[t]) for t in workload.topics_of(n)] for n in range(workload.node_count)]
    rank = [naive.draw(5, 202, n, 0) for n in range(workload.node_count)]
    assert users == {names[n] for n in naive.breadth_first(followed, rank, by_hash, BFS.roots, BFS.users)}


def test_users_with_all_whom_they_follow(social: Path) -> None:
    """Vitis §IV-E: random users and their followees, one level, from as many users as it takes."""
    workload = Workload.load(social)
    found = sampled_users(workload, FolloweesSample(users=80), 5).to_pylist()
    subscribers = [n for n in range(workload.node_count) if len(workload.topics_of(n))]
    by_hash = sorted(subscribers, key=lambda n: naive.draw(5, 201, n, 0))
    followed = [[int(workload.publishers[t]) for t in workload.topics_of(n)] for n in range(workload.node_count)]
    rank = [naive.draw(5, 202, n, 0) for n in range(workload.node_count)]
    assert set(found) == naive.with_followees(followed, rank, by_hash, 80)
    assert len(found) == 80
    assert found != sampled_users(workload, FolloweesSample(users=80), 6).to_pylist()


def test_a_core_is_the_largest_of_networkx_that_is_small_enough(social: Path) -> None:
    workload = Workload.load(social)
    graph: nx.Graph[str] = nx.Graph(relations(workload))
    cores = [set(nx.k_core(graph, k)) for k in range(1, 1 + max(nx.core_number(graph).values()))]
    assert len(cores[1]) > 40 >= len(cores[-1]), "the test needs cores on both sides"
    found = sampled_users(workload, CoreSample(users=40), 1).to_pylist()
    assert {workload.node_names[n] for n in found} == next(core for core in cores if len(core) <= 40)
    with pytest.raises(UsageError, match=f"the smallest core has {len(cores[-1])} users"):
        sampled_users(workload, CoreSample(users=len(cores[-1]) - 1), 1)


@pytest.mark.slow  # the test above has the core's users, and that of the bfs sample how users become a workload
def test_a_core_is_stored_with_all_relations_among_its_users(stage: Stage, social: Path, tmp_path: Path) -> None:
    sample(stage, social, tmp_path / "s", CoreSample(users=40))
    whole, part = Workload.load(social), Workload.load(tmp_path / "s")
    users = set(part.node_names)
    assert relations(part) == {(a, b) for a, b in relations(whole) if a in users and b in users}
    assert read_manifest(tmp_path / "s", "workload").config == {"by": "k-core", "users": 40}


def test_experiments_know_every_sample_of_users() -> None:
    assert tuple(USER_SAMPLES) == description.USER_SAMPLES


def test_ks_distances_are_those_of_scipy(social: Path, bfs: Location) -> None:
    whole, part, counts = Workload.load(social), Workload.load(bfs), read_manifest(bfs, "workload").counts
    for name, degrees in (
        ("ks_subscriptions", [w.node_topics.sizes() for w in (whole, part)]),
        ("ks_subscribers", [w.topic_nodes.sizes() for w in (whole, part)]),
    ):
        used = [d[d > 0] for d in degrees]
        assert counts[name] == pytest.approx(ks_2samp(used[0], used[1]).statistic)


def test_a_topic_sample_keeps_all_subscribers_of_random_topics(stage: Stage, social: Path, tmp_path: Path) -> None:
    """Magnet §4.5."""
    sample(stage, social, tmp_path / "s", TopicSample(topics=20), seed=5)
    whole, part = Workload.load(social), Workload.load(tmp_path / "s")
    assert part.topic_count == 20
    assert relations(part) == {(a, b) for a, b in relations(whole) if b in set(part.topic_names)}


@pytest.mark.slow
def test_a_subscriber_sample_takes_the_most_subscribed_of_the_universe(
    stage: Stage, social: Path, tmp_path: Path
) -> None:
    """Rappel §6.1.2: random seeds → all their subscribers → the X most subscribed of these users' own topics."""
    sample(stage, social, tmp_path / "s", SubscriberSample(seed_topics=30, publishers=5), seed=5)
    whole = Workload.load(social)
    seeds = sorted(range(whole.topic_count), key=lambda t: naive.draw(5, 203, t, 0))[:30]
    universe = {int(n) for t in seeds for n in whole.subscribers_of(t)}
    popular = sorted(
        (t for t in range(whole.topic_count) if int(whole.publishers[t]) in universe),
        key=lambda t: (-len(universe & set(whole.subscribers_of(t).tolist())), t),
    )[:5]
    expected = {
        (whole.node_names[n], whole.topic_names[t]) for t in popular for n in whole.subscribers_of(t) if n in universe
    }
    assert relations(Workload.load(tmp_path / "s")) == expected


@pytest.mark.slow
def test_rates_and_names_come_along(stage: Stage, tmp_path: Path) -> None:
    model = VitisRandom(nodes=200, topics=100, subscriptions_per_node=5, rate_exponent=1.0)
    generate_here("vitis-random", model, tmp_path / "w", seed=1, force=False)
    sample(stage, tmp_path / "w", tmp_path / "s", TopicSample(topics=10))
    whole, part = Workload.load(tmp_path / "w"), Workload.load(tmp_path / "s")
    expected = {
        name: rate for name, rate in zip(whole.topic_names, whole.rates, strict=True) if name in set(part.topic_names)
    }
    assert dict(zip(part.topic_names, part.rates, strict=True)) == expected
    assert np.all(part.publishers == -1)
    assert len(set(part.rates)) == 10


def test_what_cannot_be_sampled_is_one_sentence(stage: Stage, social: Path, tmp_path: Path) -> None:
    generate_here("vitis-random", VitisRandom(nodes=50), tmp_path / "w", seed=1, force=False)
    with pytest.raises(UsageError, match="needs topics that are users"):
        sample(stage, tmp_path / "w", tmp_path / "s", BfsSample(users=10))
    with pytest.raises(UsageError, match="the workload has only 400 users"):
        sample(stage, social, tmp_path / "s", BfsSample(users=100_000))
    with pytest.raises(UsageError, match="kept no subscription"):
        sample(stage, social, tmp_path / "s", BfsSample(users=1))
    with pytest.raises(UsageError, match="is the workload to sample"):
        sample(stage, social, social.parent / "." / social.name, BfsSample(users=10), force=True)
    with pytest.raises(UsageError, match="topics were asked for"):
        sample(stage, social, tmp_path / "s", TopicSample(topics=100_000))
    assert not (tmp_path / "s").exists()
