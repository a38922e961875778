"""The real traces load with the figures of their README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapevine.model.workload import Workload, load_latency
from grapevine.pipeline.ingest import ingest
from grapevine.pipeline.sample import BfsSample, sample
from grapevine.pipeline.stage import Stage

EXPECTED: list[tuple[str, str, dict[str, Any]]] = [
    ("follows", "twitter-follows/follows.tsv.gz",
     {"nodes": 81_306, "topics": 81_305, "subscriptions": 1_768_135, "subscribers": 70_095, "self_loops": 14}),
    ("friends", "facebook-friends/edges.tsv.gz",
     {"nodes": 4_039, "topics": 4_039, "subscriptions": 176_468, "rows": 88_234}),
    ("edits", "wikipedia-edits/edits.tsv.gz",
     {"nodes": 8_227, "topics": 1_000, "subscriptions": 18_257, "rows": 157_474}),
    ("avt", "skype-churn/skype.avt.gz", {"nodes": 2_081, "churn": 29_217}),
    ("latency-matrix", "planetlab-latency/planetlab490_median.tsv.gz", {"nodes": 490, "latency": 240_100}),
    ("latency-pairs", "city-pings/pings.tsv.gz", {"nodes": 242, "latency": 57_807}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "file", "expected"),
    [
        # Twitter takes minutes, the others as long as all of test_ingest.py together, which has every format.
        pytest.param(*row, id=row[1].split("/")[0], marks=pytest.mark.slow)
        for row in EXPECTED
    ],
)
def test_a_trace_has_the_figures_of_its_readme(
    stage: Stage, traces: Path, tmp_path: Path, format: str, file: str, expected: dict[str, Any]
) -> None:
    manifest = ingest(stage, format, [str(traces / file)], tmp_path / "w")
    found = manifest.counts | manifest.tables
    assert {key: found[key] for key in expected} == expected
    assert found["rejected"] == 0
    if format == "follows":
        _check_twitter(stage, tmp_path)
    if format == "avt":
        assert found["span_days"] == pytest.approx(28.7, abs=0.05)
    if format == "latency-matrix":
        assert found["median_ms"] == pytest.approx(133.9, abs=0.1)
        assert found["p5_ms"] == pytest.approx(18.8, abs=0.1)
        assert found["p95_ms"] == pytest.approx(326, abs=0.5)
        assert np.nanmedian(load_latency(tmp_path / "w").rtt_ms) == pytest.approx(133.9, abs=0.5)
    if format == "latency-pairs":
        assert found["median_ms"] == pytest.approx(142.8, abs=0.1)


def _check_twitter(stage: Stage, folder: Path) -> None:
    workload = Workload.load(folder / "w")
    assert workload.node_topics.sizes().max() == 1_205
    assert workload.topic_nodes.sizes().max() == 3_383
    manifest = sample(stage, folder / "w", folder / "s", BfsSample(users=10_000))
    assert manifest.tables["nodes"] == 10_000
    assert manifest.counts["ks_subscriptions"] < 0.3
    assert manifest.counts["ks_subscribers"] < 0.3
