"""What every stage shares: a context (Spark, progress), reading and writing declared tables, failures as sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.location import Location, is_url
from grapevine.model.tables import Table
from grapevine.pipeline.hadoop import HadoopFiles, HadoopLocation, known_reason, literal
from grapevine.pipeline.progress import progress, tell, waiting
from grapevine.pipeline.raw_files import damaged
from grapevine.pipeline.session import LITTLE_ROWS, SparkSettings, one_partition, open_session

_ROW_BYTES = 16  # of a trace, on disk, packed or not: two names
_GROUP = "_group"  # a column's name, while rows are grouped


class Stage:
    """A stage at work: its Spark session, and whether to show progress.

    The session opens when it is first needed, so that mistakes are found before anybody waits for Spark.
    """

    def __init__(self, settings: SparkSettings | None = None, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._settings = settings
        self._rows: int | None = None  # about how many are read now, if somebody knows
        self._while_little = ExitStack()  # undoes what was set and held for few rows

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session, which opens at the first use; UsageError if it does not start."""
        with waiting("starting Spark", quiet=self.quiet):
            session = open_session(self._settings, rows=self._rows)
        if self.is_little:
            self._while_little.enter_context(one_partition(session, self._settings))
        return session

    @contextmanager
    def expecting(self, *inputs: Location | str, row_bytes: int = _ROW_BYTES) -> Iterator[None]:
        """Say what is read while the block runs, in rows of about so many bytes.

        With few rows, and all of them on this machine, Spark starts for few rows (`session.open_session`), frames stay
        in one partition (`gather`), in memory (`hold`) and, where Python has to look at them, with the driver
        (`apply`): a table then takes one job. What is held is let go when the block ends.
        """
        paths = [Path(str(given)) for given in inputs if not is_url(str(given))]
        sizes = (file.stat().st_size for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
        self._rows = sum(sizes) // row_bytes if len(paths) == len(inputs) else None
        with self._while_little:
            if self.is_little and "spark" in vars(self):
                self._while_little.enter_context(one_partition(self.spark, self._settings))
            try:
                yield
            finally:
                self._rows = None

    @property
    def is_little(self) -> bool:
        """Whether few rows are read now (`expecting`)."""
        return self._rows is not None and self._rows <= LITTLE_ROWS

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """One visible step of a stage, with a progress bar; what Spark throws inside becomes one sentence (`explain`).

        When the process is told to stop, Spark is stopped before the folder in which it writes is removed.
        """
        spark = self.spark
        try:
            with progress(spark, label, quiet=self.quiet):
                yield
        except (Py4JError, PySparkException) as error:
            raise explain(error, label) from None
        except Exception:
            raise
        except BaseException:  # stopped by a signal: no task may go on writing into a folder that is being removed
            with suppress(Exception):
                spark.sparkContext.setLogLevel("OFF")  # tasks complain that the ground is gone from under them
                spark.stop()
            raise

    def tell(self, sentence: str) -> None:
        """Say something to the user, unless the stage is quiet."""
        tell(sentence, quiet=self.quiet)

    @cached_property
    def _files(self) -> HadoopFiles:
        return HadoopFiles(lambda: self.spark)

    def location(self, given: str) -> Location:
        """The file or folder that a user named by a path or a URL; UsageError for what is neither.

        A path needs no Spark. Nothing is asked of a URL's store yet, and the session opens when something is.
        """
        return HadoopLocation(given, self._files) if is_url(given) else Path(given)

    def read(self, folder: Location, table: Table) -> DataFrame:
        """A stored table in its declared schema, in no order; `folder` is where tables lie (`Manifest.tables_in`)."""
        return self.reread(folder / table.name, spark_schema(table))

    def reread(self, folder: Location, schema: StructType | None = None) -> DataFrame:
        """A Parquet folder that an earlier step stored, in its own schema unless one is given."""
        reader = self.spark.read if schema is None else self.spark.read.schema(schema)
        try:
            return self.gather(reader.parquet(spark_path(folder)))
        except (Py4JError, PySparkException) as error:
            raise explain(error, f"reading {folder.name}") from None

    def keep(self, frame: DataFrame, folder: Location, label: str) -> DataFrame:
        """Store a frame that several steps read, and read it again: otherwise each of them would make it anew."""
        with self.step(label):
            frame.write.parquet(str(folder))
        return self.reread(folder, frame.schema)

    def hold(self, frame: DataFrame, folder: Location, label: str) -> DataFrame:
        """The same as `keep` for a frame that can be made again without a difference: few rows stay in memory, from the
        first step on that reads them, and take no job of their own."""
        if not self.is_little:
            return self.keep(frame, folder, label)
        held = self.gather(frame).persist()
        self._while_little.callback(_let_go, held)
        return held

    def gather(self, frame: DataFrame) -> DataFrame:
        """Few rows in one partition, others as they are. What is in one partition Spark joins, groups and sorts without
        a shuffle: a query over such frames is one task."""
        return frame.coalesce(1) if self.is_little else frame

    def frame_of(self, rows: pa.Table) -> DataFrame:
        """A few rows that the driver has, to be joined with many. (From lists Spark would make them in a Python worker,
        whose start takes a second.)"""
        frame = self.spark.createDataFrame(rows)
        return self.gather(frame) if self.is_little else F.broadcast(frame)

    def apply(
        self, frame: DataFrame, group: Column, function: Callable[[pa.Table], pa.Table], schema: StructType, label: str
    ) -> DataFrame:
        """What `function` makes of each group of rows: in Python workers, or, with few rows, here and at once, since
        starting workers would take longer. `label` tells users what is going on."""
        if not self.is_little:
            return frame.groupBy(group).applyInArrow(function, schema)
        with self.step(label):
            rows = frame.withColumn(_GROUP, group).toArrow().sort_by(_GROUP)
            groups = rows[_GROUP].to_numpy()
            firsts = [0, *(np.flatnonzero(groups[1:] != groups[:-1]) + 1).tolist(), len(groups)]
            bare = rows.drop_columns(_GROUP)
            found = [function(bare.slice(a, b - a)) for a, b in pairwise(firsts) if a < b]
            made = pa.concat_tables(found) if found else to_arrow_schema(schema).empty_table()
            return self.gather(self.spark.createDataFrame(made, schema))

    def write(self, frame: DataFrame, folder: Location, table: Table, label: str | None = None) -> int:
        """Store exactly the declared columns of the frame, in their types, below `folder`; returns the rows written."""
        with self.step(label or f"writing {table.name}"):
            columns = [F.col(f.name).cast(f.dataType) for f in spark_schema(table)]
            frame.select(*columns).write.parquet(str(folder / table.name))
        return self.count_rows(folder / table.name)

    def count_rows(self, folder: Location) -> int:
        """Rows of a stored table, from the Parquet footers: nothing is read but the ends of the files."""
        if isinstance(folder, Path):
            return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
        with self.step(f"counting {folder.name}"):
            return self.reread(folder).count()


def _let_go(held: DataFrame) -> None:
    with suppress(Exception):  # Spark may be gone, when the process was told to stop
        held.unpersist()


def spark_path(path: Location | str) -> str:
    """The name of a location that Spark takes as it is, and not as a pattern."""
    return literal(str(path))


def plain_path(file: Column) -> Column:
    """The file's name as the user knows it: Spark's is a URL."""
    local = F.url_decode(F.replace(F.regexp_replace(file, "^file:/+", "/"), F.lit("+"), F.lit("%2B")))
    return F.when(file.startswith("file:"), local).otherwise(file)


def spark_schema(table: Table) -> StructType:
    """The Spark schema of a declared table."""
    return from_arrow_schema(table.schema)


def explain(error: Exception, doing: str) -> GrapevineError:
    """One sentence for a failure inside Spark while `doing` something: a UsageError when a file, the disk or a
    parameter is to blame, else a GrapevineError."""
    text = str(error)
    if match := re.search(r"\[PATH_NOT_FOUND\] Path does not exist: (?:file:)?(\S+?)\.? ", text):
        return UsageError(f"{match[1]}: no such file or folder")
    if match := re.search(r"reading file (?:file:/+)?(\S+?)\.\s", text):
        path = match[1] if "://" in match[1] else "/" + match[1]
        cause = re.findall(r"Caused by: [\w.$]+(?:: ([^\n]+))?", text)
        detail = cause[-1] if cause and cause[-1] else "unreadable"
        if path.endswith((".gz", ".bz2")):
            return damaged(path, detail)
        return UsageError(f"{path}: cannot be read ({detail})")
    if reason := known_reason(text):
        return UsageError(f"while {doing}, {reason}")
    if "No space left on device" in text:
        return UsageError(f"no space was left on the disk while {doing}; free some, or set TMPDIR to a larger disk")
    if match := re.search(r"grapevine\.model\.errors\.UsageError: ([^\n]+)", text):
        return UsageError(match[1])
    if match := re.search(r"grapevine\.model\.errors\.GrapevineError: ([^\n]+)", text):
        return GrapevineError(f"{match[1]} (while {doing})")
    if "OutOfMemoryError" in text:
        return GrapevineError(f"Spark ran out of memory while {doing}; give it more with --driver-memory")
    causes = re.findall(r"Caused by: ([^\n]+)", text) or re.findall(r"^\w*(?:Error|Exception): [^\n]+", text, re.M)
    sentence = causes[-1] if causes else (text.strip().splitlines() or ["no reason given"])[0]
    return GrapevineError(f"Spark failed while {doing}: {sentence[:300]}")
