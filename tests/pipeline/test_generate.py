"""Models as stored workloads: the rows of Python, in whatever parts Spark makes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grapevine import synthetic
from grapevine.model import tables
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.model.tables import Table
from grapevine.model.workload import Workload, load_churn
from grapevine.pipeline import generate as stage_module
from grapevine.pipeline.generate import generate, rows_of
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS
from grapevine.synthetic.base import SubscriptionModel
from grapevine.synthetic.folder import all_rows, generate_here

SMALL = {"nodes": 600}


def small(name: str) -> dict[str, Any]:
    return SMALL | ({"topics": 512} if name == "magnet-hierarchical" else {})


def made_rows(stage: Stage, name: str, partitions: int) -> pa.Table:
    """What the model's subscriptions or sessions are when so many tasks make them, in order."""
    made = rows_of(stage, MODELS[name](**small(name)), 4, partitions).toArrow()
    return in_order(made.cast(table_of(name).schema))


def table_of(name: str) -> Table:
    return tables.SUBSCRIPTIONS if issubclass(MODELS[name], SubscriptionModel) else tables.CHURN


def in_order(content: pa.Table) -> pa.Table:
    return content.sort_by([(column, "ascending") for column in content.column_names])


def but_slow(names: Iterable[str], *quick: str) -> list[Any]:
    """All names; those that are not quick ones run in `make test-full`."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve chunks for the 600 nodes, so that tasks have something to share."""
    monkeypatch.setattr(stage_module, "NODES_PER_CHUNK", 50)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", but_slow(MODELS, "vitis-high", "machine-churn", "magnet-hierarchical"))
def test_seven_tasks_make_the_rows_that_python_makes_at_once(stage: Stage, name: str) -> None:
    made, model = made_rows(stage, name, 7), MODELS[name](**small(name))
    whole = pa.Table.from_batches([all_rows(model, 4)(0, model.nodes)]).cast(table_of(name).schema)
    assert made.num_rows > 0
    assert made.equals(in_order(whole))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["vitis-low", "machine-churn"])
def test_rows_do_not_depend_on_the_number_of_partitions(stage: Stage, name: str) -> None:
    one, two, seven = (made_rows(stage, name, partitions) for partitions in (1, 2, 7))
    assert one.num_rows > 0
    assert one.equals(two) and one.equals(seven)


@pytest.mark.parametrize(
    "name", but_slow(["vitis-high", "magnet-spatial", "magnet-hierarchical", "rappel-feed"], "rappel-feed")
)
def test_what_spark_stores_is_what_python_generates(stage: Stage, tmp_path: Path, name: str) -> None:
    parameters = small(name) | {"rate_exponent": 1.0}
    out = stage.location(f"notatomic://{tmp_path}/w")
    model = MODELS[name](**parameters)
    assert isinstance(model, SubscriptionModel)
    manifest = generate(stage, name, model, out, seed=2)
    loaded, direct = Workload.load(out), synthetic.generate(name, seed=2, **parameters)
    assert np.array_equal(loaded.node_topics.columns, direct.node_topics.columns)
    assert np.array_equal(loaded.node_topics.starts, direct.node_topics.starts)
    assert np.array_equal(loaded.publishers, direct.publishers)
    assert np.array_equal(loaded.rates, direct.rates)
    assert list(loaded.topic_names) == list(direct.topic_names)
    assert manifest.seed == 2
    assert manifest.config["model"] == name
    assert manifest.counts["subscribers"] == np.sum(direct.node_topics.sizes() > 0)
    alone = generate_here(name, model, tmp_path / "alone", seed=2, force=False)
    assert (alone.tables, alone.counts, alone.config) == (manifest.tables, manifest.counts, manifest.config)
    stored = read_manifest(out, "workload").tables_in(out)
    for table in (tables.NODES, tables.TOPICS, tables.SUBSCRIPTIONS):
        assert in_order(read_table(tmp_path / "alone", table)).equals(in_order(read_table(stored, table)))


def test_churn_is_stored_with_open_ends(stage: Stage, tmp_path: Path) -> None:
    model = MODELS["spidercast-churn"](nodes=50)
    generate(stage, "spidercast-churn", model, tmp_path / "c", partitions=2)
    churn = load_churn(tmp_path / "c")
    assert np.isinf(churn.left_s).any()
    assert np.all(churn.left_s > churn.joined_s)
    generate_here("spidercast-churn", model, tmp_path / "here", seed=1)
    stored, here = (in_order(read_table(tmp_path / name, tables.CHURN)) for name in ("c", "here"))
    assert stored.equals(here)


def test_a_small_model_needs_no_spark(tmp_path: Path) -> None:
    stage = Stage(quiet=True)
    made = generate(stage, "vitis-high", MODELS["vitis-high"](nodes=60), tmp_path / "w")
    assert made.tables["nodes"] == 60 == Workload.load(tmp_path / "w").node_count
    assert "spark" not in vars(stage), "no session was opened"
