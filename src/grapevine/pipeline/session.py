"""The one place that makes the Spark session.

Settings come from flags, then the environment (GRAPEVINE_MASTER, GRAPEVINE_DRIVER_MEMORY), then `[spark]` in
./grapevine.toml, then defaults. Under spark-submit the submitted master and memory stand unless a flag says otherwise.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from grapevine.model.errors import UsageError
from grapevine.pipeline.class_archive import java_options
from grapevine.pipeline.java import Java, find_java, make_java_home

SETTINGS_FILE = "grapevine.toml"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # in the environment when spark-submit started us
_DEFAULT_MASTER = "local[*]"
_FILES_MASTER = "local[1]"

_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} spark %p: %m%n
# Without the first, the gateway announces its log level. A failing stage is reported once, by us.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.writer.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.writer.level = off
logger.write.name = org.apache.spark.internal.io
logger.write.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
"""

LITTLE_ROWS = 1 << 19
_FEWEST_ROWS = 1 << 16
# For few rows Java's second compiler takes the core that the query needs, for code that has run when it is done. For
# the fewest, compiling a query takes longer than interpreting it; an ingest of 300,000 rows is cheaper compiled.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# With one compiler Java reserves 48 MB for compiled code, which a collection fills; then it compiles no more, or fails.
_ONE_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# A young generation that a query does not fill is collected seldom; threads that mark what lives beside it, and a
# collection whenever more classes have been loaded than Java expects, cost more than they free.
_LITTLE_GARBAGE = "-XX:+UseSerialGC -Xmn300m -XX:MetaspaceSize=256m"

# Adaptive execution makes every shuffle a job, and broadcasting every joined table; looking at more than 32 files is
# one, too. Where all rows fit into one partition, none of it is needed.
_IN_ONE_PARTITION = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs and with what; None means: as submitted, or the default."""

    master: str | None = None  # default local[*]
    driver_memory: str | None = None  # default 4g
    conf: dict[str, str] = field(default_factory=dict)  # any other setting of Spark, by its full key

    @classmethod
    def gather(
        cls,
        *,
        master: str | None = None,
        driver_memory: str | None = None,
        conf: tuple[str, ...] = (),
        environment: Mapping[str, str] = os.environ,
        folder: Path | None = None,
    ) -> SparkSettings:
        """Flags over environment over ./grapevine.toml; under spark-submit only flags, and the file's `conf`.

        `conf` are the flags' `spark.KEY=VALUE` pairs. UsageError for a pair or a file that cannot be read so.
        """
        stored = _read_settings_file((folder or Path.cwd()) / SETTINGS_FILE)
        if _SUBMITTED in environment:
            environment, stored = {}, SparkSettings(conf=stored.conf)
        flags = {}
        for pair in conf:
            key, equals, value = pair.partition("=")
            if not equals or not key.startswith("spark."):
                raise UsageError(f"--conf {pair!r}: needs the form spark.KEY=VALUE")
            flags[key] = value
        return cls(
            master=master or environment.get("GRAPEVINE_MASTER") or stored.master,
            driver_memory=driver_memory or environment.get("GRAPEVINE_DRIVER_MEMORY") or stored.driver_memory,
            conf=stored.conf | flags,
        )

    def for_files(self) -> SparkSettings:
        """The same for commands that want Spark's file systems alone, and nothing of a cluster."""
        return self if _SUBMITTED in os.environ else replace(self, master=_FILES_MASTER)


