"""Which code and which files decide a workload and a run, as digests for their keys.

Results are kept under keys and never made twice, so whatever decides a result has to be in its key; and what does not
(reports, the command line, the live node) must not be, or every edit would throw results away. Both lists are explicit;
`tests/experiment/test_code.py` follows the imports and fails when one lacks a module.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from grapevine.kernels.code_cache import sources_of
from grapevine.model.location import Location, local_copy

PACKAGE = Path(__file__).resolve().parents[1]
WORKLOAD_CODE = (
    "kernels",
    "model",
    "synthetic",
    "pipeline/dense.py",
    "pipeline/formats.py",
    "pipeline/generate.py",
    "pipeline/ingest.py",
    "pipeline/inputs.py",
    "pipeline/layout.py",
    "pipeline/lines.py",
    "pipeline/raw_files.py",
    "pipeline/reasons.py",
    "pipeline/relate",
    "pipeline/sample.py",
    "pipeline/stage.py",
    "pipeline/workloads.py",
)
RUN_CODE = (  # with the package of the system that runs (`system_code`); other systems decide nothing
    *WORKLOAD_CODE,
    "metrics",
    "blocks",
    "systems/__init__.py",
    "systems/registry.py",
    "systems/contracts",
    "sim",
    "experiment/churn.py",
    "experiment/play.py",
)
_OF_ALL = {"contracts"}  # among the folders of systems: what is part of every run
_SYSTEM = re.compile(r"grapevine\.systems\.(\w+)")
_BLOCK = 1 << 20


def code_digest(parts: Iterable[str], package: Path = PACKAGE) -> str:
    """A digest of the names and contents of these modules and of all modules below these folders of the package.

    A part that is not there is an error: the list has to be brought up to date when code moves.
    """
    sources = []
    for part in parts:
        found = sorted((package / part).rglob("*.py")) if (package / part).is_dir() else [package / part]
        if not found:
            raise FileNotFoundError(f"{package / part} holds no code; bring the lists of {__name__} up to date")
        sources += found
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sources:
        _add(digest, source.relative_to(package).as_posix(), source)
    return digest.hexdigest()[:16]


def system_code(module: str, package: Path = PACKAGE) -> tuple[str, ...]:
    """The folders of the systems that one of our modules belongs to or builds on; none for other modules."""
    systems = package / "systems"
    own = [systems / name for name in _SYSTEM.findall(module)]
    sources = {source for folder in own for file in folder.rglob("*.py") for source in sources_of(file, package)}
    folders = {source.relative_to(systems).parts[0] for source in sources if source.is_relative_to(systems)}
    return tuple(f"systems/{name}" for name in sorted(folders - _OF_ALL) if (systems / name).is_dir())


def run_digest(module: str, package: Path = PACKAGE) -> str:
    """A digest of all code that decides the runs of the system that this module belongs to.

    Of a system of another distribution its own code is part of it.
    """
    ours, theirs = code_digest((*RUN_CODE, *system_code(module, package)), package), module_digest(module)
    return ours if theirs is None else f"{ours}+{theirs}"


def measuring_digest(package: Path = PACKAGE) -> str:
    """A digest of all code that makes an experiment's tables from its runs."""
    sources = sources_of(package / "pipeline" / "measure.py", package)
    return code_digest((source.relative_to(package).as_posix() for source in sources), package)


def module_digest(name: str) -> str | None:
    """A digest of the top-level module or package that this module of another distribution is in; None for ours."""
    top = name.partition(".")[0]
    if top == __name__.partition(".")[0]:
        return None
    source = Path(str(import_module(top).__file__))
    return content_digest(source.parent) if source.name == "__init__.py" else content_digest(source)


def content_digest(path: Location) -> str | None:
    """A digest of the content of a file, or of the names and contents of all files below a folder; None if there is
    nothing.

    The content is read whole, because size and time of change would not do: a trace that is copied or downloaded again
    has another time although it is the same, and its results should be found again; and one that is replaced within
    the clock's resolution may have the same. Reading takes a second per gigabyte, ingesting it many times as long. What
    lies at a URL is fetched for it, since a store's own checksums say nothing about the same file elsewhere.
    """
    if not path.exists():
        return None
    digest = hashlib.sha1(usedforsecurity=False)
    with local_copy(path) as local:
        below = (file for file in local.rglob("*") if file.is_file() and file.parent.name != "__pycache__")
        for file in sorted(below) if local.is_dir() else [local]:
            _add(digest, file.relative_to(local).as_posix(), file)
    return digest.hexdigest()[:16]


def _add(digest: hashlib._Hash, name: str, file: Path) -> None:
    """Name and size come first, so that content cannot pass for the next file's name."""
    digest.update(f"{name}\0{file.stat().st_size}\0".encode())
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
