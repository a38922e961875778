"""Lists become relations: a line names many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.pipeline.relate.base import IngestRun
from grapevine.pipeline.relate.subscriptions import Relations


@dataclass(frozen=True, slots=True)
class ItemsOfUsers(Relations):
    """The first field of a line is a user, the others are the items that it subscribes to."""

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write what the pairs mean."""
        items = F.explode(F.slice("fields", 2, F.size("fields") - 1))
        _write_pairs(run, rows.select(F.col("fields")[0].alias("user"), items.alias("item")))


@dataclass(frozen=True, slots=True)
class MembersOfItems(Relations):
    """A line lists the users of one item, which has no name but the number of its line."""

    needs_lines: ClassVar[bool] = True

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write what the pairs mean. Of several files, an item is named by its file, too."""
        item = F.col("line").cast("string")
        if rows.select("file").distinct().limit(2).count() > 1:
            item = F.concat(F.element_at(F.split("file", "/"), F.lit(-1)), F.lit(":"), item)
        _write_pairs(run, rows.select(F.explode("fields").alias("user"), item.alias("item")))


def _write_pairs(run: IngestRun, pairs: DataFrame) -> None:
    """Go on with a row for each pair."""
    fields = pairs.select(F.array("user", "item").alias("fields"))
    kept = run.stage.keep(fields, run.scratch / "pairs", "reading lists")
    run.counts["lists"], run.counts["rows"] = run.counts["rows"], run.stage.count_rows(run.scratch / "pairs")
    Relations().write(run, kept)
