"""docs/tables.md: every table, those of single systems included, and every metric. `make docs` runs this module."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from grapevine import metrics
from grapevine.metrics.catalogue import dictionary
from grapevine.model.tables import data_dictionary
from grapevine.systems.registry import own_tables_by_system


def tables_and_metrics() -> str:
    """The whole page, as Markdown. Metrics are known once their modules are imported, so all of them are."""
    for module in iter_modules(metrics.__path__):
        import_module(f"grapevine.metrics.{module.name}")
    return data_dictionary(own_tables_by_system()) + dictionary()


if __name__ == "__main__":
    print(tables_and_metrics(), end="")
