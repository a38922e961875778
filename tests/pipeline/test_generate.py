from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from grapevine import synthetic
from grapevine.model.workload import Workload, load_churn
from grapevine.pipeline import generate as stage_module
from grapevine.pipeline.generate import generate
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS
from grapevine.synthetic.base import SubscriptionModel

SMALL = {"nodes": 600}


def small(name: str) -> dict[str, Any]:
    return SMALL | ({"topics": 512} if name == "magnet-hierarchical" else {})


@pytest.mark.parametrize("name", MODELS)
def test_rows_do_not_depend_on_the_number_of_partitions(
    stage: Stage, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_module, "NODES_PER_CHUNK", 50)
    stored = []
    for partitions in (1, 2, 7):
        out = tmp_path / str(partitions)
        generate(stage, name, MODELS[name](**small(name)), out, seed=4, partitions=partitions)
        table = "subscriptions" if issubclass(MODELS[name], SubscriptionModel) else "churn"
        content = pq.read_table(out / table)
        stored.append(content.sort_by([(column, "ascending") for column in content.column_names]))
    assert stored[0].num_rows > 0
    assert stored[0].equals(stored[1])
    assert stored[0].equals(stored[2])


@pytest.mark.parametrize("name", ["vitis-high", "magnet-spatial", "magnet-hierarchical", "rappel-feed"])
def test_what_spark_stores_is_what_python_generates(stage: Stage, tmp_path: Path, name: str) -> None:
    parameters = small(name) | {"rate_exponent": 1.0}
    manifest = generate(stage, name, MODELS[name](**parameters), tmp_path / "w", seed=2)
    loaded, direct = Workload.load(tmp_path / "w"), synthetic.generate(name, seed=2, **parameters)
    assert np.array_equal(loaded.node_topics.columns, direct.node_topics.columns)
    assert np.array_equal(loaded.node_topics.starts, direct.node_topics.starts)
    assert np.array_equal(loaded.publishers, direct.publishers)
    assert np.array_equal(loaded.rates, direct.rates)
    assert list(loaded.topic_names) == list(direct.topic_names)
    assert manifest.seed == 2
    assert manifest.config["model"] == name
    assert manifest.counts["subscribers"] == np.sum(direct.node_topics.sizes() > 0)


def test_churn_is_stored_with_open_ends(stage: Stage, tmp_path: Path) -> None:
    generate(stage, "spidercast-churn", MODELS["spidercast-churn"](nodes=50), tmp_path / "c")
    churn = load_churn(tmp_path / "c")
    assert np.isinf(churn.left_s).any()
    assert np.all(churn.left_s > churn.joined_s)
