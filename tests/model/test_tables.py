from pathlib import Path

from grapevine.model.tables import data_dictionary
from grapevine.systems.registry import own_tables_by_system

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_data_dictionary_is_up_to_date() -> None:
    """The metrics follow in the same file; tests/metrics/test_catalogue.py looks at them."""
    assert (DOCS / "tables.md").read_text().startswith(data_dictionary(own_tables_by_system())), "run `make docs`"
