"""What a light installation does without: which packages belong to which extra, and what to say where one is missing.

`pip install grapevine-pubsub` brings a live node and its Python API. Simulations, Spark, drawing and the door for MQTT
clients are extras. Their modules are imported where they are used, so what is missing shows as a ModuleNotFoundError;
whoever stands between it and a person (the command line, `import grapevine`) asks `missing_extra` for the sentence.
`tests/model/test_extras.py` holds the list and pyproject.toml together.
"""

from __future__ import annotations

from importlib.util import find_spec

DISTRIBUTION = "grapevine-pubsub"
PACKAGES = {  # by extra: the packages, as they are imported, that come with it
    "sim": ("numba", "pyarrow", "scipy"),
    "spark": ("pandas", "pyspark"),
    "report": ("altair", "matplotlib", "vl_convert"),
    "mqtt": ("mqtt5",),
}
_PART_OF = {"llvmlite": "numba", "py4j": "pyspark"}  # packages that these bring, and that we import as well


def is_installed(extra: str) -> bool:
    """Whether all packages of the extra can be imported; nothing is imported."""
    return all(find_spec(package) is not None for package in PACKAGES[extra])


def how_to_install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to install, in a sentence, where a package of an extra is missing; None: something else is."""
    name = (error.name or "").partition(".")[0]
    package = _PART_OF.get(name, name)
    extra = next((extra for extra, packages in PACKAGES.items() if package in packages), None)
    if extra is None:
        return None
    return f"needs {package}, which is not installed: {how_to_install(extra)}, or [all] for everything"
