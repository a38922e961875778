"""Progress of Spark jobs on the terminal: a thread polls the status tracker and moves a bar.

with progress(spark, "reading lines", quiet=False):
    frame.write.parquet(…)
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StatusTracker
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

POLL_S = 0.2


@contextmanager
def progress(spark: SparkSession, label: str, *, quiet: bool = False) -> Iterator[None]:
    """A bar of finished over known tasks on standard error while the block runs; on a pipe, one line at its end."""
    if quiet:
        yield
        return
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, label, interruptOnCancel=True)
    console = Console(file=sys.stderr)
    start = time.perf_counter()
    if not console.is_terminal:
        yield
        console.print(f"{label}: {time.perf_counter() - start:.1f} s", highlight=False)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[tasks]}")
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        line = bar.add_task(label, total=None, tasks="")
        stop = threading.Event()
        tracker = spark.sparkContext.statusTracker()
        poller = threading.Thread(target=_follow, args=(tracker, group, bar, line, stop), daemon=True)
        poller.start()
        try:
            yield
            bar.update(line, total=1, completed=1)
        finally:
            stop.set()
            poller.join()


def tell(sentence: str, *, quiet: bool = False) -> None:
    """A line on standard error."""
    if not quiet:
        Console(file=sys.stderr).print(sentence, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def waiting(label: str, *, quiet: bool = False) -> Iterator[None]:
    """A spinner for what has no countable parts; nothing on a pipe."""
    console = Console(file=sys.stderr)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(label):
        yield


def _follow(tracker: StatusTracker, group: str, bar: Progress, line: TaskID, stop: threading.Event) -> None:
    """Move the bar until told to stop; runs on a thread of its own."""
    while not stop.wait(POLL_S):
        done, known = _tasks(tracker, group)
        if known:
            bar.update(line, total=known, completed=done, tasks=f"{done}/{known} tasks")


def _tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Finished and known tasks of the group; stages that were skipped never start, so only started ones count."""
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            stage_info = tracker.getStageInfo(stage)
            if stage_info and (stage_info.numCompletedTasks or stage_info.numActiveTasks):
                done += stage_info.numCompletedTasks
                known += stage_info.numTasks
    return done, known
