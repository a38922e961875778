from pathlib import Path

from grapevine.model.tables import data_dictionary

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_data_dictionary_is_up_to_date() -> None:
    assert (DOCS / "tables.md").read_text() == data_dictionary(), "run `make docs`"
