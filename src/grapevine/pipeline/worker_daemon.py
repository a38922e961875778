"""The process that Spark forks its Python workers from, on this machine: it has imported what tasks use.

Spark starts it by its name (`spark.python.daemon.module`). A worker that imports for itself takes two seconds of
processor time before its first row, and a new one comes after every task that failed and whenever one was idle.
"""

from __future__ import annotations

from pyspark.daemon import manager

import grapevine.experiment.play
import grapevine.pipeline.sample  # noqa: F401

if __name__ == "__main__":
    manager()
