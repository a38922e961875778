"""docs/tables.md: every table, those of single systems included, and every metric. `make docs` runs this module."""

from __future__ import annotations

from grapevine.metrics.catalogue import dictionary
from grapevine.model.tables import data_dictionary
from grapevine.systems.registry import own_tables_by_system


def tables_and_metrics() -> str:
    """The whole page, as Markdown."""
    return data_dictionary(own_tables_by_system()) + dictionary()


if __name__ == "__main__":
    print(tables_and_metrics(), end="")
