"""What a declaration says, as Spark computes it."""

from __future__ import annotations

import pytest

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.definitions import Definition, Largest, Mean, Ratio, Share, Where
from grapevine.metrics.measured import Measure, MeasuredTable, Quantiles
from grapevine.model.tables import EVENTS
from grapevine.pipeline.declared import metrics_of
from grapevine.pipeline.stage import Stage

ROWS = [
    ("a", 0.5, 4, 3, True, 0.1),
    ("a", 2.0, 2, 2, False, None),
    ("a", 1.0, 7, 0, True, 0.7),
    ("b", 0.0, 0, 5, False, None),
]
SCHEMA = "run_id string, rate double, subscribers long, reached long, online boolean, overhead double"
ONLINE = Where("online", "=", True)
DEFINITIONS: dict[str, Definition] = {
    "ratio": Ratio(("reached",), ("subscribers",)),
    "per_event": Ratio(("reached", "subscribers")),
    "mean": Mean("subscribers", ONLINE),
    "known": Mean("subscribers", Where("overhead", "known")),
    "largest": Largest("reached"),
    "share": Share(Where("overhead", ">", 0.2)),
    "few": Share(Where("subscribers", "<", 5), ONLINE),
}


def declared(**changes: object) -> MeasuredTable:
    measures = tuple(Measure.defined(Metric(name, name, ""), made) for name, made in DEFINITIONS.items())
    return MeasuredTable(EVENTS, **{"measures": measures, **changes})  # type: ignore[arg-type]


def found(stage: Stage, measured: MeasuredTable) -> dict[tuple[str, str], float | None]:
    rows = metrics_of(stage.spark.createDataFrame(ROWS, SCHEMA), measured).collect()
    return {(row.run_id, row.metric): row.value for row in rows}


@pytest.mark.parametrize("where", [None, Where("reached", ">", 2)], ids=["all rows", "some"])
def test_both_readings_of_a_definition_give_the_same_number(stage: Stage, where: Where | None) -> None:
    measured = declared(where=where)
    by_spark = found(stage, measured)
    for run in ("a", "b"):
        frame = stage.spark.createDataFrame(ROWS, SCHEMA).where(f"run_id = '{run}'").toArrow()
        in_memory = measured.in_memory(frame.drop_columns(["run_id"]))
        assert {name: by_spark[run, name] for name in DEFINITIONS} == in_memory


def test_a_run_without_a_row_that_counts_has_no_metric(stage: Stage) -> None:
    assert {run for run, _ in found(stage, declared(where=ONLINE))} == {"a"}


def test_derived_columns_may_be_windows_over_a_run(stage: Stage) -> None:
    total = ("total", "sum(reached) OVER (PARTITION BY run_id)")
    share = ("share", "reached / total")
    measures = (Measure(Metric("largest_share", "", ""), "max(share)"),)
    made = found(stage, MeasuredTable(EVENTS, measures, derived=(total, share)))
    assert made == {("a", "largest_share"): 3 / 5, ("b", "largest_share"): 1.0}


def test_a_family_is_named_after_the_value_of_its_column(stage: Stage) -> None:
    family = Measure(Metric("rate_at_{number}_reached", "", ""), "avg(rate)", by="reached")
    assert found(stage, MeasuredTable(EVENTS, (family,))) == {
        ("a", "rate_at_3_reached"): 0.5,
        ("a", "rate_at_2_reached"): 2.0,
        ("a", "rate_at_0_reached"): 1.0,
        ("b", "rate_at_5_reached"): 0.0,
    }


def test_quantiles_are_of_known_and_rounded_values(stage: Stage) -> None:
    quantiles = Quantiles(Metric("load_{quantile}", "", ""), "overhead / 3", 2, shares=(0.5, 0.95))
    assert found(stage, MeasuredTable(EVENTS, quantiles=(quantiles,))) == {
        ("a", "load_p50"): 0.03,
        ("a", "load_p95"): 0.23,
    }
