"""Shapes of frames, and dense numbers, on rows that can be seen at once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions as F

from grapevine.pipeline.dense import number_names
from grapevine.pipeline.frames import long_form, share_of
from grapevine.pipeline.stage import Stage


def test_one_column_per_metric_becomes_one_row_per_metric(stage: Stage) -> None:
    wide = stage.spark.createDataFrame([("a", 1, None), ("b", 2, 0.5)], "run_id string, hops int, ring double")
    rows = sorted((tuple(row) for row in long_form(wide).collect()), key=str)
    assert rows == [("a", "hops", 1.0), ("a", "ring", None), ("b", "hops", 2.0), ("b", "ring", 0.5)]


def test_a_share_is_of_the_rows_for_which_it_is_known(stage: Stage) -> None:
    rows = stage.spark.createDataFrame([(1,), (5,), (None,), (7,)], "x int")
    ((share, none),) = rows.agg(share_of(F.col("x") > 4), share_of(F.lit(None).cast("boolean"))).collect()
    assert (round(share, 6), none) == (0.666667, None)


def test_names_are_numbered_without_gaps_in_natural_order(stage: Stage, tmp_path: Path) -> None:
    names = ["b", "10", "9", "a", "b", "-1", "007"]
    given = stage.spark.createDataFrame([(name,) for name in names], "name string").repartition(3)
    natural = number_names(stage, given, "node", tmp_path / "natural", "numbering").collect()
    assert [row.name for row in sorted(natural)] == ["-1", "007", "9", "10", "a", "b"]
    plain = number_names(stage, given, "node", tmp_path / "plain", "numbering", natural=False).collect()
    assert sorted(tuple(row) for row in plain) == list(enumerate(sorted(set(names))))
