"""docs/tables.md: every table, those of single systems included, and every metric. `make pages` writes it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from grapevine import metrics
from grapevine.metrics.catalogue import dictionary
from grapevine.model.tables import data_dictionary
from grapevine.systems.registry import own_tables_by_system


def tables_and_metrics() -> str:
    """The whole page, as Markdown. A metric is known once its module is imported, so all of them are."""
    for module in iter_modules(metrics.__path__):
        import_module(f"{metrics.__name__}.{module.name}")
    return data_dictionary(own_tables_by_system()) + dictionary()
