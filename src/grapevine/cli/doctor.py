"""`grapevine doctor`: what is installed, what is wrong, and the cure."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from grapevine.cli.console import JsonOption, out, print_json, table
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.extras import PACKAGES, how_to_install, is_installed
from grapevine.model.location import is_url
from grapevine.version import __version__

DATA_VARIABLE = "GRAPEVINE_DATA"


class Finding(NamedTuple):
    """One line of the report."""

    part: str  # what was looked at, e.g. Java
    found: str
    cure: str = ""  # what to do about it; empty when all is well


def data_folder() -> Path | None:
    """The folder of real traces: where GRAPEVINE_DATA points, else ../shared/data beside the checkout; None: there is
    none.

    Used by `doctor`, experiments and tests that need traces.
    """
    if chosen := os.environ.get(DATA_VARIABLE):
        return Path(chosen) if Path(chosen).is_dir() else None
    for start in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (beside := start.parent / "shared" / "data").is_dir():
            return beside
    return None


def doctor(
    start_spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Also start Spark and run a job.")] = True,
    json: JsonOption = False,
) -> None:
    """Say what is installed (Python, Java, Spark, cores, memory, data) and what is wrong, with the cure."""
    with_spark = is_installed("spark")
    checks: list[Callable[[], Finding]] = [_grapevine, _python, _libraries, _extras]
    checks += [*([_java] if with_spark else []), _cores, _memory, _disk, _data]
    checks += [_spark] if start_spark and with_spark else []
    findings = [check() for check in checks]
    ill = [finding for finding in findings if finding.cure]
    if json:
        print_json({"well": not ill, "findings": [finding._asdict() for finding in findings]})
    else:
        _print(findings)
    if any(finding.part in ("Python", "Java", "Spark") for finding in ill):
        raise SystemExit(1)


def _print(findings: list[Finding]) -> None:
    shown = table("", "", "", "")
    shown.show_header = False
    for column in shown.columns:
        column.justify = "left"
    for finding in findings:
        mark = "[yellow]![/]" if finding.cure else "[green]✓[/]"
        shown.add_row(
            mark, finding.part, escape(finding.found) + (f"\n[yellow]{escape(finding.cure)}[/]" if finding.cure else "")
        )
    out.print(shown)


def _grapevine() -> Finding:
    return Finding("Grapevine", f"{__version__}, {Path(__file__).resolve().parents[1]}")


def _python() -> Finding:
    cure = "" if sys.version_info >= (3, 11) else "Grapevine needs Python 3.11 or newer; make the .venv with one"
    return Finding("Python", f"{platform.python_version()}, {sys.executable}", cure)


def _libraries() -> Finding:
    names = [name for name in ("pyspark", "pyarrow", "numpy", "numba", "scipy") if find_spec(name)]
    return Finding("Libraries", ", ".join(f"{name} {version(name)}" for name in names))


def _extras() -> Finding:
    missing = [extra for extra in PACKAGES if not is_installed(extra)]
    parts = [f"no {extra} ({how_to_install(extra)})" for extra in missing]
    return Finding("Extras", "; ".join(parts) or ", ".join(PACKAGES))


def _java() -> Finding:
    from grapevine.pipeline.java import find_java

    try:
        java = find_java()
    except UsageError as error:
        return Finding("Java", "none that fits", str(error))
    return Finding("Java", f"{java.version} from {java.origin}, {java.executable}")


def _cores() -> Finding:
    return Finding("Cores", f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()}")


def _memory() -> Finding:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cure = "" if size >= 6 else "less than 6 GiB: give Spark less, e.g. --driver-memory 2g"
    return Finding("Memory", f"{size:.1f} GiB", cure)


def _disk() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free / 2**30
    cure = "" if free >= 5 else "less than 5 GiB for Spark's shuffles: set TMPDIR to a larger disk"
    return Finding("Scratch disk", f"{free:.0f} GiB free in {folder}", cure)


def _data() -> Finding:
    if is_url(os.environ.get(DATA_VARIABLE, "")):
        return Finding("Data", f"{os.environ[DATA_VARIABLE]}, opened when it is needed")
    folder = data_folder()
    if folder is None:
        wrong = os.environ.get(DATA_VARIABLE)
        cure = (
            f"{DATA_VARIABLE}={wrong} is not a folder"
            if wrong
            else f"set {DATA_VARIABLE} to a folder of traces (optional)"
        )
        return Finding("Data", "no folder of real traces", cure)
    return Finding("Data", f"{folder}: {', '.join(sorted(p.name for p in folder.iterdir() if p.is_dir()))}")


def _spark() -> Finding:
    from grapevine.pipeline.session import SparkSettings, open_session

    try:
        session = open_session(SparkSettings.gather())
        rows: Any = session.range(1000).selectExpr("sum(id)").collect()[0][0]
    except GrapevineError as error:
        return Finding("Spark", "does not start", str(error))
    context = session.sparkContext
    return Finding(
        "Spark",
        f"{session.version} on {context.master}, {context.defaultParallelism} tasks at once, test job {rows == 499500}",
    )