def _read_settings_file(path: Path) -> SparkSettings:
    if not path.is_file():
        return SparkSettings()
    try:
        spark = tomllib.loads(path.read_text()).get("spark", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is not valid TOML ({error})") from None
    known = {"master", "driver_memory", "conf"}
    if not isinstance(spark, dict) or not isinstance(spark.get("conf", {}), dict):
        raise UsageError(f"{path}: [spark] and [spark.conf] are tables of settings")
    if unknown := sorted(set(spark) - known):
        raise UsageError(f"{path}: [spark] has no key {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    conf = {key: str(value) for key, value in _flatten(spark.get("conf", {}))}
    return SparkSettings(master=spark.get("master"), driver_memory=spark.get("driver_memory"), conf=conf)


def _flatten(tree: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """TOML reads `spark.ui.enabled = true` as nested tables; Spark wants the dotted key."""
    found: list[tuple[str, object]] = []
    for key, value in tree.items():
        found += _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return found


def open_session(settings: SparkSettings | None = None, *, rows: int | None = None) -> SparkSession:
    """The running session, or a new one: quiet, Arrow and adaptive execution on, no litter in the working folder.

    `rows` says about how many will be read, None that nobody knows. Settings of a running session stay as they are.
    UsageError if Spark does not start. Ctrl-C stays with whoever had it.
    """
    settings = settings or SparkSettings.gather()
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    scratch = Path(tempfile.mkdtemp(prefix="grapevine-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    submitted = _SUBMITTED in os.environ
    archived = ""
    if not submitted:
        java = find_java()
        archived = java_options(java)
        _prepare_environment(java, scratch, settings.master or _DEFAULT_MASTER)
    builder = SparkSession.builder.appName("grapevine")
    for key, value in _conf(settings, scratch, archived, submitted=submitted, rows=rows).items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise UsageError(
            f"Spark did not start on master {settings.master or _DEFAULT_MASTER} ({_first_line(error)}); "
            "see `grapevine doctor`"
        ) from None
    if threading.current_thread() is threading.main_thread():  # Spark puts its own handler in place
        signal.signal(signal.SIGINT, on_interrupt)
    # pyspark prints failures again, as JSON; py4j prints a stack trace when it is interrupted.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # Adaptive execution merges small partitions, so the first guess may be generous: four tasks a core.
    if not session.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
        session.conf.set("spark.sql.shuffle.partitions", str(max(8, 4 * session.sparkContext.defaultParallelism)))
    return session


@contextmanager
def one_partition(session: SparkSession, settings: SparkSettings | None) -> Iterator[None]:
    """While the block runs, queries of this session are planned for few rows: without shuffles, in one job each.

    What the user has set stays. Afterwards the session is as it was.
    """
    asked = settings.conf if settings else {}
    before = {key: session.conf.get(key) for key in _IN_ONE_PARTITION if key not in asked}
    for key in before:
        session.conf.set(key, _IN_ONE_PARTITION[key])
    try:
        yield
    finally:
        with suppress(Exception):  # Spark may be gone, when the process was told to stop
            for key, value in before.items():
                session.conf.set(key, str(value))


def leave_call() -> None:
    """Let this thread call Spark again although it is about to leave a call without its answer.

    For a signal handler that raises. py4j gives every thread one connection, on which Java answers one call after the
    other: whatever the thread called next, even to stop Spark, would wait until the job is done, for hours perhaps. So
    the thread forgets its connection, and the next call opens another one.
    """
    context = SparkContext._active_spark_context
    if context is not None and context._gateway is not None:
        context._gateway._gateway_client.thread_connection.connection = None


def _prepare_environment(java: Java, scratch: Path, master: str) -> None:
    os.environ["JAVA_HOME"] = str(make_java_home(java, scratch / "java"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local") or "127.0.0.1" in master:  # others must be able to call the driver back
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    (scratch / "log4j2.properties").write_text(_LOG4J)


def _conf(
    settings: SparkSettings, scratch: Path, archived: str, *, submitted: bool, rows: int | None
) -> dict[str, str]:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Telling Java the line of Python of every column takes more calls than making the column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Java interprets methods of more than 8,000 bytes: rather several short ones than a long one for a whole stage.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # One kernel thread per task: Spark's tasks are the parallelism.
        "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    }
    if not submitted:
        conf |= {
            "spark.master": settings.master or _DEFAULT_MASTER,
            "spark.driver.memory": settings.driver_memory or "4g",
            "spark.local.dir": str(scratch / "local"),
            # The performance-data file would appear in the system's temporary folder for every JVM.
            "spark.driver.extraJavaOptions": (
                f"-Dlog4j2.configurationFile={scratch / 'log4j2.properties'} -XX:-UsePerfData {archived}"
                + (f" {_ONE_COMPILER} {_LITTLE_GARBAGE}" if rows is not None and rows <= LITTLE_ROWS else "")
            ),
        }
        conf |= _INTERPRETED if rows is not None and rows <= _FEWEST_ROWS else {}
    elif settings.master:
        conf["spark.master"] = settings.master
    extra = settings.conf.get("spark.driver.extraJavaOptions")
    merged = conf | settings.conf
    if extra and "spark.driver.extraJavaOptions" in conf:
        merged["spark.driver.extraJavaOptions"] = f"{conf['spark.driver.extraJavaOptions']} {extra}"
    return merged


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
