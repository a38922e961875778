"""Dense numbers for names: 0 … n-1 in natural order (numbers by value, then texts), whatever the partitions."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from grapevine.model.location import Location
from grapevine.pipeline.stage import Stage

_ROW_BITS = 33  # monotonically_increasing_id: partition above, row below


def numbers_as_names(stage: Stage, count: int) -> DataFrame:
    """(node, name) of the nodes 0 … count-1, which have no names but their numbers."""
    numbers = stage.spark.range(count)  # first: columns can only be named while a session is open
    return numbers.select(F.col("id").cast("int").alias("node"), F.col("id").cast("string").alias("name"))


def number_names(
    stage: Stage, names: DataFrame, column: str, scratch: Location, label: str, *, natural: bool = True
) -> DataFrame:
    """(column, name, …): every distinct row of the frame, which has a `name` and no two rows for one, with its dense
    number: by natural order of the names, or else as plain texts.

    `scratch` is a new folder that has to stay as long as the answer is used. The sorted names are stored once with
    their partition and row; a partition's first number is the count of the names in the partitions before it. Storing
    keeps the second read from sorting, or splitting, differently. Few names are counted in one partition instead.
    """
    by_value = (F.col("name").try_cast("bigint").asc_nulls_last(),) if natural else ()
    order = *by_value, F.col("name").asc()
    if stage.is_little:
        place_of_all = (F.row_number().over(Window.orderBy(*order)) - 1).cast("int").alias(column)
        return stage.hold(stage.gather(names).distinct().select(place_of_all, *names.columns), scratch, label)
    place = F.spark_partition_id().alias("part"), F.monotonically_increasing_id().alias("row")
    stored = stage.keep(names.distinct().orderBy(*order).select("*", *place), scratch, label)
    with stage.step(label):
        sizes = {row["part"]: row["count"] for row in stored.groupBy("part").count().collect()}
    firsts = [0]
    for part in range(max(sizes, default=0)):
        firsts.append(firsts[-1] + sizes.get(part, 0))
    row = F.col("row").bitwiseAND(F.lit((1 << _ROW_BITS) - 1))
    number = F.get(F.lit(firsts), F.col("part")) + row
    return stored.select(number.cast("int").alias(column), *names.columns)
