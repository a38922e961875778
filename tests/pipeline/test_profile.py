from pathlib import Path

import numpy as np
import pytest

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.manifest import Manifest
from grapevine.model.store import read_table
from grapevine.model.workload import Workload
from grapevine.pipeline.profile import ProfileConfig, measure_overlap, profile
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS
from grapevine.synthetic.base import SubscriptionModel
from grapevine.synthetic.folder import generate_here
from tests import naive


@pytest.fixture(scope="module")
def profiled(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile")
    for name in ("omen", "vitis-high"):
        model = MODELS[name](nodes=300)
        assert isinstance(model, SubscriptionModel)
        generate_here(name, model, folder / name, seed=1, force=False)
    config = ProfileConfig(sample=60, tdi_depth=5)
    by_url, at_url = stage.location(f"notatomic://{folder}/omen"), stage.location(f"file://{folder}/p")
    profile(stage, [by_url, folder / "vitis-high"], at_url, config, seed=9)
    return folder


def interests(folder: Path) -> list[set[int]]:
    workload = Workload.load(folder)
    return [set(workload.topics_of(node).tolist()) for node in range(workload.node_count)]


def sampled(wanted: list[set[int]], least: int) -> list[int]:
    eligible = [node for node, topics in enumerate(wanted) if len(topics) >= least]
    return sorted(eligible, key=lambda node: naive.draw(9, 301, node, 0))[:60]


def test_degrees_are_those_of_the_workload(profiled: Path) -> None:
    rows = read_table(profiled / "p", tables.DEGREE_STATISTICS).to_pylist()
    assert [(row["workload"], row["degree"]) for row in rows] == [
        (name, degree) for name in ("omen", "vitis-high") for degree in ("subscriptions", "subscribers")
    ]
    for row in rows:
        workload = Workload.load(profiled / row["workload"])
        sizes = (workload.node_topics if row["degree"] == "subscriptions" else workload.topic_nodes).sizes()
        sizes = sizes[sizes > 0]
        assert row["count"] == len(sizes)
        assert row["mean"] == pytest.approx(sizes.mean())
        assert row["variance"] == pytest.approx(sizes.var())
        assert row["maximum"] == sizes.max()
        assert row["gini"] == pytest.approx(naive.gini(sizes.tolist()))


def test_overlap_is_that_of_the_naive_measures(profiled: Path) -> None:
    for name in ("omen", "vitis-high"):
        wanted = interests(profiled / name)
        nodes = sampled(wanted, 1)
        found = {
            row["measure"]: row["value"]
            for row in read_table(profiled / "p", tables.INTEREST_OVERLAP).to_pylist()
            if row["workload"] == name
        }
        jaccard = [len(wanted[a] & wanted[b]) / len(wanted[a] | wanted[b]) for a in nodes for b in nodes if a != b]
        assert found["tdi"] == pytest.approx(np.mean([naive.tdi(wanted, node, 5) for node in nodes]))
        assert found["jaccard"] == pytest.approx(np.mean(jaccard))


def test_coverage_is_that_of_the_naive_greedy_choice(profiled: Path) -> None:
    wanted = interests(profiled / "omen")
    nodes = sampled(wanted, 5)
    greedy = [
        naive.covered_by_friends(wanted, node, 10, lambda other, node=node: naive.draw(9, 0, node, other))  # type: ignore[misc]
        for node in nodes
    ]
    rows = [r for r in read_table(profiled / "p", tables.INTEREST_COVERAGE).to_pylist() if r["workload"] == "omen"]
    assert [row["friends"] for row in rows] == list(range(1, 11))
    for row in rows:
        covered = [c[row["friends"] - 1] / len(wanted[node]) for c, node in zip(greedy, nodes, strict=True)]
        assert row["complete"] == pytest.approx(np.mean([share == 1 for share in covered]))
        assert row["mean_coverage"] == pytest.approx(np.mean(covered))
        assert row["sampled"] == 60


def test_the_measures_do_not_depend_on_the_number_of_tasks(profiled: Path) -> None:
    workload, config = Workload.load(profiled / "omen"), ProfileConfig(sample=60)
    parts = {}
    for count in (1, 3):
        batches = [batch for part in range(count) for batch in measure_overlap(workload, config, 9, part, count)]
        parts[count] = sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())
    assert len(parts[1]) == 60 * (2 + 3 * 10)
    assert parts[1] == parts[3]


def test_a_workload_without_subscriptions_cannot_be_profiled(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "churn").mkdir()
    Manifest(kind="workload", stage="test", version="0", tables={"nodes": 20, "churn": 20}).write(tmp_path / "churn")
    with pytest.raises(UsageError, match="no subscriptions"):
        profile(stage, [tmp_path / "churn"], tmp_path / "p")
    with pytest.raises(UsageError, match="given twice"):
        profile(stage, [tmp_path / "churn", tmp_path / "churn"], tmp_path / "p")
    with pytest.raises(UsageError, match="no such folder"):
        profile(stage, [tmp_path / "nowhere"], tmp_path / "p")
