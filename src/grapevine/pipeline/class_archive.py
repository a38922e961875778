"""An archive of Spark's classes, which a Java that starts maps into memory instead of reading 20,000 of them from jars.

A session and its first queries take half the time with it: 8 instead of 15 seconds of processor time where it was
measured. `make setup` makes it once (`python -m grapevine.pipeline.class_archive` does for other installations): a
session does a little of everything, and Java writes down which classes it has loaded ("dynamic class data sharing").
It lies in the Python environment whose Spark it speaks of, and is used by every session that we start ourselves.

Nothing depends on it: without an archive, or when Java finds that it does not fit any more, classes come from the jars.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from grapevine.model.errors import UsageError
from grapevine.pipeline.java import Java, find_java

_SILENT = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"  # an archive that does not fit is no error


def archive_of(java: Java) -> Path:
    """Where the archive for this Java and the installed Spark is, or would be: each pair of versions has its own."""
    spark = Path(pyspark.__file__).parent
    told = f"{java.executable.resolve()} {java.executable.resolve().stat().st_mtime_ns} {spark} {pyspark.__version__}"
    digest = hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()[:16]
    return Path(sys.prefix) / "var" / "grapevine" / f"spark-classes-{digest}.jsa"


def java_options(java: Java) -> str:
    """What Java is told so that it uses the archive; nothing if there is none."""
    archive = archive_of(java)
    return f"-XX:SharedArchiveFile={archive} {_SILENT}" if archive.is_file() and " " not in str(archive) else ""


def make_archive() -> Path | None:
    """Make the archive unless it is there, which takes half a minute; None if this Java or this environment cannot have
    one."""
    from grapevine.pipeline.session import SparkSettings, open_session

    archive = archive_of(find_java())
    if archive.is_file():
        return archive
    draft = archive.with_suffix(f".{os.getpid()}.draft")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    dumping = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={draft} {_SILENT}"}
    spark = open_session(SparkSettings(master="local[2]", conf=dumping))
    _do_a_little_of_everything(spark, archive.parent / f"{draft.name}.rows")
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # it writes when it ends
    if not draft.is_file():
        return None
    for old in archive.parent.glob("spark-classes-*.jsa"):
        old.unlink()
    return draft.rename(archive)


def _do_a_little_of_everything(spark: SparkSession, folder: Path) -> None:
    """Load the classes that stages need: shuffles, joins, windows, Parquet, CSV, JSON and Python functions."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    try:
        rows = spark.range(1_000).withColumn("group", F.col("id") % 7).withColumn("text", F.col("id").cast("string"))
        counts = rows.groupBy("group").agg(F.count("*").alias("n"), F.collect_list("id").alias("all"))
        joined = rows.join(counts, "group").orderBy(F.desc("n"), "id").mapInArrow(same, "id long, n long")
        rows.write.parquet(f"{folder}/parquet")
        rows.write.csv(f"{folder}/csv")
        joined.write.json(f"{folder}/json")
        spark.read.parquet(f"{folder}/parquet").where("group = 3").distinct().count()
        spark.read.csv(f"{folder}/csv", schema="id long, g long, t string").select(F.split("t", "1")).collect()
        spark.read.text(f"{folder}/csv").rdd.map(len).sum()
        spark.createDataFrame([(1, "a")], "x long, y string").toPandas()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(make_archive() or "this Java cannot keep an archive of classes; Spark starts without one")
    except UsageError as error:
        raise SystemExit(str(error)) from None
