"""docs/tables.md: every table, those of single systems included, and every metric. `make pages` writes it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from grapevine import metrics
from grapevine.metrics.catalogue import dictionary
from grapevine.model.tables import Table, data_dictionary
from grapevine.systems.registry import all_systems


def tables_and_metrics() -> str:
    """The whole page, as Markdown. A metric is known once its module is imported, so all of them are."""
    for module in iter_modules(metrics.__path__):
        import_module(f"{metrics.__name__}.{module.name}")
    return data_dictionary(own_tables_by_system()) + dictionary()


def own_tables_by_system() -> dict[str, list[Table]]:
    """Tables that not every run has, by the names of the systems that fill them: for the data dictionary."""
    owners: dict[Table, list[str]] = {}
    for name, system in all_systems().items():
        for facet in system.facet_names:
            for measured in system.own_tables(facet):
                owners.setdefault(measured.table, []).append(name)
    found: dict[str, list[Table]] = {}
    for table, names in owners.items():
        found.setdefault(" and ".join(dict.fromkeys(names)), []).append(table)
    return found
