"""A standalone Spark cluster on this machine, from the pip package: a master and two workers of one core each."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from grapevine.pipeline.java import find_java, make_java_home

_SPARK = Path(pyspark.__file__).parent
_START_S = 60.0


@contextmanager
def two_workers(memory: str = "3g") -> Iterator[str]:
    """The URL of a cluster that is there while the block runs. TimeoutError if its workers do not register."""
    with tempfile.TemporaryDirectory(prefix="grapevine-cluster-") as name:
        folder = Path(name)
        own = {"JAVA_HOME": str(make_java_home(find_java(), folder)), "SPARK_LOCAL_IP": "127.0.0.1"}
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
        environment = inherited | own | {"PYSPARK_PYTHON": sys.executable}
        port, log = _free_port(), folder / "log"
        url = f"spark://127.0.0.1:{port}"
        here = "--host", "127.0.0.1", "--webui-port"
        commands = [["master.Master", *here, str(_free_port()), "--port", str(port)]]
        for worker in ("1", "2"):
            size = "--cores", "1", "--memory", memory, "--work-dir", str(folder / worker)
            commands.append(["worker.Worker", *here, str(_free_port()), *size, url])
        started = []
        try:
            with log.open("w") as told:
                for command in commands:
                    line = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{command[0]}", *command[1:]]
                    started.append(subprocess.Popen(line, env=environment, cwd=folder, stdout=told, stderr=told))
            _wait_for_workers(log)
            yield url
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()


def kill_an_executor() -> None:
    """End one of the processes that run tasks of a cluster on this machine, without a warning. RuntimeError if there is
    none."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            if b"CoarseGrainedExecutorBackend" in entry.read_bytes():
                os.kill(int(entry.parent.name), signal.SIGKILL)
                return
    raise RuntimeError("no executor of a cluster runs on this machine")


def _wait_for_workers(log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while log.read_text().count("Registering worker") < 2:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the cluster did not start: {log.read_text()[-500:]}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
